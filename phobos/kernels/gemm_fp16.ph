// C = alpha * A B + beta * C, all in f16, sums too: half the registers of sums in f32.
//
// The error grows with K, and sums past 65504 overflow; gemm_fp16tc_fp32acc.ph sums in f32. CTA
// (x, y) computes one tile of C. Any M, N and K are right: what is past the end reads as 0 and is
// not stored. With beta = 0 the old C is not read, and may hold anything.

@autotune(
  TILE_M in [128, 256], TILE_N in [128, 256], TILE_K in [32, 64], THREADS in [128, 256]
)
@launch(THREADS)
@dynshared
@pipeline
kernel gemm(
  A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f16>[M, N], alpha: f32, beta: f32
) {
  let row = ctx.block.x * TILE_M
  let column = ctx.block.y * TILE_N
  var acc: tile<f16>[TILE_M, TILE_N] = 0.0
  for k in range(0, K, TILE_K) {
    acc += dot(A[row :+ TILE_M, k :+ TILE_K], B[k :+ TILE_K, column :+ TILE_N])
  }
  var result = alpha * f32(acc)
  if beta != 0.0 {
    result += beta * f32(C[row :+ TILE_M, column :+ TILE_N])
  }
  C[row :+ TILE_M, column :+ TILE_N] = f16(result)
}
