// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction,ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_80} | filecheck %s
// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction{chip=sm_75},ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_75} | filecheck %s --check-prefix AHEAD

// 64 results a thread: the rows of A are copied element by element, by lanes along and across them,
// to where neighbours are neighbours along M. B has its neighbours along N as it is.
// CHECK: tile.async_copy %A{{.*}} as tensor<64x8xf32, #tile.layout<"register={{.*}} lane=[[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]]
// CHECK-SAME: memref<64x8xf32, #tile.shared_layout<"offset=[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [4, 1], [8, 2], [16, 4]]
// CHECK: tile.async_copy %B{{.*}} as tensor<8x64xf32, #tile.layout<"register=[[0, 1], [0, 2],
// CHECK: tile.dot

// Tiles that pass through registers are stored as they were loaded.
// AHEAD: scf.for
// AHEAD: tile.load %A{{.*}} -> tensor<32x8xf32, #tile.layout<"register=[[0, 1], [0, 2]]
@launch(64)
@pipeline
kernel product(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 8) {
    acc += dot(A[0 :+ 64, k :+ 8], B[k :+ 8, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
