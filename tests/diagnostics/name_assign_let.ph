kernel k(x: tensor<f32>[N], alpha: f32) {
  let total = 0.0
  for i in range(0, N) {
    total += x[i]
    i += 1
  }
  alpha = 2.0
  N = 4
  x = 0.0
  totl = 1.0
}
