// C = alpha * A B + beta * C for few tiles of C and a long K: f16 matrices, sums in f32.
//
// K is cut into SPLITS parts, and a tile of C is made by a cluster of as many CTAs, one for each
// part. They add their products up through each other's shared memory, in a fixed order, so that
// the result is the same in every run; each stores some rows. Needs sm_90 or newer; with
// SPLITS = 1 any chip will do. Any M, N and K are right. With beta = 0 the old C is not read.

@autotune(
  TILE_M in [64, 128], TILE_N in [64, 128], TILE_K in [32, 64], THREADS in [128, 256],
  SPLITS in [2, 1, 4, 8], STAGES in [4, 2, 8]
)
@launch(THREADS)
@cluster(SPLITS)
@dynshared
@pipeline(STAGES)
kernel gemm_splitk(
  A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f16>[M, N], alpha: f32, beta: f32
) {
  let row = ctx.block.y * TILE_M
  let column = ctx.block.x / SPLITS * TILE_N
  let steps = (K + TILE_K - 1) / TILE_K
  let part = (steps + SPLITS - 1) / SPLITS * TILE_K
  let first = ctx.cluster.rank * part
  var acc: tile<f32>[TILE_M, TILE_N] = 0.0
  for k in range(first, min(K, first + part), TILE_K) {
    acc += dot(A[row :+ TILE_M, k :+ TILE_K], B[k :+ TILE_K, column :+ TILE_N])
  }
  let rows = TILE_M / SPLITS
  let own = row + ctx.cluster.rank * rows
  var result = alpha * cluster_sum(acc)
  if beta != 0.0 {
    result += beta * f32(C[own :+ rows, column :+ TILE_N])
  }
  C[own :+ rows, column :+ TILE_N] = f16(result)
}
