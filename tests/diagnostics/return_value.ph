fn double(a: f32) -> f32 {
  if a > 1.0 { return 2.0 * a }
}
fn nothing(a: f32) {
  return a
}
fn bare(a: f32) -> f32 {
  return
}
kernel k(x: tensor<f32>[N]) {
  x[0] = double(x[1]) + bare(1.0)
  nothing(1.0)
  let y = nothing(2.0)
  return x[0]
}
