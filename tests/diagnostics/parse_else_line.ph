kernel k(x: tensor<f32>[N]) {
  if N > 3 {
    x[0] = 1.0
  }
  else {
    x[0] = 2.0
  }
}
