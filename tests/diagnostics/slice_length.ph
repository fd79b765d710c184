@autotune(BLOCK in [64, 256])
kernel k(x: tensor<f32>[N], A: tensor<f32>[M, 8]) {
  let n = ctx.block.x + 1
  x[0 :+ n] = 0.0
  x[n : 2 * n] = 0.0
  x[n : n] = 0.0
  x[0 :+ BLOCK - 64] = 0.0
  x[:] = 0.0
  let whole = A[0 :+ 2, :]
}
