"""The programs that the language was promised with, as users were shown them."""

from __future__ import annotations

SAXPY = """\
@autotune(BLOCK in [16, 8192])
kernel saxpy(x: tensor<f32>[N], y: tensor<f32>[N], out: tensor<f32>[N], alpha: f32) {
  let base = ctx.block.x * BLOCK
  out[base :+ BLOCK] = alpha * x[base :+ BLOCK] + y[base :+ BLOCK]
}
"""

ADD = """\
@autotune(BLOCK in [256, 4096])
kernel add(x: tensor<f32>[N], y: tensor<f32>[N], out: tensor<f32>[N]) {
  let base = ctx.block.x * BLOCK
  out[base :+ BLOCK] = x[base :+ BLOCK] + y[base :+ BLOCK]
}
"""

SCALE = """\
@autotune(BLOCK in [1024])
kernel scale(x: tensor<f32>[N], out: tensor<f32>[N], alpha: f32) {
  for base in range(ctx.block.x * BLOCK, N, ctx.blocks.x * BLOCK) {
    out[base :+ BLOCK] = alpha * x[base :+ BLOCK]
  }
}
"""

ROW_SUM = """\
@launch(256)
kernel row_sum(X: tensor<f32>[R, K], O: tensor<f32>[R, 1]) {
  let r = ctx.block.x
  var acc: f32 = 0.0
  for k in range(ctx.thread, K, ctx.threads) {
    acc += X[r, k]
  }
  let total = sum<over ctx.thread>(acc)
  if ctx.thread == 0 {
    O[r, 0] = total
  }
}
"""

GEMM = """\
@autotune(TILE_M in [32, 256], TILE_N in [32, 256], TILE_K in [4, 32])
@launch(256)
@pipeline
@aligned(M = TILE_M, N = TILE_N, K = TILE_K)
kernel gemm(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N], alpha: f32, beta: f32)
{
  let pm = ctx.block.x
  let pn = ctx.block.y
  // one tile of C
  C[pm * TILE_M :+ TILE_M, pn * TILE_N :+ TILE_N] = alpha * acc + beta * c_old
}
"""

FRAGMENTS = """\
kernel fragments(W: tensor<f32>[N, K], A: tensor<f32>[1, K]) {
  let head = ctx.block.z
  let row = head * S + ctx.block.x * BR
  let q = Q[row :+ BR, :]
  let col = ctx.block.x * ctx.warps + ctx.warp
  var acc: f32 = 0.0
  for k in range(ctx.lane, K, ctx.lanes) {
    acc += W[col, k] * A[0, k]
  }
  for k in range(ctx.lane * 16, K, ctx.lanes * 16) {
    acc += f32(sum(i32(A[0, k :+ 16]) * i32(W[col, k :+ 16])))
  }
  if ctx.lane == 0 { out[col] = acc }
}
"""

SEED_PROGRAMS = {
    "saxpy": SAXPY,
    "add": ADD,
    "scale": SCALE,
    "row_sum": ROW_SUM,
    "gemm": GEMM,
    "fragments": FRAGMENTS,
}
"""All of them by name; each is right in its syntax, not all in what they mean."""
