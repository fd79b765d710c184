// RUN: phobos-opt %s -p ph-bind-constants,ph-canonicalize,cse,ph-analyze-extents,ph-select-contraction,ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_80},ph-place-tiles,ph-insert-barriers | filecheck %s
// RUN: phobos-opt %s -p default -t ptx | filecheck %s --check-prefix PTX

// Of several products the first is before the copies, so that nothing keeps its operands from being
// loaded early; the one barrier of an iteration is in front of it.
// CHECK: scf.for
// CHECK-NEXT: tile.async_wait 2
// CHECK-NOT: tile.async_copy
// CHECK: collective.barrier
// CHECK-NEXT: tile.dot
// CHECK-NEXT: scf.if
// CHECK: tile.async_copy %B{{.*}} ordered to
// CHECK: tile.async_copy %C{{.*}} ordered to
// CHECK: tile.async_commit
// CHECK-NOT: collective.barrier
// CHECK: tile.dot
// CHECK: scf.yield

// No branch parts the loop: the copies have guards.
// PTX: $L_loop
// PTX: cp.async.wait_group 2;
// PTX: bar.sync
// PTX: ldmatrix
// PTX: mma.sync
// PTX-NOT: bra
// PTX: @%p{{[0-9]+}} cp.async
// PTX-NOT: bra
// PTX: cp.async.commit_group;
// PTX-NOT: bar.sync
// PTX-NOT: bra
// PTX: mma.sync
// PTX: bra $L_loop
@launch(128)
@pipeline
kernel chain(
  A: tensor<f16>[M, 32], B: tensor<f16>[32, K], C: tensor<f16>[K, 32], D: tensor<f32>[M, 32]
) {
  let left = A[0 :+ 64, :]
  var sum: tile<f32>[64, 32] = 0.0
  for k in range(0, K, 32) {
    sum += dot(f16(abs(dot(left, B[:, k :+ 32]))), C[k :+ 32, :])
  }
  D[0 :+ 64, :] = sum
}
