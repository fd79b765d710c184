// copy2d: B = A for matrices of any shape, one tile a CTA.
//
// Teaches: tiles of rank 2. A tile is masked on each axis by the extents of the tensor it is cut
// from, so the tiles at the right and bottom edges copy what exists and nothing else.
//
// Launch ceil(M / TILE_M) by ceil(N / TILE_N) CTAs along x and y.
@autotune(TILE_M in [32, 128], TILE_N in [64, 256])
kernel copy2d(A: tensor<f32>[M, N], B: tensor<f32>[M, N]) {
  let row = ctx.block.x * TILE_M
  let col = ctx.block.y * TILE_N
  B[row :+ TILE_M, col :+ TILE_N] = A[row :+ TILE_M, col :+ TILE_N]
}
