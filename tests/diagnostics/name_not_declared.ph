kernel scale(x: tensor<f32>[N], y: tensor<f32>[N]) {
  i = ctx.block.x * ctx.threads + ctx.thread
  if i < N {
    y[i] = x[i] * 2
  }
  y[0 :+ TILE] = x[0 :+ TILE]
}
