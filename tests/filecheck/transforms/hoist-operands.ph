// RUN: phobos-opt %s -p ph-bind-constants,ph-canonicalize,ph-analyze-extents,ph-select-contraction,ph-hoist-operands | filecheck %s

// What is computed of A alone is the same in every iteration of both loops.
// CHECK: [[A:%.*]] = tile.load %A
// CHECK: [[T:%.*]] = arith.addf [[A]]
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: tile.load %A
// CHECK: tile.load %B
// CHECK: tile.dot [[T]]
// CHECK: sym_name = "twice"
@launch(64)
kernel twice(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N], steps: i32) {
  var acc: tile<f32>[32, 16] = 0.0
  for s in range(0, steps) {
    for n in range(0, N, 16) {
      let a = A[0 :+ 32, 0 :+ 16]
      acc += dot(a + a, B[0 :+ 16, n :+ 16])
    }
  }
  C[0 :+ 32, 0 :+ 16] = acc
}

// That W is inside may rest on there being an iteration.
// CHECK: [[RUNS:%.*]] = arith.cmpi slt
// CHECK: [[W:%.*]] = scf.if [[RUNS]]
// CHECK: tile.load %W
// CHECK: scf.for
// CHECK: tile.dot %{{.*}}, [[W]]
// CHECK: sym_name = "proven"
@launch(64)
kernel proven(A: tensor<f16>[M, K], W: tensor<f16>[16, 16], C: tensor<f32>[M, 16]) {
  var acc: tile<f32>[32, 16] = 0.0
  for k in range(0, K, 16) {
    acc += dot(A[0 :+ 32, k :+ 16], W[:, :])
  }
  C[0 :+ 32, :] = acc
}

// The loop writes A, and needs B itself.
// CHECK: scf.for
// CHECK: tile.load %B
// CHECK: tile.load %A
// CHECK: sym_name = "kept"
@launch(64)
kernel kept(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N], steps: i32) {
  var acc: tile<f32>[16, 16] = 0.0
  for s in range(0, steps) {
    let b = B[0 :+ 16, 0 :+ 16]
    acc += dot(A[0 :+ 16, 0 :+ 16], b) + f32(b)
    A[0 :+ 16, 0 :+ 16] = f16(acc)
  }
  C[0 :+ 16, 0 :+ 16] = acc
}
