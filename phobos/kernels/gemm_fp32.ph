// C = alpha * A B + beta * C in f32, by multiply-adds: as exact as a sum in f32 is.
//
// CTA (x, y) computes one tile of C.

@autotune(TILE_M in [32, 256], TILE_N in [32, 256], TILE_K in [4, 32])
@launch(128)
@pipeline
kernel gemm(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N], alpha: f32, beta: f32) {
  let row = ctx.block.x * TILE_M
  let column = ctx.block.y * TILE_N
  var acc: tile<f32>[TILE_M, TILE_N] = 0.0
  for k in range(0, K, TILE_K) {
    acc += dot(A[row :+ TILE_M, k :+ TILE_K], B[k :+ TILE_K, column :+ TILE_N])
  }
  C[row :+ TILE_M, column :+ TILE_N] = alpha * acc + beta * C[row :+ TILE_M, column :+ TILE_N]
}
