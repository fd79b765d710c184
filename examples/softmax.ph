// softmax: Y[r, :] = exp(X[r, :]) / sum(exp(X[r, :])), one CTA a row.
//
// Teaches: folds of a tile. `max<over 1>(x)` folds along axis 1, which stays with extent 1, so that
// the result combines with the row again. The row is one tile of BLOCK elements, of which those
// past N must not count: `pad` puts -inf in their place, whose exponential is 0. The compiler keeps
// the row in registers and exchanges what the warps found through shared memory.
//
// Launch M CTAs along x, with BLOCK at least N.
@autotune(BLOCK in [1024, 16384])
kernel softmax(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  let r = ctx.block.x
  let x = pad(X[r, 0 :+ BLOCK], -inf)
  let e = exp(x - max<over 1>(x))
  Y[r, 0 :+ BLOCK] = e / sum<over 1>(e)
}
