// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction{chip=sm_90a},ph-assign-layouts,ph-expand-exchanges | filecheck %s

// Operands lie as they are loaded, in panels of swizzled rows of up to 128 bytes: here A along K
// (its axis 1) and B along N, four panels of 64 columns.
// CHECK: memref.alloca() : memref<64x64xf16, #tile.shared_layout<"offset=[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]] -> [64, 64]">
// CHECK: memref.alloca() : memref<64x256xf16, #tile.shared_layout<"offset=[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 64], [0, 128]] -> [64, 256]">
@launch(128)
kernel product(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 64, 0 :+ 256] = dot(A[0 :+ 64, 0 :+ 64], B[0 :+ 64, 0 :+ 256])
}

// The sum of one product is in the registers that the next takes its left operand from.
// CHECK: %s = tile.dot {{.*}} using <"wgmma m64n64k16 f16 f32 warps 4x1">
// CHECK: %[[P:[0-9]+]] = arith.truncf %s
// CHECK-NOT: tile.store %[[P]]
// CHECK: tile.dot %[[P]], %{{[0-9]+}}, %{{[0-9]+}} using <"wgmma m64n64k16 f16 f32 warps 4x1"> : tensor<64x64xf16
@launch(128)
kernel chain(A: tensor<f16>[M, K], B: tensor<f16>[K, N], V: tensor<f16>[N, D], C: tensor<f32>[M, D]) {
  let s = dot(A[0 :+ 64, 0 :+ 64], B[0 :+ 64, 0 :+ 64])
  C[0 :+ 64, 0 :+ 64] = dot(f16(s), V[0 :+ 64, 0 :+ 64])
}
