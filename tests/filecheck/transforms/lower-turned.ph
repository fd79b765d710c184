// RUN: phobos-opt %s -p ph-bind-constants,ph-analyze-extents,ph-select-contraction{chip=sm_90a\ tensor_maps=true},ph-assign-layouts,ph-expand-exchanges,ph-place-tiles,ph-insert-barriers,ph-lower-to-ptx{chip=sm_90a} | filecheck %s

// Threads round and store. Each then loads its fragments of B for all steps along K, 8 bytes at a
// time, and the registers go through the fence with those of the sum. A is read by a descriptor:
// rows of 64 bytes (swizzle 2); a step is 32 bytes in each row.
// CHECK-DAG: %[[HIGH:[0-9]+]] = ptx.imm 0x80000020 : b32
// CHECK: ptx.cvt rn.tf32.f32
// CHECK: ptx.st shared.v4.b32
// CHECK: ptx.fence proxy.async.shared::cta
// CHECK-NEXT: ptx.bar sync 0
// CHECK-COUNT-4: ptx.ld shared.v2.b32
// CHECK-NOT: ptx.ld shared
// CHECK-NOT: ptx.cvt rn.tf32
// CHECK: ptx.wgmma.fence sync.aligned {
// CHECK: ptx.wgmma.mma_async sync.aligned.m64n32k8.f32.tf32.tf32 {{.*}}, 1, 1, 1
// CHECK: ptx.wgmma.mma_async sync.aligned.m64n32k8.f32.tf32.tf32 {{.*}}, 1, 1, 1
// CHECK-NEXT: ptx.wgmma.commit_group sync.aligned
// CHECK-NEXT: ptx.wgmma.wait_group sync.aligned 0, {
// CHECK: ptx.st global.v2.b32
@launch(128)
@tensorcore(tf32)
kernel product(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[32, 64] = 0.0
  for k in range(0, K, 16) {
    acc += dot(A[0 :+ 32, k :+ 16], B[k :+ 16, 0 :+ 64])
  }
  C[0 :+ 32, 0 :+ 64] = acc
}
