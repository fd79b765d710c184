kernel k(x: tensor<f32>[N]) {
  let a = ctx.block
  let b = ctx.blocks
  let c = ctx.block.w
  let d = ctx.thread.x
  let e = ctx.treads
  let f = ctx.blok.x
  let g = x.shape
  x[a] = 0.0
  let cuda = blockIdx.x
}
