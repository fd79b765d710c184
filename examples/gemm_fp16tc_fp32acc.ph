// gemm: C = alpha * A @ B + beta * C on tensor cores: f16 operands, sums in f32.
//
// Teaches: products of tiles. `acc += dot(a, b)` in a loop becomes the tensor cores' instruction of
// the chip, and the loads of the next steps along K run while a step is multiplied. `@aligned`
// promises whole tiles; without it the same kernel is right for any extents.
//
// Launch M / TILE_M by N / TILE_N CTAs along x and y. For sm_75 the indices in the argument list
// have 32 bits, for newer chips 64, since `@tensorcore` stages its operands asynchronously there.
@autotune(TILE_M in [32, 256], TILE_N in [32, 256], TILE_K in [16, 64])
@launch(128)
@tensorcore
@pipeline
@aligned(M = TILE_M, N = TILE_N, K = TILE_K)
kernel gemm(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f16>[M, N],
            alpha: f32, beta: f32) {
  let row = ctx.block.x * TILE_M
  let column = ctx.block.y * TILE_N
  var acc: tile<f32>[TILE_M, TILE_N] = 0.0
  for k in range(0, K, TILE_K) {
    acc += dot(A[row :+ TILE_M, k :+ TILE_K], B[k :+ TILE_K, column :+ TILE_N])
  }
  let old = f32(C[row :+ TILE_M, column :+ TILE_N])
  C[row :+ TILE_M, column :+ TILE_N] = f16(alpha * acc + beta * old)
}
