fn helper(a: f32) -> f32 {
  return a + missing
}
kernel k(x: tensor<f32>[N]) {
  x[0] = 1.0
}
