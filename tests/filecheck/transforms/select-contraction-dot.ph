// RUN: phobos-opt %s -p ph-select-contraction{chip=sm_80} | filecheck %s --check-prefix SM80
// RUN: phobos-opt %s -p ph-select-contraction{chip=sm_75} | filecheck %s --check-prefix SM75
// RUN: phobos-opt %s -p ph-select-contraction{chip=sm_90} | filecheck %s --check-prefix SM90

// Warps share the result so that each share is nearly square.
// SM80: tile.dot {{.*}} using <"mma m16n8k16 f16 f32 warps 2x2">
// SM75: tile.dot {{.*}} using <"mma m16n8k8 f16 f32 warps 2x2">
@launch(128)
kernel halves(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 64, 0 :+ 64] = dot(A[0 :+ 64, 0 :+ 32], B[0 :+ 32, 0 :+ 64])
}

// Depths that are no power of two are zeros beyond the tile.
// SM80: tile.dot {{.*}} using <"mma m16n8k32 s8 s32 warps 2x2">
// SM75: tile.dot {{.*}} using <"mma m8n8k16 s8 s32 warps 2x2">
@launch(128)
kernel bytes(A: tensor<i8>[M, K], B: tensor<i8>[K, N], C: tensor<i32>[M, N]) {
  C[0 :+ 64, 0 :+ 64] = dot(A[0 :+ 64, 0 :+ 48], B[0 :+ 48, 0 :+ 64])
}

// f32 is exact unless the kernel asks for less.
// SM80: tile.dot {{.*}} using <"fma m4n4k1 f32 f32 warps 2x2">
// SM75: tile.dot {{.*}} using <"fma m4n4k1 f32 f32 warps 2x2">
@launch(128)
kernel singles(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 64, 0 :+ 64] = dot(A[0 :+ 64, 0 :+ 32], B[0 :+ 32, 0 :+ 64])
}

// SM80: tile.dot {{.*}} using <"mma m16n8k8 tf32 f32 warps 2x2">
// SM75: tile.dot {{.*}} using <"fma m4n4k1 f32 f32 warps 2x2">
@launch(128)
@tensorcore(tf32)
kernel rounded(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 64, 0 :+ 64] = dot(A[0 :+ 64, 0 :+ 32], B[0 :+ 32, 0 :+ 64])
}

// The deepest shape that the tile fills.
// SM80: tile.dot {{.*}} using <"mma m8n8k4 f64 f64 warps 2x2">
// SM75: tile.dot {{.*}} using <"fma m4n4k1 f64 f64 warps 2x2">
// SM90: tile.dot {{.*}} using <"mma m16n8k16 f64 f64 warps 2x2">
// SM80: tile.dot {{.*}} using <"mma m8n8k4 f64 f64 warps 2x2">
// SM75: tile.dot {{.*}} using <"fma m4n4k1 f64 f64 warps 2x2">
// SM90: tile.dot {{.*}} using <"mma m16n8k8 f64 f64 warps 2x2">
@launch(128)
kernel doubles(A: tensor<f64>[M, K], B: tensor<f64>[K, N], C: tensor<f64>[M, N]) {
  C[0 :+ 32, 0 :+ 32] = dot(A[0 :+ 32, 0 :+ 32], B[0 :+ 32, 0 :+ 32])
  C[0 :+ 32, 0 :+ 32] = dot(A[0 :+ 32, 0 :+ 8], B[0 :+ 8, 0 :+ 32])
}

// Where the chip has no product of 8-bit floats they go through f16.
// SM80: tile.dot {{.*}} using <"mma m16n8k16 f16 f32 warps 2x2">
// SM75: tile.dot {{.*}} using <"mma m16n8k8 f16 f32 warps 2x2">
// SM90: tile.dot {{.*}} using <"mma m16n8k32 e4m3*e5m2 f32 warps 2x2">
@launch(128)
kernel small(A: tensor<f8e4m3>[M, K], B: tensor<f8e5m2>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 32, 0 :+ 32] = dot(A[0 :+ 32, 0 :+ 32], B[0 :+ 32, 0 :+ 32])
}

// SM80: tile.dot {{.*}} unsigned, %{{.*}} using <"mma m16n8k32 u8*s8 s32 warps 2x2">
// SM75: tile.dot {{.*}} unsigned, %{{.*}} using <"mma m8n8k16 u8*s8 s32 warps 2x2">
// SM90: tile.dot {{.*}} unsigned, %{{.*}} using <"mma m16n8k32 u8*s8 s32 warps 2x2">
@launch(128)
kernel signs(A: tensor<u8>[M, K], B: tensor<i8>[K, N], C: tensor<i32>[M, N]) {
  C[0 :+ 32, 0 :+ 32] = dot(A[0 :+ 32, 0 :+ 32], B[0 :+ 32, 0 :+ 32])
}

// SM80: tile.dot {{.*}} using <"mma m16n8k16 f16 f16 warps 2x2">
// SM75: tile.dot {{.*}} using <"mma m16n8k8 f16 f16 warps 2x2">
// SM90: tile.dot {{.*}} using <"mma m16n8k16 f16 f16 warps 2x2">
@launch(128)
kernel half_sums(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f16>[M, N]) {
  var acc: tile<f16>[32, 32] = 0.0
  acc += dot(A[0 :+ 32, 0 :+ 32], B[0 :+ 32, 0 :+ 32])
  C[0 :+ 32, 0 :+ 32] = acc
}

// Rows that are folded, or multiplied again, stay within a warp.
// SM80: tile.dot {{.*}} using <"mma m16n8k16 f16 f32 warps 4x1">
// SM80: tile.dot {{.*}} using <"mma m16n8k16 f16 f32 warps 4x1">
@launch(128)
kernel chain(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  let p = dot(A[0 :+ 64, 0 :+ 32], B[0 :+ 32, 0 :+ 64])
  C[0 :+ 64, 0 :+ 64] = dot(f16(p - max<over 1>(p)), B[0 :+ 64, 0 :+ 64])
}
