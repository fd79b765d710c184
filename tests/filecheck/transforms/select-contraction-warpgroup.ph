// RUN: phobos-opt %s -p ph-select-contraction{chip=sm_90a} | filecheck %s
// RUN: phobos-opt %s -p ph-select-contraction{chip=sm_90} | filecheck %s --check-prefix PLAIN

// Warpgroups share rows while there are 64 for each, then columns.
// CHECK: tile.dot {{.*}} using <"wgmma m64n256k16 f16 f32 warps 8x1">
// PLAIN: tile.dot {{.*}} using <"mma m16n8k16 f16 f32 warps 2x4">
@launch(256)
kernel rows(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 128, 0 :+ 256] = dot(A[0 :+ 128, 0 :+ 64], B[0 :+ 64, 0 :+ 256])
}

// CHECK: tile.dot {{.*}} using <"wgmma m64n64k16 bf16 f32 warps 4x2">
@launch(256)
kernel columns(A: tensor<bf16>[M, K], B: tensor<bf16>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 64, 0 :+ 128] = dot(A[0 :+ 64, 0 :+ 64], B[0 :+ 64, 0 :+ 128])
}

// Too few rows, threads that are no whole warpgroups, sums that would not fit the registers.
// CHECK: tile.dot {{.*}} using <"mma m16n8k16
@launch(128)
kernel few_rows(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 32, 0 :+ 64] = dot(A[0 :+ 32, 0 :+ 64], B[0 :+ 64, 0 :+ 64])
}

// CHECK: tile.dot {{.*}} using <"mma m16n8k16
@launch(64)
kernel half_a_group(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 64, 0 :+ 64] = dot(A[0 :+ 64, 0 :+ 64], B[0 :+ 64, 0 :+ 64])
}

// CHECK: tile.dot {{.*}} using <"mma m16n8k16
@launch(128)
kernel large(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 128, 0 :+ 256] = dot(A[0 :+ 128, 0 :+ 64], B[0 :+ 64, 0 :+ 256])
}

// Packed sums take half the registers.
// CHECK: tile.dot {{.*}} using <"wgmma m64n256k16 f16 f16 warps 4x1">
@launch(128)
kernel packed(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f16>[M, N]) {
  var acc: tile<f16>[128, 256] = 0.0
  acc += dot(A[0 :+ 128, 0 :+ 64], B[0 :+ 64, 0 :+ 256])
  C[0 :+ 128, 0 :+ 256] = acc
}

// `sync` asks for mma.sync.
// CHECK: tile.dot {{.*}} using <"mma m16n8k16
@launch(128)
@tensorcore(sync)
kernel asked(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 64, 0 :+ 64] = dot(A[0 :+ 64, 0 :+ 64], B[0 :+ 64, 0 :+ 64])
}

// Bytes lie along K in shared memory: where both operands come so from their tensors.
// CHECK: tile.dot {{.*}} using <"wgmma m64n128k32 e4m3 f32 warps 4x1 parts 64">
@launch(128)
kernel floats(A: tensor<f8e4m3>[M, K], B: tensor<f8e4m3>[N, K], C: tensor<f32>[M, N]) {
  C[0 :+ 64, 0 :+ 128] = dot_t(A[0 :+ 64, 0 :+ 64], B[0 :+ 128, 0 :+ 64])
}

// With @fast_math the hardware sums all of K.
// CHECK: tile.dot {{.*}} using <"wgmma m64n128k32 e4m3 f32 warps 4x1">
@fast_math
@launch(128)
kernel floats_fast(A: tensor<f8e4m3>[M, K], B: tensor<f8e4m3>[N, K], C: tensor<f32>[M, N]) {
  C[0 :+ 64, 0 :+ 128] = dot_t(A[0 :+ 64, 0 :+ 64], B[0 :+ 128, 0 :+ 64])
}

// CHECK: tile.dot {{.*}} using <"wgmma m64n8k32 u8*s8 s32 warps 4x1">
@launch(128)
kernel bytes(A: tensor<u8>[M, K], B: tensor<i8>[N, K], C: tensor<i32>[M, N]) {
  C[0 :+ 64, 0 :+ 8] = dot_t(A[0 :+ 64, 0 :+ 64] + u8(1), B[0 :+ 8, 0 :+ 64])
}

// Else 8-bit floats are converted, which leaves them halves that may lie either way.
// CHECK: tile.dot {{.*}} using <"wgmma m64n128k16 f16 f32 warps 4x1">
@launch(128)
kernel floats_across(A: tensor<f8e4m3>[M, K], B: tensor<f8e4m3>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 64, 0 :+ 128] = dot(A[0 :+ 64, 0 :+ 64], B[0 :+ 64, 0 :+ 128])
}

// CHECK: tile.dot {{.*}} using <"mma m16n8k32 s8 s32
@launch(128)
kernel bytes_across(A: tensor<i8>[M, K], B: tensor<i8>[K, N], C: tensor<i32>[M, N]) {
  C[0 :+ 64, 0 :+ 128] = dot(A[0 :+ 64, 0 :+ 64], B[0 :+ 64, 0 :+ 128])
}
