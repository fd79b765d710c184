"""Programs that several tests compile."""

from __future__ import annotations

SAXPY = """\
@autotune(BLOCK in [16, 8192])
kernel saxpy(x: tensor<f32>[N], y: tensor<f32>[N], out: tensor<f32>[N], alpha: f32) {
  let base = ctx.block.x * BLOCK
  out[base :+ BLOCK] = alpha * x[base :+ BLOCK] + y[base :+ BLOCK]
}
"""

TWO_KERNELS = """\
kernel first(x: tensor<f32>[N]) {
  x[ctx.block.x * 32 :+ 32] = 1.0
}
kernel second(x: tensor<f32>[N]) {
  x[ctx.block.x * 64 :+ 64] = 2.0
}
"""

UNKNOWN_NAME = """\
kernel k(x: tensor<f32>[N]) {
  x[ctx.block.x * 16 :+ 16] = alpha
}
"""
