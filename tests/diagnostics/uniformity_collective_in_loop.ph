kernel row_sum(X: tensor<f32>[R, K], O: tensor<f32>[R, 1]) {
  let r = ctx.block.x
  var total: f32 = 0.0
  for k in range(ctx.lane, K, ctx.lanes) {
    total += sum<over ctx.thread>(X[r, k])
  }
  O[r, 0] = total
}

kernel while_loop(x: tensor<f32>[N], out: tensor<f32>[N]) {
  var i = ctx.thread
  while i < N {
    out[i] = sum<over ctx.lane>(x[i])
    i += ctx.threads
  }
}
