kernel k(a: tensor<f32>[M, N], t: tensor<f32>[N]) {
  let tile = t[0 :+ 4]
  let run = elem(a[0, 0 :+ 4])
  let both = run + tile
  let other = run + elem(a[0, 0 :+ 8])
  let total = sum(tile)
  let element = run[0]
}
