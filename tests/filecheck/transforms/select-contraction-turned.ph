// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction{chip=sm_90a\ tensor_maps=true} | filecheck %s
// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction{chip=sm_90a} | filecheck %s --check-prefix PLAIN
// RUN: phobos-opt %s -p ph-analyze-extents,ph-select-contraction{chip=sm_90\ tensor_maps=true} | filecheck %s --check-prefix PLAIN
// RUN: phobos-opt %s -p ph-select-contraction{chip=sm_90a\ tensor_maps=true} | filecheck %s --check-prefix PLAIN

// PLAIN-NOT: wgmma
// PLAIN-NOT: tile.round_tf32

// 64 columns of the result for each warpgroup, and all rows; both operands are rounded first.
// CHECK: %[[A:.*]] = tile.load %A
// CHECK: %[[B:.*]] = tile.load %B
// CHECK: %[[X:.*]] = tile.round_tf32 %[[A]] : tensor<256x32xf32>
// CHECK-NEXT: %[[Y:.*]] = tile.round_tf32 %[[B]] : tensor<32x128xf32>
// CHECK-NEXT: tile.dot %[[X]], %[[Y]], %{{.*}} using <"wgmma m64n256k8 tf32 f32 warps 8x1 turned">
@launch(256)
@dynshared
@tensorcore(tf32)
kernel tall(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[256, 128] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 256, k :+ 32], B[k :+ 32, 0 :+ 128])
  }
  C[0 :+ 256, 0 :+ 128] = acc
}

// Warpgroups share rows where there are no more columns. A is rounded once for two products.
// CHECK: tile.dot %[[Z:.*]], %{{.*}}, %{{.*}} using <"wgmma m64n32k8 tf32 f32 warps 4x2 turned">
// CHECK: tile.dot %[[Z]], %{{.*}}, %{{.*}} using <"wgmma m64n32k8 tf32 f32 warps 4x2 turned">
@launch(256)
@tensorcore(tf32)
kernel twice(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var left: tile<f32>[64, 64] = 0.0
  var right: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    let a = A[0 :+ 64, k :+ 32]
    left += dot(a, B[k :+ 32, 0 :+ 64])
    right += dot(a, B[k :+ 32, 64 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = left
  C[0 :+ 64, 64 :+ 64] = right
}

// Where both operands lie along K `wgmma` reads them as they are.
// CHECK: %[[T:.*]] = tile.transpose
// CHECK: %[[X:.*]] = tile.round_tf32
// CHECK-NEXT: %[[Y:.*]] = tile.round_tf32 %[[T]] : tensor<32x64xf32>
// CHECK-NEXT: tile.dot %[[X]], %[[Y]], %{{.*}} using <"wgmma m64n64k8 tf32 f32 warps 4x1">
@launch(128)
@tensorcore(tf32)
kernel along(A: tensor<f32>[M, K], B: tensor<f32>[N, K], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot_t(A[0 :+ 64, k :+ 32], B[0 :+ 64, k :+ 32])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}

// What comes another way, is computed, has too few columns or too large sums is made as ever.
// CHECK-NOT: wgmma
// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32
@launch(128)
@dynshared
@tensorcore(tf32)
kernel across(A: tensor<f32>[K, M], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += t_dot(A[k :+ 32, 0 :+ 64], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}

// CHECK-NOT: wgmma
// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32
@launch(128)
@dynshared
@tensorcore(tf32)
kernel computed(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(2.0 * A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}

// CHECK-NOT: wgmma
// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32
@launch(128)
@dynshared
@tensorcore(tf32)
kernel narrow(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 32] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 32])
  }
  C[0 :+ 64, 0 :+ 32] = acc
}

// CHECK-NOT: wgmma
// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32
@launch(128)
@dynshared
@tensorcore(tf32)
kernel large(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[256, 128] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 256, k :+ 32], B[k :+ 32, 0 :+ 128])
  }
  C[0 :+ 256, 0 :+ 128] = acc
}

// So is what no tensor copy brings: tiles that are no powers of two, more than fits, without a loop
// to copy ahead of, or of a tensor that the kernel writes.
// CHECK-NOT: wgmma
// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32
@launch(128)
@dynshared
@tensorcore(tf32)
kernel odd(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[48, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 48, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 48, 0 :+ 64] = acc
}

// CHECK-NOT: wgmma
// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32
@launch(256)
@tensorcore(tf32)
kernel much(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[256, 128] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 256, k :+ 32], B[k :+ 32, 0 :+ 128])
  }
  C[0 :+ 256, 0 :+ 128] = acc
}

// CHECK-NOT: wgmma
// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32
@launch(128)
@pipeline(1)
@tensorcore(tf32)
kernel by_itself(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}

// CHECK-NOT: wgmma
// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32
@launch(128)
@tensorcore(tf32)
kernel once(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  C[0 :+ 64, 0 :+ 64] = dot(A[0 :+ 64, 0 :+ 32], B[0 :+ 32, 0 :+ 64])
}

// CHECK-NOT: wgmma
// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32
@launch(128)
@tensorcore(tf32)
kernel written(A: tensor<f32>[M, K], B: tensor<f32>[K, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  A[0 :+ 64, 0 :+ 64] = acc
}

// Copies bring all that products of a loop read, or nothing.
// CHECK-NOT: wgmma
// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32
// CHECK-NOT: wgmma
// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32
@launch(128)
@dynshared
@tensorcore(tf32)
kernel mixed(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var left: tile<f32>[64, 64] = 0.0
  var right: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    left += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
    right += dot(A[0 :+ 64, k :+ 32] * 2.0, B[k :+ 32, 64 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = left
  C[0 :+ 64, 64 :+ 64] = right
}

// CHECK-NOT: wgmma
// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32
@launch(128)
@dynshared
@tensorcore(tf32)
kernel counted(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N], S: tensor<f32>[M, 1]) {
  var acc: tile<f32>[64, 64] = 0.0
  var total: tile<f32>[64, 1] = 0.0
  for k in range(0, K, 32) {
    let a = A[0 :+ 64, k :+ 32]
    acc += dot(a, B[k :+ 32, 0 :+ 64])
    total += sum<over 1>(a)
  }
  C[0 :+ 64, 0 :+ 64] = acc
  S[0 :+ 64, 0 :+ 1] = total
}

// CHECK-NOT: wgmma
// CHECK: tile.dot {{.*}} using <"mma m16n8k8 tf32x3
@launch(128)
@dynshared
@tensorcore(tf32x3)
kernel precise(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
