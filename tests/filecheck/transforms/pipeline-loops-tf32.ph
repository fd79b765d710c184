// RUN: phobos-opt %s -p "ph-bind-constants,ph-analyze-extents,ph-select-contraction{chip=sm_90a tensor-maps=true},ph-assign-layouts,ph-widen-accesses,ph-expand-exchanges,ph-pipeline-loops{chip=sm_90a tensor-maps=true},ph-place-tiles,ph-insert-barriers" | filecheck %s

// Copies round, and no thread does. A turned product has fragments in registers that the next one
// loads: it is waited for in its own iteration, behind the copies.
// CHECK-NOT: tile.round_tf32
// CHECK: tile.tensor_copy %A[%{{.*}}, %{{.*}}] to %{{.*}} swizzle 128 rounded "tf32"
// CHECK-NEXT: tile.stage
// CHECK-NEXT: tile.tensor_copy %B[%{{.*}}, %{{.*}}] to %{{.*}} swizzle 128 rounded "tf32"
// CHECK: scf.for
// CHECK-NEXT: tile.await_stage
// CHECK: %[[D:.*]] = tile.dot {{.*}} using <"wgmma m64n64k8 tf32 f32 warps 4x1 turned"> in_flight
// CHECK: tile.fill_stage
// CHECK: %[[E:.*]] = tile.await_products 0 of %[[D]]
// CHECK-NEXT: tile.release_stage
// CHECK: scf.yield %[[E]]
// CHECK: tile.close_ring
// CHECK-NOT: tile.await_products
// CHECK: tile.store
@launch(128)
@dynshared
@tensorcore(tf32)
kernel turned(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}

// One whose operands both are in stages runs on beside the next one.
// CHECK: tile.tensor_copy %B[%{{.*}}, %{{.*}}] to %{{.*}} swizzle 128 transposed rounded "tf32"
// CHECK: scf.for
// CHECK: %[[D:.*]] = tile.dot {{.*}} using <"wgmma m64n64k8 tf32 f32 warps 4x1"> in_flight
// CHECK-NEXT: tile.await_products 1 of %[[D]]
// CHECK: tile.await_products 0 of
@launch(128)
@dynshared
@tensorcore(tf32)
kernel straight(A: tensor<f32>[M, K], B: tensor<f32>[N, K], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot_t(A[0 :+ 64, k :+ 32], B[0 :+ 64, k :+ 32])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
