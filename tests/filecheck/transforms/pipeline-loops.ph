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

// Without asynchronous copies, a tile is held in registers while the one before it is multiplied,
// then stored to the other of two stages. One barrier an iteration; no branch around the loads.
// AHEAD: scf.if
// AHEAD: tile.load %A
// AHEAD: tile.load %B
// AHEAD: tile.store
// AHEAD: tile.store
// AHEAD: scf.for
// AHEAD-NEXT: tile.next_stage
// AHEAD-NOT: {{scf.if|tile.store}}
// AHEAD: arith.select
// AHEAD-NEXT: tile.load %A
// AHEAD-NEXT: tile.load %B
// AHEAD: collective.barrier
// AHEAD-NEXT: tile.dot
// AHEAD-NOT: collective.barrier
// AHEAD: tile.store %{{.*}} ordered
// AHEAD: tile.store %{{.*}} ordered
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
