// top1: P[r] is where row r of X is largest, V[r] how large it is there; one CTA a row.
//
// Teaches: the place of a maximum. `argmax<over 1>(x)` gives the first place at which a row has its
// largest element. Elements past N must not win, so `pad` makes them -inf.
//
// Launch M CTAs along x, with BLOCK at least N.
@autotune(BLOCK in [1024, 16384])
kernel top1(X: tensor<f32>[M, N], P: tensor<i32>[M, 1], V: tensor<f32>[M, 1]) {
  let r = ctx.block.x
  let x = pad(X[r, 0 :+ BLOCK], -inf)
  P[r, :] = argmax<over 1>(x)
  V[r, :] = max<over 1>(x)
}
