// matvec: O[0, n] is the dot product of the vector A and row n of W, one warp a column of O.
//
// Teaches: work shared by the lanes of a warp. `col` differs between warps and not within one, so
// the `if` splits no warp and the collective over its lanes is allowed inside. In each step the 32
// lanes read 32 neighbouring elements of a row.
//
// Launch ceil(N / 8) CTAs along x: 256 threads are 8 warps.
@launch(256)
kernel matvec(A: tensor<f32>[1, K], W: tensor<f32>[N, K], O: tensor<f32>[1, N]) {
  let col = ctx.block.x * ctx.warps + ctx.warp
  if col < N {
    var acc: f32 = 0.0
    for k in range(ctx.lane, K, ctx.lanes) {
      acc += A[0, k] * W[col, k]
    }
    let total = sum<over ctx.lane>(acc)
    if ctx.lane == 0 {
      O[0, col] = total
    }
  }
}
