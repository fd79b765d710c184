kernel k(x: tensor<f32>[N]) {
  x[0] = sqrtt(x[1]) + mx(x[0], 1.0)
}
