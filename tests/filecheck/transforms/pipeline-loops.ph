// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction,ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_80},ph-place-tiles,ph-insert-barriers | filecheck %s --check-prefix COPY
// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction{chip=sm_75},ph-assign-layouts,ph-expand-exchanges,ph-pipeline-loops{chip=sm_75},ph-place-tiles,ph-insert-barriers | filecheck %s --check-prefix AHEAD

// Three stages: two iterations' copies before the loop, one more group an iteration, one barrier.
// COPY: memref.alloca() {{.*}} : memref<3x64x32xf16, #tile.shared>
// COPY: scf.if
// COPY: tile.async_copy %A
// COPY: tile.async_copy %B
// COPY: tile.async_commit
// COPY: scf.if
// COPY: tile.async_commit
// COPY: scf.for
// COPY-NEXT: tile.async_wait 1
// COPY: collective.barrier
// COPY-NEXT: scf.if
// COPY-NEXT: tile.stage
// COPY-NEXT: tile.async_copy %A
// COPY: tile.async_commit
// COPY-NEXT: tile.stage
// COPY-NEXT: tile.stage
// COPY-NOT: collective.barrier
// COPY: tile.dot
// COPY: scf.yield
// COPY: tile.async_wait 0

// Without asynchronous copies, tiles are held in registers for the whole of an iteration, then stored
// to the other of two stages. One barrier an iteration; no branch around the loads. They move in
// parts, so that some are stored while others are loaded.
// AHEAD: scf.if
// AHEAD: tile.load %A{{.*}} -> tensor<32x32xf16
// AHEAD: tile.load %A{{.*}} -> tensor<32x32xf16
// AHEAD: tile.load %B{{.*}} -> tensor<16x64xf16
// AHEAD: tile.load %B{{.*}} -> tensor<16x64xf16
// AHEAD: tile.store %{{.*}} : tensor<32x32xf16{{.*}}memref<64x32xf16
// AHEAD: tile.store
// AHEAD: tile.store
// AHEAD: tile.store
// AHEAD: scf.if
// AHEAD: scf.for
// AHEAD-NEXT: tile.next_stage
// AHEAD-NOT: {{scf.if|tile.store|tile.load}}
// AHEAD: collective.barrier
// AHEAD-NEXT: tile.dot
// AHEAD-NOT: {{collective.barrier|scf.if}}
// AHEAD: tile.store %{{.*}} ordered
// AHEAD-NEXT: tile.load %A
// AHEAD: tile.store %{{.*}} ordered
// AHEAD: tile.load %A
// AHEAD: tile.store %{{.*}} ordered
// AHEAD: tile.load %B
// AHEAD: tile.store %{{.*}} ordered
// AHEAD: tile.load %B
// AHEAD-NOT: collective.barrier
// AHEAD: scf.yield
// AHEAD: tile.next_stage
@launch(128)
@pipeline(3)
kernel product(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
