kernel k(x: tensor<f32>[N]) {
  let a = 3 $ 4
}
