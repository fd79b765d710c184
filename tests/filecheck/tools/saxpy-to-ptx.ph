// RUN: phobos-opt %s -p default -t ptx | filecheck %s
// RUN: phobos-compile %s --chip sm_80 -o - | filecheck %s
// RUN: phobos-compile %s --chip sm_75 --index-bits 32 -o - | filecheck %s --check-prefix ABI
// RUN: phobos-compile %s --chip sm_75 --index-bits 64 -o - | filecheck %s --check-prefix WIDE
// RUN: phobos-opt %s -p default --print-between-passes -o %t 2>&1 | filecheck %s --check-prefix STEPS
// RUN: phobos-opt -f mlir %t -t ptx | filecheck %s

@autotune(BLOCK in [1024, 8192])
kernel saxpy(x: tensor<f32>[N], y: tensor<f32>[N], out: tensor<f32>[N], alpha: f32) {
  let base = ctx.block.x * BLOCK
  out[base :+ BLOCK] = alpha * x[base :+ BLOCK] + y[base :+ BLOCK]
}

// CHECK:     .version 7.{{[0-9]}}
// CHECK:     .target sm_80
// CHECK:     .visible .entry saxpy(
// CHECK-NOT: .maxntid
// CHECK:     @%p{{[0-9]+}} ld.global.v4.b32
// CHECK:     @%p{{[0-9]+}} ld.global.v4.b32
// CHECK:     st.global.v4.b32
// CHECK:     ret;

// ABI:      .target sm_75
// ABI:      .entry saxpy(
// ABI-NEXT: .param .u64 x_allocated,
// ABI-NEXT: .param .u64 x_aligned,
// ABI-NEXT: .param .u32 x_offset,
// ABI-NEXT: .param .u32 x_size_0,
// ABI-NEXT: .param .u32 x_stride_0,
// ABI-NEXT: .param .u64 y_allocated,
// ABI-NEXT: .param .u64 y_aligned,
// ABI-NEXT: .param .u32 y_offset,
// ABI-NEXT: .param .u32 y_size_0,
// ABI-NEXT: .param .u32 y_stride_0,
// ABI-NEXT: .param .u64 out_allocated,
// ABI-NEXT: .param .u64 out_aligned,
// ABI-NEXT: .param .u32 out_offset,
// ABI-NEXT: .param .u32 out_size_0,
// ABI-NEXT: .param .u32 out_stride_0,
// ABI-NEXT: .param .f32 alpha
// ABI-NEXT: )

// WIDE:      .param .u64 x_aligned,
// WIDE-NEXT: .param .u64 x_offset,
// WIDE-NEXT: .param .u64 x_size_0,
// WIDE-NEXT: .param .u64 x_stride_0,

// STEPS: // IR after ph-assign-layouts:
// STEPS: tensor<1024xf32, #tile.layout<
// STEPS: // IR after ph-lower-to-ptx:
// STEPS: ptx.entry @saxpy
