// RUN: not phobos-opt %s --split-input-file -p 'ph-assign-layouts,ph-expand-clusters{chip=sm_90}' 2>&1 | filecheck %s
// RUN: not phobos-opt %s --split-input-file -p 'ph-expand-clusters{chip=sm_90}' 2>&1 | filecheck %s --check-prefix LAYOUTS
// RUN: not phobos-opt %s --split-input-file -p 'ph-assign-layouts,ph-expand-clusters{chip=sm_89}' 2>&1 | filecheck %s --check-prefix CHIP

"gpu.module"() <{sym_name = "m"}> ({
  // CHECK: 4 parts of a sum in a kernel whose clusters have 2 CTAs
  "gpu.func"() <{function_type = (memref<?x?x?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?x?x?xf32>):
    %c0 = arith.constant 0 : index
    %t = tile.load %x[%c0, %c0, %c0] : memref<?x?x?xf32> -> tensor<4x8x8xf32>
    %s = cluster.sum %t : tensor<4x8x8xf32> -> tensor<1x8x8xf32>
    tile.store %s, %x[%c0, %c0, %c0] : tensor<1x8x8xf32>, memref<?x?x?xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", phobos.cluster = array<i64: 2, 1, 1>} : () -> ()
}) : () -> ()

// -----

"gpu.module"() <{sym_name = "m"}> ({
  // LAYOUTS: `cluster.sum` needs layouts: run ph-assign-layouts first
  // CHIP: sm_89 has no clusters, and this kernel asks for clusters of 2 CTAs
  // CHIP: help: compile for a chip that has: sm_90, sm_90a, sm_120; or have `@cluster(1)`
  "gpu.func"() <{function_type = (memref<?x?x?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?x?x?xf32>):
    %c0 = arith.constant 0 : index
    %t = tile.load %x[%c0, %c0, %c0] : memref<?x?x?xf32> -> tensor<2x8x8xf32>
    %s = cluster.sum %t : tensor<2x8x8xf32> -> tensor<1x8x8xf32>
    tile.store %s, %x[%c0, %c0, %c0] : tensor<1x8x8xf32>, memref<?x?x?xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", phobos.cluster = array<i64: 2, 1, 1>} : () -> ()
}) : () -> ()

// -----

"gpu.module"() <{sym_name = "m"}> ({
  // CHECK: 2 parts of a sum in a kernel whose clusters have 2 x 2 x 1 CTAs
  "gpu.func"() <{function_type = (memref<?x?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?x?xf32>):
    %c0 = arith.constant 0 : index
    %t = tile.load %x[%c0, %c0] : memref<?x?xf32> -> tensor<2x8xf32>
    %s = cluster.sum %t : tensor<2x8xf32> -> tensor<1x8xf32>
    tile.store %s, %x[%c0, %c0] : tensor<1x8xf32>, memref<?x?xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", phobos.cluster = array<i64: 2, 2, 1>} : () -> ()
}) : () -> ()

// -----

"gpu.module"() <{sym_name = "m"}> ({
  // CHECK: `phobos.cluster` is array<f32: 2.000000e+00>, which is no array of three extents
  "gpu.func"() <{function_type = () -> (), kernel}> ({
    "gpu.return"() : () -> ()
  }) {sym_name = "k", phobos.cluster = array<f32: 2.0>} : () -> ()
}) : () -> ()
