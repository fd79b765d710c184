// C = alpha * A B + beta * C of matrices of 8-bit floats (4 bits of exponent, 3 of mantissa):
// sums in f32, C in bf16.
//
// CTA (x, y) computes one tile of C. The loads of the next steps along K run while a step is
// multiplied. Any M, N and K are right: what is past the end reads as 0 and is not stored. With
// beta = 0 the old C is not read, and may hold anything. B is given
// transposed, [N, K], so that the bytes that the tensor cores take together lie together.

@autotune(
  TILE_M in [128, 256], TILE_N in [64, 256], TILE_K in [64, 128], THREADS in [128, 256, 512]
)
@launch(THREADS)
@dynshared
@pipeline
kernel gemm(
  A: tensor<f8e4m3>[M, K], B: tensor<f8e4m3>[N, K], C: tensor<bf16>[M, N], alpha: f32, beta: f32
) {
  let row = ctx.block.x * TILE_M
  let column = ctx.block.y * TILE_N
  var acc: tile<f32>[TILE_M, TILE_N] = 0.0
  for k in range(0, K, TILE_K) {
    acc += dot_t(A[row :+ TILE_M, k :+ TILE_K], B[column :+ TILE_N, k :+ TILE_K])
  }
  var result = alpha * acc
  if beta != 0.0 {
    result += beta * f32(C[row :+ TILE_M, column :+ TILE_N])
  }
  C[row :+ TILE_M, column :+ TILE_N] = bf16(result)
}
