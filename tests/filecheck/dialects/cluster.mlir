// RUN: phobos-opt %s | phobos-opt -f mlir | filecheck %s
// RUN: phobos-opt %s --print-op-generic | filecheck %s --check-prefix GENERIC

func.func @ops(%t: tensor<4x8x64xf32>, %s: memref<4x8x64xf32, #tile.shared>) {
  // CHECK: %r = cluster.rank
  // GENERIC: %r = "cluster.rank"() : () -> index
  %r = cluster.rank
  // CHECK-NEXT: %u = cluster.sum %t : tensor<4x8x64xf32> -> tensor<1x8x64xf32>
  %u = cluster.sum %t : tensor<4x8x64xf32> -> tensor<1x8x64xf32>
  // CHECK-NEXT: cluster.barrier
  cluster.barrier
  // CHECK-NEXT: %p = cluster.load %s ahead 3 : memref<4x8x64xf32, #tile.shared> -> tensor<1x8x64xf32>
  // GENERIC: "cluster.load"(%s) <{ahead = 3 : i64}>
  %p = cluster.load %s ahead 3 : memref<4x8x64xf32, #tile.shared> -> tensor<1x8x64xf32>
  // CHECK-NEXT: cluster.arrive
  cluster.arrive
  // CHECK-NEXT: cluster.wait %s : memref<4x8x64xf32, #tile.shared>
  cluster.wait %s : memref<4x8x64xf32, #tile.shared>
  func.return
}
