// row_sum: O[r, 0] is the sum of row r of X, one CTA a row.
//
// Teaches: per-thread work and a collective. Each thread adds up every 256th element of the row in
// a `var` of its own; `sum<over ctx.thread>` then folds the 256 partial sums and gives every thread
// the total. Point accesses such as `X[r, k]` are not masked: the loop keeps k inside the row.
//
// Launch R CTAs along x.
@launch(256)
kernel row_sum(X: tensor<f32>[R, K], O: tensor<f32>[R, 1]) {
  let r = ctx.block.x
  var acc: f32 = 0.0
  for k in range(ctx.thread, K, ctx.threads) {
    acc += X[r, k]
  }
  let total = sum<over ctx.thread>(acc)
  if ctx.thread == 0 {
    O[r, 0] = total
  }
}
