// RUN: phobos-opt %s -p ph-bind-constants,ph-analyze-extents,ph-select-contraction{chip=sm_90a},ph-assign-layouts,ph-expand-exchanges,ph-place-tiles,ph-insert-barriers,ph-lower-to-ptx{chip=sm_90a} | filecheck %s

// The descriptor of B: rows of 64 bytes (swizzle 2), 512 bytes from eight rows to the next eight, one
// panel; a step along K is 16 rows, 1024 bytes. Of A: swizzle 2, a step is 32 bytes in each row.
// CHECK-DAG: %[[HIGH:[0-9]+]] = ptx.imm 0x80000020 : b32
// CHECK-DAG: %[[PANEL:[0-9]+]] = ptx.imm 0x800000 : b32
// CHECK: ptx.fence proxy.async.shared::cta
// CHECK-NEXT: ptx.bar sync 0
// CHECK: ptx.or b32 %{{[0-9]+}}, %[[PANEL]]
// CHECK: ptx.wgmma.fence sync.aligned {
// CHECK: ptx.pack b64 {%{{[0-9]+}}, %[[HIGH]]}
// CHECK: ptx.wgmma.mma_async sync.aligned.m64n32k16.f32.f16.f16 {{.*}}, 1, 1, 1, 0, 1
// CHECK: ptx.wgmma.mma_async sync.aligned.m64n32k16.f32.f16.f16 {{.*}}, 1, 1, 1, 0, 1
// CHECK-NEXT: ptx.wgmma.commit_group sync.aligned
// CHECK-NEXT: ptx.wgmma.wait_group sync.aligned 0, {
@launch(128)
kernel product(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 64, 0 :+ 32] = dot(A[0 :+ 64, 0 :+ 32], B[0 :+ 32, 0 :+ 32])
}
