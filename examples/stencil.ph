// stencil: B = A + alpha * (the sum of the four neighbours - 4 A), one step of heat flowing; A is 0
// outside.
//
// Teaches: slices that lap over the edge. `A[i - 1 :+ TILE_M, ...]` starts a row above the tile, at
// the edge above the tensor, where elements read as 0 like those past its end. The five slices
// overlap, and what they share comes from the cache.
//
// Launch ceildiv(M, TILE_M) by ceildiv(N, TILE_N) CTAs along x and y.
@autotune(TILE_M in [16, 64], TILE_N in [64, 256])
kernel stencil(A: tensor<f32>[M, N], B: tensor<f32>[M, N], alpha: f32) {
  let i = ctx.block.x * TILE_M
  let j = ctx.block.y * TILE_N
  let here = A[i :+ TILE_M, j :+ TILE_N]
  let rows = A[i - 1 :+ TILE_M, j :+ TILE_N] + A[i + 1 :+ TILE_M, j :+ TILE_N]
  let columns = A[i :+ TILE_M, j - 1 :+ TILE_N] + A[i :+ TILE_M, j + 1 :+ TILE_N]
  B[i :+ TILE_M, j :+ TILE_N] = here + alpha * (rows + columns - 4 * here)
}
