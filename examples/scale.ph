// scale: out = alpha * x, on a grid of any size.
//
// Teaches: the grid-stride loop. A CTA starts at its own tile and steps by the whole grid, so the
// result is right for one CTA and for a thousand. The loop's bounds are the same in every thread
// (`ctx.block` and `ctx.blocks` are uniform), which is what a tile operation in a loop needs.
//
// Launch as many CTAs along x as keep the GPU busy.
@autotune(BLOCK in [1024])
kernel scale(x: tensor<f32>[N], out: tensor<f32>[N], alpha: f32) {
  for base in range(ctx.block.x * BLOCK, N, ctx.blocks.x * BLOCK) {
    out[base :+ BLOCK] = alpha * x[base :+ BLOCK]
  }
}
