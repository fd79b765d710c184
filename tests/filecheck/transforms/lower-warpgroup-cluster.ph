// RUN: phobos-compile %s --chip sm_90a -o - | filecheck %s

// In a cluster the shared addresses of a CTA have its rank above them, which a descriptor leaves out.
// CHECK: bfe.u32 %[[A:r[0-9]+]], %{{.*}}, 4, 14;
// CHECK: or.b32 %{{r[0-9]+}}, %[[A]], 0x
// CHECK-NOT: shr.u32 %{{r[0-9]+}}, %{{r[0-9]+}}, 4;
// CHECK: wgmma.mma_async
@cluster(2)
@launch(128)
kernel half(A: tensor<f16>[M, 64], B: tensor<f16>[64, N], C: tensor<f32>[M, N]) {
  let row = ctx.block.x / 2 * 64
  let depth = ctx.cluster.rank * 32
  let product = dot(A[row :+ 64, depth :+ 32], B[depth :+ 32, 0 :+ 128])
  C[row + ctx.cluster.rank * 32 :+ 32, 0 :+ 128] = cluster_sum(product)
}
