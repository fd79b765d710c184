kernel k(t: tile<f32>[4], x: tensor<f32>[0], y: tensor<f32>[A, B, C, D, E, F]) {
  t[0] = 1.0
  x[0] = 1.0
}
kernel k(x: tensor<f32>[N]) { x[0] = 1.0 }
