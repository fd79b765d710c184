fn scaled(a: f32) -> f32 {
  let n: i32 = a
  return a * scael
}
kernel k(x: tensor<f32>[N]) {
  x[0] = scaled(x[1])
  x[1] = scaled(x[2])
}
