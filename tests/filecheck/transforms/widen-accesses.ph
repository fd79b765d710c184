// RUN: phobos-opt %s -p 'ph-bind-constants,ph-canonicalize,ph-analyze-extents,ph-select-contraction{chip=sm_90},ph-assign-layouts,ph-widen-accesses' | filecheck %s

// A lane of the sums has two neighbours of a row, but loads and stores eight.
// CHECK: scf.for
// CHECK: tile.dot
// CHECK: [[OLD:%.*]] = tile.load %C[{{.*}} -> tensor<32x64xf16, #tile.layout<"register=[{{\[}}0, 1], [0, 2], [0, 4], [8, 0]
// CHECK: [[HELD:%.*]] = tile.convert_layout [[OLD]] : {{.*}} -> tensor<32x64xf16, #tile.layout<"register=[{{\[}}0, 1], [8, 0],
// CHECK: arith.extf [[HELD]]
// CHECK: [[SUM:%.*]] = arith.truncf
// CHECK: [[ROWS:%.*]] = tile.convert_layout [[SUM]] : {{.*}} -> tensor<32x64xf16, #tile.layout<"register=[{{\[}}0, 1], [0, 2], [0, 4], [8, 0], [16, 0]] lane=[{{\[}}0, 8], [0, 16], [1, 0], [2, 0], [4, 0]] warp=[{{\[}}0, 32]]
// CHECK: tile.store [[ROWS]], %C
// CHECK: sym_name = "halves"
@launch(64)
kernel halves(A: tensor<f16>[M, K], B: tensor<f16>[K, 64], C: tensor<f16>[M, 64]) {
  let row = ctx.block.x * 32
  var acc: tile<f32>[32, 64] = 0.0
  for k in range(0, K, 16) {
    acc += dot(A[row :+ 32, k :+ 16], B[k :+ 16, :])
  }
  C[row :+ 32, :] = f16(acc + f32(C[row :+ 32, :]))
}

// Sums of 32 bits fill sectors as they are.
// CHECK-NOT: tile.convert_layout {{.*}} tensor<32x64xf32
// CHECK: tile.store %{{.*}}, %C
// CHECK: sym_name = "words"
@launch(64)
kernel words(A: tensor<f16>[M, K], B: tensor<f16>[K, 64], C: tensor<f32>[M, 64]) {
  let row = ctx.block.x * 32
  var acc: tile<f32>[32, 64] = 0.0
  for k in range(0, K, 16) {
    acc += dot(A[row :+ 32, k :+ 16], B[k :+ 16, :])
  }
  C[row :+ 32, :] = acc
}

// A store that runs as often as the product keeps its layout.
// CHECK: scf.for
// CHECK: [[PART:%.*]] = arith.truncf
// CHECK: tile.store [[PART]], %C
// CHECK: sym_name = "inside"
@launch(64)
kernel inside(A: tensor<f16>[M, K], B: tensor<f16>[K, 64], C: tensor<f16>[M, 64]) {
  for row in range(0, M, 32) {
    C[row :+ 32, :] = f16(dot(A[row :+ 32, 0 :+ 16], B[0 :+ 16, :]))
  }
}
