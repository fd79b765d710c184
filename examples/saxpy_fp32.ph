// saxpy: out = alpha * x + y over vectors of any length.
//
// Teaches: a kernel whose CTAs each own one tile of the output. `x[base :+ BLOCK]` is a tile that
// the threads of the CTA share out among themselves; past the end of a tensor it reads as 0 and
// stores nothing, so no length needs special care. `@autotune` makes BLOCK a compile-time
// constant: 16 unless another value is chosen (phobos-compile --set BLOCK=1024).
//
// Launch ceil(N / BLOCK) CTAs along x.
@autotune(BLOCK in [16, 8192])
kernel saxpy(x: tensor<f32>[N], y: tensor<f32>[N], out: tensor<f32>[N], alpha: f32) {
  let base = ctx.block.x * BLOCK
  out[base :+ BLOCK] = alpha * x[base :+ BLOCK] + y[base :+ BLOCK]
}
