kernel k(x: tensor<f32>[N]) {
  let = 3
  x[0] = (1.0 + 
  let b = 4
}
