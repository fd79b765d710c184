// cumsum: O[r, k] is the sum of X[r, 0] to X[r, k], one CTA a row.
//
// Teaches: a running fold. `scan<over 1>(x)` adds up along a tile, each element with all before it:
// in a thread's registers, between the lanes of a warp, and between warps. A row of any length is
// walked BLOCK elements at a time; `carry` is what the pieces before add up to, a tile of one
// element, and `sum` of a piece adds to it.
//
// Launch R CTAs along x.
@autotune(BLOCK in [1024, 8192])
kernel running_sum(X: tensor<f32>[R, K], O: tensor<f32>[R, K]) {
  let r = ctx.block.x
  var carry: tile<f32>[1, 1] = 0
  for k in range(0, K, BLOCK) {
    let x = X[r, k :+ BLOCK]
    O[r, k :+ BLOCK] = scan<over 1>(x) + carry
    carry += sum<over 1>(x)
  }
}
