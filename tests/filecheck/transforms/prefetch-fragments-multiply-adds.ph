// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction,ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_80},ph-prefetch-fragments | filecheck %s
// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction{chip=sm_75},ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_75},ph-prefetch-fragments | filecheck %s --check-prefix WHOLE

// A step is one column of A and one row of B, 8 elements of each a thread; the copies of A are
// behind the loads of the second step, those of B behind the third's.
// CHECK: tile.load {{.*}} -> tensor<64x1xf32,
// CHECK: tile.load {{.*}} -> tensor<1x64xf32,
// CHECK: scf.for
// CHECK: tile.load {{.*}} -> tensor<64x1xf32,
// CHECK-NEXT: tile.load {{.*}} -> tensor<1x64xf32,
// CHECK: tile.async_copy %A
// CHECK: tile.dot
// CHECK: tile.load
// CHECK-NEXT: tile.load
// CHECK: tile.async_copy %B
// CHECK: tile.dot
// CHECK: tile.async_wait
// CHECK: tile.dot {{.*}} tensor<64x1xf32,
// CHECK-NOT: tile.dot
// CHECK: scf.yield

// Tiles from registers lie with the columns of four steps side by side.
// WHOLE: scf.for
// WHOLE: tile.dot {{.*}} : memref<64x8xf32,
// WHOLE-NOT: tile.dot
@launch(64)
@pipeline
kernel product(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 8) {
    acc += dot(A[0 :+ 64, k :+ 8], B[k :+ 8, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
