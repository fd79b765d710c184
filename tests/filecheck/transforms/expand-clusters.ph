// RUN: phobos-opt %s -p 'ph-analyze-extents,ph-assign-layouts,ph-expand-clusters{chip=sm_90}' | filecheck %s
// RUN: phobos-compile %s --chip sm_90 -o - | filecheck %s --check-prefix PTX

// Each thread stores its elements and reads those of its CTA's part from every CTA, four at once,
// from its own last but adds them to those.
// Who has read says so at once, and waits for the others at the end.
// CHECK-LABEL: cluster.rank
// CHECK: %[[B:[0-9]+]] = memref.alloca() : memref<4x8x64xf32, #tile.shared_layout<"offset={{.*}} -> [4, 8, 64]">, #tile.shared>
// CHECK-NEXT: tile.store %{{.*}}, %[[B]]
// CHECK-NEXT: cluster.barrier
// CHECK-NEXT: %[[P1:[0-9]+]] = cluster.load %[[B]] ahead 1 {{.*}} -> tensor<1x8x64xf32
// CHECK-NEXT: %[[P2:[0-9]+]] = cluster.load %[[B]] ahead 2
// CHECK-NEXT: %[[P3:[0-9]+]] = cluster.load %[[B]] ahead 3
// CHECK-NEXT: %[[P0:[0-9]+]] = cluster.load %[[B]] ahead 0
// CHECK-NEXT: cluster.arrive
// CHECK-NEXT: %[[S1:[0-9]+]] = arith.addf %[[P0]], %[[P1]]
// CHECK-NEXT: %[[S2:[0-9]+]] = arith.addf %[[S1]], %[[P2]]
// CHECK-NEXT: arith.addf %[[S2]], %[[P3]]
// CHECK: tile.store
// CHECK-NEXT: cluster.wait %[[B]]
// CHECK-NEXT: gpu.return

// PTX: .reqnctapercluster 4, 1, 1
// PTX-COUNT-4: st.shared.v4.b32
// PTX-NOT: bar.sync
// PTX: barrier.cluster.arrive.release.aligned;
// PTX-NEXT: barrier.cluster.wait.acquire.aligned;
// PTX: mapa.shared::cluster.u32
// PTX-COUNT-3: ld.shared::cluster.v4.b32
// PTX: ld.shared.v4.b32
// PTX-NEXT: barrier.cluster.arrive.release.aligned;
// PTX: st.global.v4.b32
// PTX-NEXT: barrier.cluster.wait.acquire.aligned;
// PTX-NEXT: ret;
@cluster(4)
@launch(128)
kernel sums(x: tensor<f32>[N, 64], out: tensor<f32>[M, 64]) {
  let first = ctx.block.x / ctx.cluster.size * 32 + ctx.cluster.rank * 8
  out[first :+ 8, :] = cluster_sum(x[ctx.block.x * 32 :+ 32, :])
}
