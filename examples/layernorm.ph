// layernorm: each row of X with mean 0 and variance 1, times gamma, plus beta; one CTA a row.
//
// Teaches: two passes over a tile that stays in registers, and `valid`. The variance is that of the
// differences from the mean, which loses no digits. Elements past N read as 0, which the mean does
// not notice, but their difference from the mean is not 0: `valid` tells which elements exist, and
// `where` keeps the others out. `reshape` makes rows of the vectors gamma and beta.
//
// Launch M CTAs along x, with BLOCK at least N.
@autotune(BLOCK in [1024, 16384])
kernel layernorm(X: tensor<f32>[M, N], gamma: tensor<f32>[N], beta: tensor<f32>[N],
                 Y: tensor<f32>[M, N], epsilon: f32) {
  let r = ctx.block.x
  let x = X[r, 0 :+ BLOCK]
  let mean = sum<over 1>(x) / N
  let centred = where(valid(X[r, 0 :+ BLOCK]), x - mean, 0)
  let variance = sum<over 1>(centred * centred) / N
  let scaled = centred * rsqrt(variance + epsilon)
  let g = reshape(gamma[0 :+ BLOCK], 1, BLOCK)
  let b = reshape(beta[0 :+ BLOCK], 1, BLOCK)
  Y[r, 0 :+ BLOCK] = scaled * g + b
}
