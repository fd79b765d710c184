kernel k(x: tensor<f32>[N]) {
  let i = ctx.thread
  if 0 <= i < N {
    x[i] = 0.0
  }
}
