// RUN: phobos-opt %s -p ph-analyze-extents,ph-assign-layouts,ph-expand-exchanges,ph-expand-scans | filecheck %s

"gpu.module"() ({
  // Each warp has a whole piece of the axis; the pieces' totals go through shared memory.
  "gpu.func"() <{function_type = (memref<1x512xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<1x512xf32>):
    %c0 = arith.constant 0 : index
    %t = tile.load %x[%c0, %c0] : memref<1x512xf32> -> tensor<1x512xf32>
    // CHECK: [[P:%.*]] = tile.partial_scan add %t over [1] : tensor<1x512xf32, #tile.layout<"register=[{{\[}}0, 1], [0, 2]] lane=[{{\[}}0, 4], [0, 8], [0, 16], [0, 32], [0, 64]] warp=[{{\[}}0, 128], [0, 256]] -> [1, 512]">>
    // CHECK-NEXT: [[U:%.*]] = tile.partial_reduce add %t over [1] : {{.*}} -> tensor<1x4xf32, {{.*}} warp=[{{\[}}0, 1], [0, 2]] -> [1, 4]">>
    // CHECK: memref.alloca() : memref<1x4xf32, {{.*}}, #tile.shared>
    // CHECK-NEXT: tile.store [[U]]
    // CHECK: [[V:%.*]] = tile.load {{.*}} -> tensor<1x4xf32, #tile.layout<"register=[{{\[}}0, 1], [0, 2]
    // CHECK-NEXT: tile.merge_scan add [[V]], [[P]] over [1]
    %s = tile.scan add %t over [1] : tensor<1x512xf32>
    tile.store %s, %x[%c0, %c0] : tensor<1x512xf32>, memref<1x512xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "row", "gpu.known_block_size" = array<i32: 128, 1, 1>} : () -> ()

  // The sum of the same tile reads the pieces' totals from the same buffer.
  "gpu.func"() <{function_type = (memref<1x512xf32>, memref<1x1xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<1x512xf32>, %y: memref<1x1xf32>):
    %c0 = arith.constant 0 : index
    %t = tile.load %x[%c0, %c0] : memref<1x512xf32> -> tensor<1x512xf32>
    // CHECK: [[B:%.*]] = memref.alloca() : memref<1x4xf32, {{.*}}, #tile.shared>
    // CHECK: tile.load [[B]]
    // CHECK: tile.merge_scan
    // CHECK-NOT: alloca
    // CHECK-NOT: tile.partial_reduce
    // CHECK: [[Q:%.*]] = tile.load [[B]]
    // CHECK-NEXT: tile.reduce add [[Q]] over [1]
    %s = tile.scan add %t over [1] : tensor<1x512xf32>
    tile.store %s, %x[%c0, %c0] : tensor<1x512xf32>, memref<1x512xf32>
    %u = tile.reduce add %t over [1] : tensor<1x512xf32> -> tensor<1x1xf32>
    tile.store %u, %y[%c0, %c0] : tensor<1x1xf32>, memref<1x1xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "carried", "gpu.known_block_size" = array<i32: 128, 1, 1>} : () -> ()

  // Warps take the other axis where they can: no exchange.
  "gpu.func"() <{function_type = (memref<4x128xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<4x128xf32>):
    %c0 = arith.constant 0 : index
    %t = tile.load %x[%c0, %c0] : memref<4x128xf32> -> tensor<4x128xf32>
    // CHECK: tile.scan max %t over [1] : {{.*}} warp=[{{\[}}1, 0], [2, 0]] -> [4, 128]">>
    // CHECK-NOT: alloca
    %s = tile.scan max %t over [1] : tensor<4x128xf32>
    tile.store %s, %x[%c0, %c0] : tensor<4x128xf32>, memref<4x128xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "rows", "gpu.known_block_size" = array<i32: 128, 1, 1>} : () -> ()

  // Over threads: the sums of the last lanes of the warps before.
  "gpu.func"() <{function_type = (memref<64xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<64xf32>):
    %i = ctx.thread
    %v = memref.load %x[%i] : memref<64xf32>
    // CHECK: [[S:%.*]] = collective.scan over lane %v : f32
    // CHECK: memref.alloca() : memref<1xf32, #tile.shared>
    // CHECK: vector.load {{.*}} : memref<1xf32, #tile.shared>, vector<1xf32>
    // CHECK: arith.addf {{.*}}, [[S]] : f32
    %s = collective.scan over thread %v : f32
    memref.store %s, %x[%i] : memref<64xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "threads", "gpu.known_block_size" = array<i32: 64, 1, 1>} : () -> ()
}) {sym_name = "m"} : () -> ()
