// RUN: xdsl-opt %s -p ph-infer-uniformity | filecheck %s
// RUN: xdsl-opt %s -f 'ph{set="BLOCK=64"}' | filecheck %s --check-prefix SET
// RUN: xdsl-opt %s -p ph-bind-constants,canonicalize,ph-analyze-extents,ph-assign-layouts,ph-lower-to-ptx -t ph-ptx \
// RUN:   | filecheck %s --check-prefix PTX

@autotune(BLOCK in [16, 512])
kernel copy(x: tensor<f32>[N], out: tensor<f32>[N]) {
  if ctx.thread < N {
    out[ctx.thread] = x[ctx.thread]
  }
  let base = ctx.block.x * BLOCK
  out[base :+ BLOCK] = x[base :+ BLOCK]
}

// CHECK: ctx.thread {ctx.uniformity = "varying"}
// CHECK: tile.load {{.*}} -> tensor<16xf32>

// SET: tile.load {{.*}} -> tensor<64xf32>

// PTX: .visible .entry copy(
