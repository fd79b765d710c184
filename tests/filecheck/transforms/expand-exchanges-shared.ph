// RUN: phobos-opt %s -p ph-bind-constants,ph-canonicalize,cse,ph-analyze-extents,ph-select-contraction,ph-hoist-operands,ph-assign-layouts,ph-expand-exchanges | filecheck %s

// The tile that both loops multiply is put into shared memory once, in front of the first one: it
// does not stay in registers for the second.
// CHECK: %left = tile.load %A
// CHECK: %[[BUFFER:[0-9]+]] = memref.alloca() : memref<64x32xf16
// CHECK: tile.store %left, %[[BUFFER]]
// CHECK: scf.for
// CHECK: tile.dot %[[BUFFER]],
// CHECK-NOT: tile.store %left
// CHECK: scf.for
// CHECK: tile.dot %[[BUFFER]],
@launch(128)
kernel product(A: tensor<f16>[M, 32], B: tensor<f16>[32, N], C: tensor<f32>[M, N]) {
  let left = A[0 :+ 64, :]
  var sum: tile<f32>[64, 64] = 0.0
  for n in range(0, N / 2, 64) {
    sum += dot(left, B[:, n :+ 64])
  }
  sum = abs(sum)
  for n in range(N / 2, N, 64) {
    sum += dot(left, B[:, n :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = sum
}
