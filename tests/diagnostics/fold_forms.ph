kernel k(A: tensor<f32>[M, N], p: bool) {
  let t = A[0 :+ 16, 0 :+ 16]
  let a = argmax(t)
  let b = scan(t)
  let c = argmax<over 0, 1>(t)
  let d = scanmax<over ctx.lane>(A[0, 0])
  let e = argmax<over 0>(t > 0)
  let f = scan<over 0, 1>(t)
  let g = cumsum(A[0, 0])
  let h = rowargmax(flat(t))
  let i = argmin<over ctx.thread>(t)
  let j = scan<over 2>(t)
  let l = argmin<over ctx.lane>(p)
  let m = scan<over 0>(A[0, 0])
}
