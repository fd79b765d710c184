// gemm: C = alpha * A @ B + beta * C, a tile of C a CTA, each thread some elements of it.
//
// Teaches: a promise. `@aligned` says that M, N and K are whole multiples of their tiles; the
// kernel checks that once at its start and traps if it is not so, and needs no mask after that.
// Each thread computes its elements of the tile by point reads, one dot product at a time. That
// is the plainest way to write a matrix product and by far not the fastest.
//
// Launch M / TILE_M by N / TILE_N CTAs along x and y.
@autotune(TILE_M in [32, 256], TILE_N in [32, 256], TILE_K in [4, 32])
@launch(256)
@pipeline
@aligned(M = TILE_M, N = TILE_N, K = TILE_K)
kernel gemm(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N],
            alpha: f32, beta: f32) {
  for e in range(ctx.thread, TILE_M * TILE_N, ctx.threads) {
    let row = ctx.block.x * TILE_M + e / TILE_N
    let col = ctx.block.y * TILE_N + e % TILE_N
    var acc: f32 = 0.0
    for k in range(0, K) {
      acc += A[row, k] * B[k, col]
    }
    C[row, col] = alpha * acc + beta * C[row, col]
  }
}
