kernel k(x: tensor<f32>[N], n: i32) {
  let a = sum<over ctx.lane>(x[0 :+ 4])
  let b = any<over ctx.thread>(n)
  let c = max<over ctx.lane>(n > 3)
  let d = sub<over ctx.lane>(n)
  let e = count(n > 3)
  let f = shuffle(x[0], 1.0)
  let g = shuffle_xor(x[0], 32)
  let h = ballot(n)
}
