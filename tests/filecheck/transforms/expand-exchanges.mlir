// RUN: phobos-opt %s -p ph-analyze-extents,ph-assign-layouts,ph-expand-exchanges | filecheck %s
// RUN: phobos-opt %s -p default -t ptx | filecheck %s --check-prefix PTX

"gpu.module"() <{sym_name = "m"}> ({
  // Four warps hold a row: each folds its part, and the parts are exchanged.
  // CHECK: %[[P:[0-9]+]] = tile.partial_reduce add %t over [1] : tensor<1x512xf32, {{.*}}> -> tensor<1x4xf32, #tile.layout<"register=[{{\[}}0, 0], [0, 0]] lane=[{{\[}}0, 0], [0, 0], [0, 0], [0, 0], [0, 0]] warp=[{{\[}}0, 1], [0, 2]] -> [1, 4]">>
  // CHECK: tile.store %[[P]], %[[S:[0-9]+]][
  // The load waits until the sum is needed, so that both folds share a barrier.
  // CHECK: tile.partial_reduce max
  // CHECK: tile.store
  // CHECK: tile.load %[[S]]{{.*}} -> tensor<1x4xf32, #tile.layout<"register=[{{\[}}0, 1], [0, 2], [0, 0], [0, 0]] lane={{.*}} -> [1, 4]">>
  // CHECK: tile.reduce add {{.*}} over [1] : tensor<1x4xf32
  // PTX-COUNT-2: st.shared
  // PTX: bar.sync
  // PTX-NOT: bar.sync
  // PTX: ret
  "gpu.func"() <{function_type = (memref<?x?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?x?xf32>):
    %c0 = arith.constant 0 : index
    %b = ctx.block x
    %t = tile.load %x[%b, %c0] : memref<?x?xf32> -> tensor<1x512xf32>
    %s = tile.reduce add %t over [1] : tensor<1x512xf32> -> tensor<1x1xf32>
    %m = tile.reduce max %t over [1] : tensor<1x512xf32> -> tensor<1x1xf32>
    %d = arith.subf %m, %s : tensor<1x1xf32>
    %w = tile.broadcast %d : tensor<1x1xf32> -> tensor<1x512xf32>
    tile.store %w, %x[%b, %c0] : tensor<1x512xf32>, memref<?x?xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "row", "gpu.known_block_size" = array<i32: 128, 1, 1>} : () -> ()

  // Warps go along the axis that is not folded: nothing crosses them.
  // CHECK-NOT: tile.partial_reduce
  "gpu.func"() <{function_type = (memref<?x?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?x?xf32>):
    %c0 = arith.constant 0 : index
    %t = tile.load %x[%c0, %c0] : memref<?x?xf32> -> tensor<4x512xf32>
    %s = tile.reduce add %t over [1] : tensor<4x512xf32> -> tensor<4x1xf32>
    tile.store %s, %x[%c0, %c0] : tensor<4x1xf32>, memref<?x?xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "rows", "gpu.known_block_size" = array<i32: 128, 1, 1>} : () -> ()

  // A transposition whose two sides want consecutive lanes along their own last axis.
  // CHECK: memref.alloca() : memref<32x32xf32, #tile.shared_layout<"offset={{.*}} -> [32, 32]">, #tile.shared>
  // CHECK: tile.transpose
  "gpu.func"() <{function_type = (memref<?x?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?x?xf32>):
    %c0 = arith.constant 0 : index
    %t = tile.load %x[%c0, %c0] : memref<?x?xf32> -> tensor<32x32xf32>
    %u = tile.transpose %t : tensor<32x32xf32> -> tensor<32x32xf32>
    tile.store %u, %x[%c0, %c0] : tensor<32x32xf32>, memref<?x?xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "turn", "gpu.known_block_size" = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()
