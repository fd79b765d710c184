// rmsnorm: each row of X over the root of the mean of its squares, times gamma, in bf16.
//
// Teaches: computing wider than memory. The row is read as bf16, two bytes an element in accesses of
// 16 bytes, computed on in f32 and rounded once, when it is written.
//
// Launch M CTAs along x, with BLOCK at least N.
@autotune(BLOCK in [1024, 16384])
kernel rmsnorm(X: tensor<bf16>[M, N], gamma: tensor<bf16>[N], Y: tensor<bf16>[M, N],
               epsilon: f32) {
  let r = ctx.block.x
  let x = f32(X[r, 0 :+ BLOCK])
  let mean = sum<over 1>(x * x) / N
  let g = f32(reshape(gamma[0 :+ BLOCK], 1, BLOCK))
  Y[r, 0 :+ BLOCK] = bf16(x * rsqrt(mean + epsilon) * g)
}
