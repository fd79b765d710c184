kernel one_lane(x: tensor<f32>[N], out: tensor<f32>[N]) {
  let base = ctx.block.x * 64
  if ctx.lane == 0 {
    out[base :+ 64] = x[base :+ 64]
  }
}
