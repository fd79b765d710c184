// RUN: phobos-opt %s -p ph-bind-constants,ph-canonicalize,cse,ph-analyze-extents,ph-select-contraction,ph-hoist-operands,ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_80},ph-hold-operands | filecheck %s
// RUN: phobos-opt %s -p default -t ptx | filecheck %s --check-prefix PTX

// The left tile is loaded as fragments in front of the loop, behind the first copies.
// CHECK: %[[BUFFER:[0-9]+]] = memref.alloca() : memref<64x32xf16
// CHECK: tile.store %left, %[[BUFFER]]
// CHECK: tile.async_copy
// CHECK: %[[HELD:[0-9]+]] = tile.load %[[BUFFER]]
// CHECK: scf.for
// CHECK: tile.dot %[[HELD]],
// PTX: .entry held
// PTX: cp.async.commit_group;
// PTX-COUNT-4: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX: $L_loop
// PTX-NOT: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX: bra $L_loop
@launch(128)
@pipeline
kernel held(A: tensor<f16>[M, 32], B: tensor<f16>[32, N], C: tensor<f32>[M, N]) {
  let left = A[0 :+ 64, :]
  var sum: tile<f32>[64, 64] = 0.0
  for n in range(0, N, 64) {
    sum += dot(left, B[:, n :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = sum
}

// Beside 128 registers of sums there is no room for 64 of the left tile.
// CHECK: %[[LARGE:[0-9]+]] = memref.alloca() : memref<128x64xf16
// CHECK: tile.store %large, %[[LARGE]]
// CHECK: scf.for
// CHECK: tile.dot %[[LARGE]],
@launch(128)
@pipeline
@dynshared
kernel left(A: tensor<f16>[M, 64], B: tensor<f16>[64, N], C: tensor<f32>[M, N]) {
  let large = A[0 :+ 128, :]
  var sum: tile<f32>[128, 128] = 0.0
  for n in range(0, N, 128) {
    sum += dot(large, B[:, n :+ 128])
  }
  C[0 :+ 128, 0 :+ 128] = sum
}
