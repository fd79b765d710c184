// C = alpha * A B + beta * C of f32 matrices on tensor cores: factors rounded to tf32, sums in f32.
//
// CTA (x, y) computes one tile of C. The loads of the next steps along K run while a step is
// multiplied. Any M, N and K are right: what is past the end reads as 0 and is not stored. With
// beta = 0 the old C is not read, and may hold anything.

@autotune(
  TILE_M in [128, 256], TILE_N in [64, 128, 256], TILE_K in [32, 64], THREADS in [128, 256]
)
@launch(THREADS)
@dynshared
@tensorcore(tf32)
@pipeline
kernel gemm(
  A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N], alpha: f32, beta: f32
) {
  let row = ctx.block.x * TILE_M
  let column = ctx.block.y * TILE_N
  var acc: tile<f32>[TILE_M, TILE_N] = 0.0
  for k in range(0, K, TILE_K) {
    acc += dot(A[row :+ TILE_M, k :+ TILE_K], B[k :+ TILE_K, column :+ TILE_N])
  }
  var result = alpha * acc
  if beta != 0.0 {
    result += beta * C[row :+ TILE_M, column :+ TILE_N]
  }
  C[row :+ TILE_M, column :+ TILE_N] = result
}
