@autotune(BLOCK in [16, 8192])
kernel saxpy(x: tensor<f32>[N], y: tensor<f32>[N], out: tensor<f32>[N], alpha: f32) {
  let base = ctx.block.x * BLOK
  out[base :+ BLOCK] = alhpa * x[bsae :+ BLOCK] + z[base :+ BLOCK]
}
