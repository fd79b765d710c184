kernel k(x: tensor<f32>[N]) {
  if ctx.thread < N {
    x[ctx.thread] = 1.0

kernel other(y: tensor<f32>[N]) {
}
