kernel k(x: tensor<f32>[N]) {
  let t = x[0 :+ 16]
  if t > 0.0 {
    x[0 :+ 16] = -t
  }
}
