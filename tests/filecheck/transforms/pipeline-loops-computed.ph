// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction,ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_80} | filecheck %s

// %A is copied; what %W becomes is computed: its tile is held in registers for an iteration, then
// stored to the other of two stages. The wait for the copies is for both.
// CHECK: memref.alloca() : memref<2x32x32xf16
// CHECK: tile.load %W
// CHECK: arith.extf
// CHECK: tile.store
// CHECK: memref.alloca() : memref<3x32x32xf16
// CHECK: tile.async_copy %A
// CHECK-NOT: tile.async_copy %W
// CHECK: scf.for
// CHECK-NEXT: tile.async_wait 1
// CHECK: tile.async_copy %A
// CHECK-NOT: tile.next_stage
// CHECK: tile.dot
// CHECK: arith.extf
// CHECK: tile.store %{{.*}} ordered
// CHECK: tile.load %W
// CHECK: scf.yield
@launch(64)
@pipeline(3)
kernel computed(A: tensor<f16>[M, K], W: tensor<f8e4m3>[N, K], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[32, 32] = 0.0
  for k in range(0, K, 32) {
    acc += dot_t(A[0 :+ 32, k :+ 32], W[0 :+ 32, k :+ 32])
  }
  C[0 :+ 32, 0 :+ 32] = acc
}

// The loop writes what it reads.
// CHECK: sym_name = "computed"
// CHECK-NOT: tile.async_copy %A
// CHECK: tile.async_copy %B
// CHECK-NOT: tile.async_copy %A
// CHECK: sym_name = "written"
@launch(64)
@pipeline(3)
kernel written(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[32, 32] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 32, k :+ 32], B[k :+ 32, 0 :+ 32])
    A[0 :+ 32, k + 32 :+ 32] = f16(acc)
  }
  C[0 :+ 32, 0 :+ 32] = acc
}
