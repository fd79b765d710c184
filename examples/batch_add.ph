// batch_add: C[b] = A[b] + B[b] for a batch of matrices.
//
// Teaches: the third grid axis. `ctx.block.z` counts something that no tile spans, here the
// matrix in the batch; as a point among spans it gives the tile an axis of extent 1.
//
// Launch ceil(M / TILE_M) by ceil(N / TILE_N) by BATCH CTAs.
@autotune(TILE_M in [8, 64], TILE_N in [128, 512])
kernel batch_add(A: tensor<f32>[BATCH, M, N], B: tensor<f32>[BATCH, M, N],
                 C: tensor<f32>[BATCH, M, N]) {
  let b = ctx.block.z
  let row = ctx.block.x * TILE_M
  let col = ctx.block.y * TILE_N
  let sum = A[b, row :+ TILE_M, col :+ TILE_N] + B[b, row :+ TILE_M, col :+ TILE_N]
  C[b, row :+ TILE_M, col :+ TILE_N] = sum
}
