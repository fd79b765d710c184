// dropout: Y is X / keep where a coin says so, with probability keep, and 0 elsewhere.
//
// Teaches: a function, and integers that wrap. `mix` makes of each number one that looks random: it
// is the generator, and needs no state, since element i has the random number of i and the seed,
// whoever asks and however often. A function is expanded where it is called; R stands for the
// extent of whatever tile it is given.
//
// Launch ceildiv(N, BLOCK) CTAs along x.
fn mix(number: tile<u32>[R]) -> tile<u32>[R] {
  var x = number
  x ^= x >> 16
  x *= 0x7feb352d
  x ^= x >> 15
  x *= 0x846ca68b
  x ^= x >> 16
  return x
}

@autotune(BLOCK in [1024, 4096])
kernel dropout(X: tensor<f32>[N], Y: tensor<f32>[N], keep: f32, seed: u32) {
  let base = ctx.block.x * BLOCK
  let element = u32(iota(BLOCK)) + u32(base)
  let random = mix(mix(element) ^ seed)
  let is_kept = f32(random >> 8) < keep * 16777216
  Y[base :+ BLOCK] = where(is_kept, X[base :+ BLOCK] / keep, 0)
}
