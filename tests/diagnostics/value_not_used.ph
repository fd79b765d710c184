kernel k(x: tensor<f32>[N]) {
  var i = 0
  i == 3
  x[i] + 1.0
}
