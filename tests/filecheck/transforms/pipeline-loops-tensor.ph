// RUN: phobos-opt %s -p "ph-bind-constants,ph-analyze-extents,ph-select-contraction{chip=sm_90a},ph-assign-layouts,ph-widen-accesses,ph-expand-exchanges,ph-pipeline-loops{chip=sm_90a tensor-maps=true},ph-place-tiles,ph-insert-barriers" | filecheck %s

// One thread copies; all wait for a stage at its barrier, start the product, and wait for the one of
// the iteration before, whose stage is filled for the iteration after the next: with three stages.
// CHECK: %[[A:.*]] = memref.alloca() {{.*}} : memref<3x64x64xf16, #tile.shared>
// CHECK: %[[B:.*]] = memref.alloca() {{.*}} : memref<3x64x128xf16, #tile.shared>
// CHECK: %[[RING:.*]] = memref.alloca() {{.*}} : memref<6xi64, #tile.shared>
// CHECK-NEXT: tile.open_ring %[[RING]]
// CHECK: collective.barrier
// CHECK-NEXT: scf.if
// CHECK-NEXT: tile.fill_stage %[[RING]][%{{.*}}] bytes 24576 {
// CHECK: tile.tensor_copy %A[%{{.*}}, %{{.*}}] to %{{.*}} swizzle 128
// CHECK: tile.tensor_copy %B[%{{.*}}, %{{.*}}] to %{{.*}} swizzle 128
// CHECK: scf.if
// CHECK-NEXT: tile.fill_stage %[[RING]]
// CHECK-NOT: tile.fill_stage
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[READ:.*]] = %{{.*}}, %[[PHASE:.*]] = %{{.*}}, %[[WRITE:.*]] = %{{.*}})
// CHECK-NEXT: tile.await_stage %[[RING]][%[[READ]]] phase %[[PHASE]]
// CHECK: %[[D:.*]] = tile.dot {{.*}} using <"wgmma m64n128k16 f16 f32 warps 4x1"> in_flight
// CHECK-NEXT: %[[E:.*]] = tile.await_products 1 of %[[D]]
// CHECK-NEXT: tile.release_stage %[[RING]][%[[WRITE]]]
// CHECK: scf.if
// CHECK-NEXT: tile.fill_stage %[[RING]][%[[WRITE]]] after %[[PHASE]] bytes 24576 {
// CHECK-NEXT: %[[STAGE:.*]] = tile.stage %[[A]][%[[WRITE]]]
// CHECK-NEXT: tile.tensor_copy %A[%{{.*}}, %{{.*}}] to %[[STAGE]]
// CHECK-NOT: collective.barrier
// CHECK: scf.yield %[[E]], %{{.*}}, %{{.*}}, %[[READ]] :
// CHECK: tile.await_products 0 of
// CHECK: collective.barrier
// CHECK-NEXT: tile.close_ring %[[RING]]
@launch(128)
@dynshared
@pipeline(3)
kernel sums(A: tensor<f16>[M, 512], B: tensor<f16>[512, 256], C: tensor<f32>[M, 256]) {
  var acc: tile<f32>[64, 128] = 0.0
  for k in range(0, 512, 64) {
    acc += dot(A[0 :+ 64, k :+ 64], B[k :+ 64, 0 :+ 128])
  }
  C[0 :+ 64, 0 :+ 128] = acc
}

// A sum that the loop uses is waited for behind the copies, and the stage is released then. What
// dot_t reads lies along K, in rows of 64 bytes.
// CHECK: sym_name = "sums", {{.*}}tile.shared_alignment = 1024
// CHECK: scf.for
// CHECK-NEXT: tile.await_stage %[[RING:[0-9]+]][%[[READ:[0-9]+]]]
// CHECK: %[[D:.*]] = tile.dot {{.*}} in_flight
// CHECK: tile.fill_stage %[[RING]][%{{.*}}] after
// CHECK: tile.tensor_copy %B[%{{.*}}, %{{.*}}] to %{{.*}} swizzle 64 transposed : memref<256x512xf16>, memref<32x64xf16
// CHECK: %[[E:.*]] = tile.await_products 0 of %[[D]]
// CHECK: arith.mulf %{{.*}}, %[[E]]
// CHECK: tile.release_stage %[[RING]][%[[READ]]]
@launch(128)
@pipeline(2)
kernel scaled(A: tensor<f16>[M, 512], B: tensor<f16>[256, 512], C: tensor<f32>[M, 256], x: f32) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, 512, 32) {
    acc = x * (acc + dot_t(A[0 :+ 64, k :+ 32], B[0 :+ 64, k :+ 32]))
  }
  C[0 :+ 64, 0 :+ 64] = acc
}

// Threads copy where rows may start at any address: 511 halves are no whole 16 bytes.
// CHECK: sym_name = "scaled"
// CHECK-NOT: tile.tensor_copy
// CHECK: sym_name = "odd_rows"
@launch(128)
kernel odd_rows(A: tensor<f16>[M, 511], B: tensor<f16>[511, 256], C: tensor<f32>[M, 256]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, 511, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}

// And where the kernel writes the tensor: copies see what threads write behind a fence only.
// CHECK-NOT: tile.tensor_copy
// CHECK: sym_name = "written"
@launch(128)
kernel written(A: tensor<f16>[M, 512], B: tensor<f16>[512, 256], C: tensor<f32>[M, 256]) {
  A[0 :+ 64, 0 :+ 32] = f16(C[0 :+ 64, 0 :+ 32])
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, 512, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}

// A loop behind another on the same tensors: copies only read them. Rings take turns in one place.
// CHECK: tile.open_ring %[[FIRST:.*]] :
// CHECK: scf.for
// CHECK-NEXT: tile.await_stage %[[FIRST]]
// CHECK: tile.close_ring %[[FIRST]]
// CHECK: collective.barrier
// CHECK-NEXT: tile.open_ring %[[SECOND:.*]] :
// CHECK: scf.for
// CHECK-NEXT: tile.await_stage %[[SECOND]]
// CHECK: tile.close_ring %[[SECOND]]
@launch(128)
kernel twice(A: tensor<f16>[M, 512], B: tensor<f16>[512, 256], C: tensor<f32>[M, 256]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, 256, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  acc = acc * 2.0
  for k in range(256, 512, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
