// axpby_bf16: Z = alpha * X + beta * Y + bias, with X, Y in bf16, the bias in f16 and Z in f32.
//
// Teaches: mixed types and broadcasting. f32(..) converts a tile element by element, so the
// arithmetic is done in f32; the bias is one row, a tile of extent 1 on the first axis, and is
// used for every row of the tile, as in NumPy.
//
// Launch ceil(M / TILE_M) by ceil(N / TILE_N) CTAs along x and y.
@autotune(TILE_M in [16, 128], TILE_N in [128, 256])
kernel axpby(X: tensor<bf16>[M, N], Y: tensor<bf16>[M, N], bias: tensor<f16>[1, N],
             Z: tensor<f32>[M, N], alpha: f32, beta: f32) {
  let row = ctx.block.x * TILE_M
  let col = ctx.block.y * TILE_N
  let x = f32(X[row :+ TILE_M, col :+ TILE_N])
  let y = f32(Y[row :+ TILE_M, col :+ TILE_N])
  Z[row :+ TILE_M, col :+ TILE_N] = alpha * x + beta * y + f32(bias[0, col :+ TILE_N])
}
