// C = alpha * A B + beta * C with equal work for each CTA: f16 matrices, sums in f32.
//
// The steps along K of all tiles of C, one tile after the other, are dealt out to the CTAs in equal
// shares, whatever the number of tiles. A share may begin or end within a tile; then the product
// of its part goes to W, and when all are there, the CTA that began the tile adds the parts up, in
// order, so that the result is the same in every run with as many CTAs.
//
// The grid is one-dimensional, of as many CTAs as run at once; any number is right. W has
// 2 * TILE_M rows for each CTA; where it has fewer, fewer CTAs work. `state` is two zeros before
// the first launch. With beta = 0 the old C is not read.

@autotune(
  TILE_M in [128, 256], TILE_N in [64, 256], TILE_K in [32, 64], THREADS in [128, 256]
)
@launch(THREADS)
@dynshared
@pipeline
@persistent
kernel gemm_streamk(
  A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f16>[M, N],
  W: tensor<f32>[R, TILE_N], state: tensor<i32>[2], alpha: f32, beta: f32
) {
  let across = (N + TILE_N - 1) / TILE_N
  let tiles = (M + TILE_M - 1) / TILE_M * across
  let steps = max(1, (K + TILE_K - 1) / TILE_K)
  let workers = max(1, min(ctx.blocks.x, R / (2 * TILE_M)))
  let share = tiles * steps / workers
  let longer = tiles * steps % workers  // so many CTAs do one step more
  let me = ctx.block.x
  var at = min(me, workers) * share + min(me, longer)
  var end = at
  if me < workers {
    end = (me + 1) * share + min(me + 1, longer)
  }
  var unfinished = false
  while at < end {
    let row = at / steps / across * TILE_M
    let column = at / steps % across * TILE_N
    let first = at % steps
    let last = min(steps, first + end - at)
    var acc: tile<f32>[TILE_M, TILE_N] = 0.0
    for k in range(first * TILE_K, last * TILE_K, TILE_K) {
      acc += dot(A[row :+ TILE_M, k :+ TILE_K], B[k :+ TILE_K, column :+ TILE_N])
    }
    if first == 0 && last == steps {
      var result = alpha * acc
      if beta != 0.0 {
        result += beta * f32(C[row :+ TILE_M, column :+ TILE_N])
      }
      C[row :+ TILE_M, column :+ TILE_N] = f16(result)
    } else {
      unfinished = first == 0
      W[(2 * me + i32(unfinished)) * TILE_M :+ TILE_M, :] = acc
    }
    at += last - first
  }
  grid_barrier(state)
  if unfinished {
    let tile = (end - 1) / steps
    let row = tile / across * TILE_M
    let column = tile % across * TILE_N
    var acc = W[(2 * me + 1) * TILE_M :+ TILE_M, :]
    var other = me + 1
    while other * share + min(other, longer) < (tile + 1) * steps {
      acc += W[2 * other * TILE_M :+ TILE_M, :]
      other += 1
    }
    var result = alpha * acc
    if beta != 0.0 {
      result += beta * f32(C[row :+ TILE_M, column :+ TILE_N])
    }
    C[row :+ TILE_M, column :+ TILE_N] = f16(result)
  }
}
