// C[z] = alpha * A[z] B[z] + beta * C[z] for each z, on tensor cores: f16 matrices, sums in f32.
//
// CTA (x, y, z) computes one tile of C[z]. Any extents are right. With beta = 0 the old C is not
// read, and may hold anything.

@autotune(
  TILE_M in [64, 256], TILE_N in [64, 256], TILE_K in [32, 64], THREADS in [128, 256]
)
@launch(THREADS)
@dynshared
@pipeline
kernel gemm_batched(
  A: tensor<f16>[Z, M, K], B: tensor<f16>[Z, K, N], C: tensor<f16>[Z, M, N], alpha: f32, beta: f32
) {
  let z = ctx.block.z
  let row = ctx.block.x * TILE_M
  let column = ctx.block.y * TILE_N
  var acc: tile<f32>[1, TILE_M, TILE_N] = 0.0
  for k in range(0, K, TILE_K) {
    acc += dot(A[z, row :+ TILE_M, k :+ TILE_K], B[z, k :+ TILE_K, column :+ TILE_N])
  }
  var result = alpha * acc
  if beta != 0.0 {
    result += beta * f32(C[z, row :+ TILE_M, column :+ TILE_N])
  }
  C[z, row :+ TILE_M, column :+ TILE_N] = f16(result)
}
