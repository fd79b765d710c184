// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction,ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_80},ph-prefetch-fragments,ph-place-tiles,ph-insert-barriers | filecheck %s
// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction{chip=sm_75},ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_75},ph-prefetch-fragments,ph-place-tiles,ph-insert-barriers | filecheck %s --check-prefix STORED

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

// The next iteration's first fragments are loaded behind the barrier, before the last product; the
// last iteration loads from its own stage.
// CHECK-NEXT: tile.async_wait 1
// CHECK-NOT: scf.if
// CHECK: arith.select %{{.*}} : index
// CHECK: collective.barrier
// CHECK-NEXT: tile.load %{{.*}} -> tensor<64x16xf16
// CHECK: tile.load %{{.*}} -> tensor<16x64xf16
// CHECK: tile.dot
// CHECK-NOT: tile.dot
// CHECK: scf.yield
// Where threads store to the next stage, the last step waits for the next iteration's barrier to pass,
// and is zeros in the first; that stage is read whether it is needed or not. Parts are stored and
// loaded again between the steps.
// STORED: tile.next_stage
// STORED: collective.barrier
// STORED: tile.load %{{.*}} -> tensor<64x8xf16
// STORED: tile.load %{{.*}} -> tensor<8x64xf16
// STORED: tile.splat {{.*}} -> tensor<64x8xf16
// STORED: tile.splat {{.*}} -> tensor<8x64xf16
// STORED: scf.for
// STORED-NOT: {{tile.store|collective.barrier|scf.if}}
// STORED: tile.dot
// STORED: tile.load %{{.*}} -> tensor<64x8xf16
// STORED-NEXT: tile.load %{{.*}} -> tensor<8x64xf16
// STORED: tile.store %{{.*}} ordered
// STORED-NEXT: tile.load %A{{.*}} -> tensor<16x64xf16
// STORED: tile.store %{{.*}} ordered
// STORED: tile.load %A{{.*}} -> tensor<16x64xf16
// STORED-NOT: {{tile.store|collective.barrier|scf.if}}
// STORED: tile.dot
// STORED: tile.load %{{.*}} -> tensor<64x8xf16
// STORED-NEXT: tile.load %{{.*}} -> tensor<8x64xf16
// STORED-NEXT: tile.store %{{.*}} ordered
// STORED-NEXT: arith
// STORED: tile.load %A{{.*}} -> tensor<16x64xf16
// STORED: tile.load %A
// STORED: tile.load %B
// STORED: tile.load %B
// STORED: tile.load %B
// STORED: tile.dot
// STORED: tile.load %{{.*}} -> tensor<64x8xf16
// STORED-NEXT: tile.load %{{.*}} -> tensor<8x64xf16
// STORED-NEXT: tile.store %{{.*}} ordered
// STORED: tile.load %B{{.*}} -> tensor<16x64xf16
// STORED-NEXT: tile.dot
// STORED-NEXT: tile.next_stage
// STORED: collective.barrier
// STORED: tile.load %{{.*}} -> tensor<64x8xf16
// STORED: tile.load %{{.*}} -> tensor<8x64xf16
// STORED-NEXT: scf.yield
// STORED-NEXT: }
// STORED-NEXT: tile.dot
@launch(128)
@pipeline(3)
kernel product(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 64) {
    acc += dot(A[0 :+ 64, k :+ 64], B[k :+ 64, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
