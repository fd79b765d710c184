// RUN: phobos-opt %s | phobos-opt -f mlir | filecheck %s

func.func @products(%a: tensor<64x32xf16>, %b: tensor<32x48xf16>, %c: tensor<64x48xf32>,
                    %s: memref<64x32xf16, #tile.shared>) {
  // CHECK: %d = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x48xf16>, tensor<64x48xf32> -> tensor<64x48xf32>
  %d = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x48xf16>, tensor<64x48xf32> -> tensor<64x48xf32>
  // CHECK: tile.dot %s, %b, %d using <"mma m16n8k16 f16 f32 warps 2x4"> : memref<64x32xf16, #tile.shared>
  %e = tile.dot %s, %b, %d using <"mma m16n8k16 f16 f32 warps 2x4"> : memref<64x32xf16, #tile.shared>, tensor<32x48xf16>, tensor<64x48xf32> -> tensor<64x48xf32>
  func.return
}

func.func @turned(%a: tensor<256x32xf32>, %b: tensor<32x128xf32>, %c: tensor<256x128xf32>) {
  // CHECK: %x = tile.round_tf32 %a : tensor<256x32xf32>
  %x = tile.round_tf32 %a : tensor<256x32xf32>
  // CHECK-NEXT: tile.dot %x, %b, %c using <"wgmma m64n256k8 tf32 f32 warps 8x1 turned"> : tensor<256x32xf32>
  %d = tile.dot %x, %b, %c using <"wgmma m64n256k8 tf32 f32 warps 8x1 turned"> : tensor<256x32xf32>, tensor<32x128xf32>, tensor<256x128xf32> -> tensor<256x128xf32>
  func.return
}

func.func @bytes(%a: tensor<64x32xi8>, %b: tensor<32x48xi8>, %c: tensor<64x48xi32>,
                 %x: tensor<64x32xf8E4M3FN>, %y: tensor<32x48xf8E5M2>, %z: tensor<64x48xf16>) {
  // CHECK: tile.dot %a unsigned, %b, %c using <"mma m16n8k32 u8*s8 s32 warps 2x4"> : tensor<64x32xi8>
  %d = tile.dot %a unsigned, %b, %c using <"mma m16n8k32 u8*s8 s32 warps 2x4"> : tensor<64x32xi8>, tensor<32x48xi8>, tensor<64x48xi32> -> tensor<64x48xi32>
  // CHECK-NEXT: tile.dot %x, %y, %z using <"mma m16n8k32 e4m3*e5m2 f16 warps 2x4">
  %e = tile.dot %x, %y, %z using <"mma m16n8k32 e4m3*e5m2 f16 warps 2x4"> : tensor<64x32xf8E4M3FN>, tensor<32x48xf8E5M2>, tensor<64x48xf16> -> tensor<64x48xf16>
  func.return
}

func.func @folds(%t: tensor<8x64xf32>, %p: tensor<8x64xi1>) {
  // CHECK: %m = tile.reduce max %t over [1] : tensor<8x64xf32> -> tensor<8x1xf32>
  %m = tile.reduce max %t over [1] : tensor<8x64xf32> -> tensor<8x1xf32>
  // CHECK-NEXT: %n = tile.reduce count %p over [0, 1] : tensor<8x64xi1> -> tensor<1x1xi32>
  %n = tile.reduce count %p over [0, 1] : tensor<8x64xi1> -> tensor<1x1xi32>
  // CHECK-NEXT: %u = tile.transpose %t : tensor<8x64xf32> -> tensor<64x8xf32>
  %u = tile.transpose %t : tensor<8x64xf32> -> tensor<64x8xf32>
  // CHECK-NEXT: %i = tile.iota [1] : tensor<8x64xi32>
  %i = tile.iota [1] : tensor<8x64xi32>
  // CHECK-NEXT: %j = tile.iota [1] within 4 : tensor<8x64xi32>
  %j = tile.iota [1] within 4 : tensor<8x64xi32>
  func.return
}

func.func @stages(%A: memref<?x?xf16>, %i: index) {
  %all = memref.alloca() : memref<3x64x32xf16, #tile.shared>
  // CHECK: %one = tile.stage %all[%i] : memref<3x64x32xf16, #tile.shared> -> memref<64x32xf16, #tile.shared>
  %one = tile.stage %all[%i] : memref<3x64x32xf16, #tile.shared> -> memref<64x32xf16, #tile.shared>
  // CHECK-NEXT: tile.async_copy %A[%i, %i] in_bounds [true, false] vector 8 to %one as tensor<64x32xf16> : memref<?x?xf16>, memref<64x32xf16, #tile.shared>
  tile.async_copy %A[%i, %i] in_bounds [true, false] vector 8 to %one as tensor<64x32xf16> : memref<?x?xf16>, memref<64x32xf16, #tile.shared>
  // CHECK-NEXT: tile.async_commit
  tile.async_commit
  // CHECK-NEXT: tile.async_wait 1
  tile.async_wait 1
  %zero = arith.constant 0 : index
  %filled = tile.load %A[%i, %i] : memref<?x?xf16> -> tensor<64x32xf16>
  // CHECK: tile.store %filled, %one[%zero, %zero] ordered : tensor<64x32xf16>, memref<64x32xf16, #tile.shared>
  tile.store %filled, %one[%zero, %zero] ordered : tensor<64x32xf16>, memref<64x32xf16, #tile.shared>
  // CHECK-NEXT: tile.next_stage
  tile.next_stage
  func.return
}
