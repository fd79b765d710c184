// RUN: phobos-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: cluster.sum: axis 0 counts 2, 4 or 8 parts: tensor<3x8xf32>
func.func @three(%t: tensor<3x8xf32>) {
  %u = cluster.sum %t : tensor<3x8xf32> -> tensor<1x8xf32>
  func.return
}

// -----

// CHECK: cluster.sum gives one part of tensor<4x8xf32>, not tensor<2x8xf32>
func.func @two_parts(%t: tensor<4x8xf32>) {
  %u = cluster.sum %t : tensor<4x8xf32> -> tensor<2x8xf32>
  func.return
}

// -----

// CHECK: cluster.sum does not add elements of i8
func.func @bytes(%t: tensor<4x8xi8>) {
  %u = cluster.sum %t : tensor<4x8xi8> -> tensor<1x8xi8>
  func.return
}

// -----

// CHECK: cluster.load: nobody is 4 ranks ahead of 4 CTAs
func.func @beyond(%s: memref<4x8xf32, #tile.shared>) {
  %p = cluster.load %s ahead 4 : memref<4x8xf32, #tile.shared> -> tensor<1x8xf32>
  func.return
}

// -----

// CHECK: cluster.load: tensor<1x4xf32> is no part of memref<4x8xf32, #tile.shared>
func.func @half_a_part(%s: memref<4x8xf32, #tile.shared>) {
  %p = cluster.load %s ahead 1 : memref<4x8xf32, #tile.shared> -> tensor<1x4xf32>
  func.return
}

// -----

// CHECK: cluster.load takes a buffer in shared memory whose axis 0 counts 2, 4 or 8 parts, not memref<?x8xf32>
func.func @of_global_memory(%s: memref<?x8xf32>) {
  %p = cluster.load %s ahead 1 : memref<?x8xf32> -> tensor<1x8xf32>
  func.return
}

// -----

// CHECK: cluster.wait takes a buffer in shared memory whose axis 0 counts 2, 4 or 8 parts, not memref<f32, #tile.shared>
func.func @no_parts(%s: memref<f32, #tile.shared>) {
  cluster.wait %s : memref<f32, #tile.shared>
  func.return
}
