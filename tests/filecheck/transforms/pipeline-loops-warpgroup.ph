// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction{chip=sm_90a},ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_90a},ph-place-tiles,ph-insert-barriers | filecheck %s

// A warpgroup starts a product, starts the copies of a later iteration, and waits for the product
// of the iteration before. Copies are stages - 2 iterations ahead, as two stages are read.
// CHECK: memref.alloca() {{.*}} : memref<4x64x64xf16, #tile.shared>
// CHECK: scf.if
// CHECK: tile.async_commit
// CHECK: scf.if
// CHECK: tile.async_commit
// CHECK: scf.for
// CHECK-NEXT: tile.async_wait 1
// CHECK: collective.proxy_fence
// CHECK-NEXT: collective.barrier
// CHECK-NEXT: %[[D:.*]] = tile.dot {{.*}} using <"wgmma m64n64k16 f16 f32 warps 4x1"> in_flight
// CHECK-NEXT: scf.if
// CHECK: tile.async_copy %A[{{.*}} ordered to
// CHECK: tile.async_copy %B[{{.*}} ordered to
// CHECK: tile.async_commit
// CHECK-NEXT: %[[E:.*]] = tile.await_products 1 of %[[D]]
// CHECK-NOT: collective.barrier
// CHECK: scf.yield %[[E]]
// CHECK: tile.await_products 0 of
// CHECK-NEXT: tile.async_wait 0
@launch(128)
@pipeline(4)
kernel sums(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 64) {
    acc += dot(A[0 :+ 64, k :+ 64], B[k :+ 64, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}

// With two stages, and where the sum is used in the loop, it is waited for behind the copies.
// CHECK: sym_name = "sums", {{.*}}tile.shared_alignment = 1024
// CHECK: scf.for
// CHECK-NEXT: tile.async_wait 0
// CHECK: %[[D:.*]] = tile.dot {{.*}} in_flight
// CHECK: tile.async_commit
// CHECK-NEXT: %[[E:.*]] = tile.await_products 0 of %[[D]]
// CHECK: scf.yield %[[E]]
// CHECK-NOT: tile.await_products
// CHECK: tile.store
@launch(128)
@pipeline(2)
kernel two_stages(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 64) {
    acc += dot(A[0 :+ 64, k :+ 64], B[k :+ 64, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}

// CHECK: sym_name = "two_stages"
// CHECK: scf.for
// CHECK: %[[D:.*]] = tile.dot {{.*}} in_flight
// CHECK: tile.async_commit
// CHECK-NEXT: %[[E:.*]] = tile.await_products 0 of %[[D]]
// CHECK: arith.mulf %{{.*}}, %[[E]]
@launch(128)
@pipeline(4)
kernel scaled(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N], x: f32) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 64) {
    acc = x * (acc + dot(A[0 :+ 64, k :+ 64], B[k :+ 64, 0 :+ 64]))
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
