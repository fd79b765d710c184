// cross_entropy: L[r] = log(sum(exp(X[r, :]))) - X[r, T[r]], the loss of row r with target T[r].
//
// Teaches: a scalar among tiles. `T[r]` is one element, the same for every thread of the CTA, and so
// is `X[r, T[r]]`; a scalar that is the same for all threads combines with a tile. The largest
// logit is taken out first, so that no exponential overflows.
//
// Launch M CTAs along x, with BLOCK at least N.
@autotune(BLOCK in [1024, 16384])
kernel cross_entropy(X: tensor<f32>[M, N], T: tensor<i32>[M], L: tensor<f32>[M, 1]) {
  let r = ctx.block.x
  let x = pad(X[r, 0 :+ BLOCK], -inf)
  let top = max<over 1>(x)
  let total = sum<over 1>(exp(x - top))
  L[r, :] = top + log(total) - X[r, T[r]]
}
