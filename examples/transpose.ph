// turn: B is the transpose of A, a tile a CTA.
//
// Teaches: `transpose`, and what the compiler makes of it. Rows of A are read and rows of B are
// written by neighbouring threads; in between the tile goes through shared memory, in an order that
// keeps threads from waiting for each other there. There is no barrier to write.
//
// Launch ceildiv(M, TILE) by ceildiv(N, TILE) CTAs along x and y.
@autotune(TILE in [32, 128])
kernel turn(A: tensor<f32>[M, N], B: tensor<f32>[N, M]) {
  let i = ctx.block.x * TILE
  let j = ctx.block.y * TILE
  B[j :+ TILE, i :+ TILE] = transpose(A[i :+ TILE, j :+ TILE])
}
