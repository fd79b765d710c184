// C = alpha * A B + beta * C in f64.
//
// CTA (x, y) computes one tile of C. The loads of the next steps along K run while a step is
// multiplied. Any M, N and K are right: what is past the end reads as 0 and is not stored. With
// beta = 0 the old C is not read, and may hold anything.

@autotune(
  TILE_M in [64, 128], TILE_N in [64, 128], TILE_K in [16, 32], THREADS in [128, 256]
)
@launch(THREADS)
@dynshared
@pipeline
kernel gemm(
  A: tensor<f64>[M, K], B: tensor<f64>[K, N], C: tensor<f64>[M, N], alpha: f64, beta: f64
) {
  let row = ctx.block.x * TILE_M
  let column = ctx.block.y * TILE_N
  var acc: tile<f64>[TILE_M, TILE_N] = 0.0
  for k in range(0, K, TILE_K) {
    acc += dot(A[row :+ TILE_M, k :+ TILE_K], B[k :+ TILE_K, column :+ TILE_N])
  }
  var result = alpha * acc
  if beta != 0.0 {
    result += beta * C[row :+ TILE_M, column :+ TILE_N]
  }
  C[row :+ TILE_M, column :+ TILE_N] = result
}
