// C = alpha * A B + beta * C for few tiles of C and a long K: f16 matrices, sums in f32.
//
// K is cut into SPLITS parts. First the CTAs multiply: each product of a part goes to W. When all
// are there, the CTAs add the parts up, piece by piece and in order, so that the result is the
// same in every run. The grid is one-dimensional, of as many CTAs as run at once; any number is
// right. `state` is two zeros before the first launch. With beta = 0 the old C is not read.

@autotune(
  TILE_M in [64, 128], TILE_N in [64, 128], TILE_K in [32, 64], THREADS in [128, 256],
  SPLITS in [4, 1, 2, 8, 16]
)
@launch(THREADS)
@dynshared
@pipeline
@persistent
kernel gemm_splitk(
  A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f16>[M, N],
  W: tensor<f32>[SPLITS, M, N], state: tensor<i32>[2], alpha: f32, beta: f32
) {
  let across = (N + TILE_N - 1) / TILE_N
  let tiles = (M + TILE_M - 1) / TILE_M * across
  let steps = (K + TILE_K - 1) / TILE_K
  let part = (steps + SPLITS - 1) / SPLITS * TILE_K
  for item in range(ctx.block.x, tiles * SPLITS, ctx.blocks.x) {
    let row = item % tiles / across * TILE_M
    let column = item % tiles % across * TILE_N
    let split = item / tiles
    var acc: tile<f32>[TILE_M, TILE_N] = 0.0
    for k in range(split * part, min(K, split * part + part), TILE_K) {
      acc += dot(A[row :+ TILE_M, k :+ TILE_K], B[k :+ TILE_K, column :+ TILE_N])
    }
    W[split, row :+ TILE_M, column :+ TILE_N] = reshape(acc, 1, TILE_M, TILE_N)
  }
  grid_barrier(state)
  let rows = max(1, TILE_M / SPLITS)
  let pieces = (M + rows - 1) / rows * across
  for item in range(ctx.block.x, pieces, ctx.blocks.x) {
    let row = item / across * rows
    let column = item % across * TILE_N
    var acc = W[0, row :+ rows, column :+ TILE_N]
    for<unroll> split in range(1, SPLITS) {
      acc += W[split, row :+ rows, column :+ TILE_N]
    }
    var result = alpha * reshape(acc, rows, TILE_N)
    if beta != 0.0 {
      result += beta * f32(C[row :+ rows, column :+ TILE_N])
    }
    C[row :+ rows, column :+ TILE_N] = f16(result)
  }
}
