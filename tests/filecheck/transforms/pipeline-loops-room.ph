// RUN: phobos-opt %s -p ph-bind-constants,ph-analyze-extents,ph-select-contraction,ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_80} | filecheck %s --check-prefix SM80
// RUN: phobos-opt %s -p ph-bind-constants,ph-analyze-extents,ph-select-contraction,ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_86} | filecheck %s --check-prefix SM86

// A stage is 32 KB, and four fit the 163 KB of sm_80; but 128 threads leave registers for a second
// CTA, which has room beside two. On sm_86, two stages leave no room in any case: as many as fit.
// SM80: memref.alloca() : memref<2x128x64xf16, #tile.shared>
// SM80: memref.alloca() : memref<2x64x128xf16, #tile.shared>
// SM86: memref.alloca() : memref<3x128x64xf16, #tile.shared>
@launch(128)
@pipeline
@dynshared
kernel product(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[128, 128] = 0.0
  for k in range(0, K, 64) {
    acc += dot(A[0 :+ 128, k :+ 64], B[k :+ 64, 0 :+ 128])
  }
  C[0 :+ 128, 0 :+ 128] = acc
}
