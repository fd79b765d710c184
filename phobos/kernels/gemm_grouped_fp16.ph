// Many products of different sizes in one launch: f16 matrices, sums in f32.
//
// Row g of the table P is a problem: [m, n, k, a, b]. It multiplies m rows of A, from row a on, in
// their first k columns, by k rows of B, from row b on, in their first n columns, into the m rows
// of C from row a on:
//
//   C[a :+ m, 0 :+ n] = alpha * A[a :+ m, 0 :+ k] B[b :+ k, 0 :+ n] + beta * C[a :+ m, 0 :+ n]
//
// The rest of C stays as it is. Experts of a mixture are such problems: rows sorted by expert, and
// the experts' matrices stacked in B. The CTAs of a one-dimensional grid, as many as run at once,
// take the tiles of all problems in turn; any number of CTAs is right. With beta = 0 the old C is
// not read.

@autotune(
  TILE_M in [64, 128], TILE_N in [64, 128], TILE_K in [32, 64], THREADS in [128, 256]
)
@launch(THREADS)
@dynshared
@pipeline
@persistent
kernel gemm_grouped(
  A: tensor<f16>[R, K], B: tensor<f16>[S, N], C: tensor<f16>[R, N], P: tensor<i32>[G, 5],
  alpha: f32, beta: f32
) {
  var g: index = 0
  var before: index = 0  // tiles of the problems before g
  var item = ctx.block.x
  while g < G {
    let m = index(P[g, 0])
    let n = index(P[g, 1])
    let k_end = index(P[g, 2])
    let a = index(P[g, 3])
    let b = index(P[g, 4])
    let across = (n + TILE_N - 1) / TILE_N
    let tiles = (m + TILE_M - 1) / TILE_M * across
    while item < before + tiles {
      let row = (item - before) / across * TILE_M
      let column = (item - before) % across * TILE_N
      var acc: tile<f32>[TILE_M, TILE_N] = 0.0
      let whole = k_end / TILE_K * TILE_K
      for k in range(0, whole, TILE_K) {
        acc += dot(A[a + row :+ TILE_M, k :+ TILE_K], B[b + k :+ TILE_K, column :+ TILE_N])
      }
      if whole < k_end {
        let rest = i32(k_end - whole)
        let left = where(iota<1>(1, TILE_K) < rest, A[a + row :+ TILE_M, whole :+ TILE_K], 0.0)
        let right = where(
          iota<0>(TILE_K, 1) < rest, B[b + whole :+ TILE_K, column :+ TILE_N], 0.0
        )
        acc += dot(left, right)
      }
      let mine = iota(TILE_M) + i32(row)
      let rows = where(mine < i32(m), mine + i32(a), -1)
      var result = alpha * acc
      if beta != 0.0 {
        result += beta * f32(C[rows, column :+ TILE_N])
      }
      var out = f16(result)
      if column + TILE_N > n {
        out = where(iota<1>(1, TILE_N) < i32(n - column), out, C[rows, column :+ TILE_N])
      }
      C[rows, column :+ TILE_N] = out
      item += ctx.blocks.x
    }
    before += tiles
    g += 1
  }
}
