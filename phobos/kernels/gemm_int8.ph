// C = alpha * A B + beta * C of i8 matrices, in i32: exact up to the overflow of i32.
//
// CTA (x, y) computes one tile of C. The loads of the next steps along K run while a step is
// multiplied. Any M, N and K are right: what is past the end reads as 0 and is not stored. With
// beta = 0 the old C is not read, and may hold anything. B is given
// transposed, [N, K], so that the bytes that the tensor cores take together lie together.

@autotune(
  TILE_M in [128, 256], TILE_N in [128, 256], TILE_K in [64, 128], THREADS in [256, 128, 512]
)
@launch(THREADS)
@dynshared
@pipeline
kernel gemm(
  A: tensor<i8>[M, K], B: tensor<i8>[N, K], C: tensor<i32>[M, N], alpha: i32, beta: i32
) {
  let row = ctx.block.x * TILE_M
  let column = ctx.block.y * TILE_N
  var acc: tile<i32>[TILE_M, TILE_N] = 0
  for k in range(0, K, TILE_K) {
    acc += dot_t(A[row :+ TILE_M, k :+ TILE_K], B[column :+ TILE_N, k :+ TILE_K])
  }
  var result = alpha * acc
  if beta != 0 {
    result += beta * C[row :+ TILE_M, column :+ TILE_N]
  }
  C[row :+ TILE_M, column :+ TILE_N] = result
}
