// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction,ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_80},ph-prefetch-fragments,ph-place-tiles,ph-insert-barriers | filecheck %s

// The first step's fragments are there before the loop.
// CHECK: tile.async_wait 1
// CHECK: collective.barrier
// CHECK: scf.if
// CHECK: tile.load %{{.*}} -> tensor<64x16xf16
// CHECK: tile.load %{{.*}} -> tensor<16x64xf16

// Each step loads the fragments of the next; the copies come behind the loads, one a step.
// CHECK: scf.for
// CHECK-NOT: async_copy
// CHECK: tile.load %{{.*}} -> tensor<64x16xf16
// CHECK-NEXT: tile.load %{{.*}} -> tensor<16x64xf16
// CHECK-NEXT: scf.if
// CHECK: tile.async_copy %A
// CHECK-NOT: async_copy
// CHECK: tile.dot
// CHECK: tile.load %{{.*}} -> tensor<64x16xf16
// CHECK-NEXT: tile.load %{{.*}} -> tensor<16x64xf16
// CHECK-NEXT: scf.if
// CHECK: tile.async_copy %B
// CHECK: tile.dot
// CHECK: tile.load %{{.*}} -> tensor<64x16xf16
// CHECK-NEXT: tile.load %{{.*}} -> tensor<16x64xf16
// CHECK-NEXT: tile.async_commit
// CHECK-NEXT: tile.dot

// The next iteration's first fragments are loaded behind the barrier, before the last product.
// CHECK-NEXT: tile.async_wait 1
// CHECK: collective.barrier
// CHECK-NEXT: scf.if
// CHECK: tile.load %{{.*}} -> tensor<64x16xf16
// CHECK: tile.load %{{.*}} -> tensor<16x64xf16
// CHECK: else
// CHECK: tile.dot
// CHECK-NOT: tile.dot
// CHECK: scf.yield
@launch(128)
@pipeline(3)
kernel product(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 64) {
    acc += dot(A[0 :+ 64, k :+ 64], B[k :+ 64, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
