// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction{chip=sm_75},ph-assign-layouts,ph-expand-wmma | filecheck %s
// RUN: phobos-compile %s --chip sm_75 -o - | filecheck %s --check-prefix PTX

// The loop carries the sum as fragments: zeros need no scratch buffer, the result does.
// CHECK: %[[F:.*]] = tile.to_fragments %{{.*}} using <"wmma m16n16k16 f16 f32 warps 2x1"> : tensor<32x16xf32, {{.*}}> -> vector<8xf32>
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[T:.*]] = %[[F]]) -> (vector<8xf32>) {
// CHECK: %[[A:.*]] = memref.alloca() : memref<32x16xf16, #tile.shared_layout<"offset=
// CHECK: %[[B:.*]] = memref.alloca() : memref<16x16xf16, #tile.shared_layout<"offset=
// CHECK: %[[D:.*]] = tile.dot %[[A]], %[[B]], %[[T]] using <"wmma m16n16k16 f16 f32 warps 2x1"> : {{.*}}, vector<8xf32> -> vector<8xf32>
// CHECK-NEXT: scf.yield %[[D]] : vector<8xf32>
// CHECK: %[[S:.*]] = memref.alloca() : memref<2x256xf32
// CHECK: tile.from_fragments %[[R]] using <{{.*}}> with %[[S]]

// Plain rows as wide as a piece; a warp waits for its own lanes alone.
// PTX: wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {{.*}}, 16;
// PTX: wmma.load.b.sync.aligned.row.m16n16k16.shared.f16 {{.*}}, 16;
// PTX: wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32
// PTX: wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 {{.*}}, 16;
// PTX-NEXT: bar.warp.sync
// PTX: ld.shared.v4
@launch(64)
@tensorcore(wmma)
kernel product(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[32, 16] = 0.0
  for k in range(0, K, 16) {
    acc += dot(A[0 :+ 32, k :+ 16], B[k :+ 16, 0 :+ 16])
  }
  C[0 :+ 32, 0 :+ 16] = acc
}
