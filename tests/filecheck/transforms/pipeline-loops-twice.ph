// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction,ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_80},ph-place-tiles | filecheck %s

// Two loops after each other: the second one's stages take the place of the first one's, so that
// both have as many as fit 48 KB, at 8 KB each.
// CHECK-DAG: memref.alloca() {tile.offset = 0 : i64} : memref<4x64x32xf16, #tile.shared>
// CHECK-DAG: memref.alloca() {tile.offset = 16384 : i64} : memref<4x32x64xf16, #tile.shared>
// CHECK: scf.for
// CHECK-DAG: memref.alloca() {tile.offset = 0 : i64} : memref<4x64x32xf16, #tile.shared>
// CHECK-DAG: memref.alloca() {tile.offset = 16384 : i64} : memref<4x32x64xf16, #tile.shared>
// CHECK: scf.for
@launch(128)
@pipeline
kernel product(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K / 2, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  acc = acc * 2.0
  for k in range(K / 2, K, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
