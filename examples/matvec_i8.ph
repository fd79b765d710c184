// matvec_i8: as matvec, for 8-bit integers, accumulated exactly in 32 bits.
//
// Teaches: a thread's own run. Inside sum(..) the subscript `k :+ 16` is not a tile of the CTA but
// 16 neighbouring elements of this thread, fetched in one 16-byte access where the alignment can
// be proven. A sum of i32 products of two i8 runs becomes dp4a, four products an instruction.
// Runs are not masked, so a second loop takes the elements behind the last whole run one by one.
//
// Launch ceil(N / 8) CTAs along x.
@launch(256)
kernel matvec_i8(A: tensor<i8>[1, K], W: tensor<i8>[N, K], O: tensor<i32>[1, N]) {
  let col = ctx.block.x * ctx.warps + ctx.warp
  if col < N {
    let whole = K / 16 * 16
    var acc: i32 = 0
    for k in range(ctx.lane * 16, whole, ctx.lanes * 16) {
      acc += sum(i32(A[0, k :+ 16]) * i32(W[col, k :+ 16]))
    }
    for k in range(whole + ctx.lane, K, ctx.lanes) {
      acc += i32(A[0, k]) * i32(W[col, k])
    }
    let total = sum<over ctx.lane>(acc)
    if ctx.lane == 0 {
      O[0, col] = total
    }
  }
}
