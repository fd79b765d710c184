kernel k(x: tensor<f32>[N]) {
  let a = 12abc
  let b = 0xg1
}
