// RUN: phobos-opt %s -p ph-analyze-extents,ph-assign-layouts | filecheck %s

"gpu.module"() ({
  // Consecutive lanes hold consecutive vectors of 16 bytes; what is left are more registers.
  "gpu.func"() <{function_type = (memref<?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>):
    %c = arith.constant 2048 : index
    %b = ctx.block x
    %i = arith.muli %b, %c : index
    // CHECK: tile.load {{.*}} -> tensor<2048xf32, #tile.layout<"register=[{{\[}}1], [2], [1024]] lane=[{{\[}}4], [8], [16], [32], [64]] warp=[{{\[}}128], [256], [512]] -> [2048]">>
    %t = tile.load %x[%i] : memref<?xf32> -> tensor<2048xf32>
    // CHECK: arith.addf %t, %t : tensor<2048xf32, #tile.layout<"register=[{{\[}}1], [2], [1024]]
    %u = arith.addf %t, %t : tensor<2048xf32>
    tile.store %u, %x[%i] : tensor<2048xf32>, memref<?xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "vectors", "gpu.known_block_size" = array<i32: 256, 1, 1>} : () -> ()

  // A repeated row takes the layout of the result without the axis that repeats it.
  "gpu.func"() <{function_type = (memref<?x?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?x?xf32>):
    %c0 = arith.constant 0 : index
    // CHECK: tile.load {{.*}} -> tensor<1x64xf32, #tile.layout<"register=[{{\[}}0, 1], [0, 2], [0, 0]] lane=[{{\[}}0, 4], [0, 8], [0, 16], [0, 32], [0, 0]] warp=[{{\[}}0, 0], [0, 0]] -> [1, 64]">>
    %r = tile.load %x[%c0, %c0] : memref<?x?xf32> -> tensor<1x64xf32>
    // CHECK: tile.broadcast {{.*}} -> tensor<16x64xf32, #tile.layout<"register=[{{\[}}0, 1], [0, 2], [8, 0]] lane=[{{\[}}0, 4], [0, 8], [0, 16], [0, 32], [1, 0]] warp=[{{\[}}2, 0], [4, 0]] -> [16, 64]">>
    %w = tile.broadcast %r : tensor<1x64xf32> -> tensor<16x64xf32>
    tile.store %w, %x[%c0, %c0] : tensor<16x64xf32>, memref<?x?xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "rows", "gpu.known_block_size" = array<i32: 128, 1, 1>} : () -> ()

  // Tiles that flow through a loop have one layout; so have its constants.
  "gpu.func"() <{function_type = (memref<?xf32>, index) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>, %n: index):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    // CHECK: arith.constant dense<0.000000e+00> : tensor<64xf32, #tile.layout<"register=[{{\[}}1]] lane=
    %z = arith.constant dense<0.0> : tensor<64xf32>
    // CHECK: iter_args(%acc = %z) -> (tensor<64xf32, #tile.layout<"register=[{{\[}}1]] lane=
    %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %z) -> (tensor<64xf32>) {
      %t = tile.load %x[%n] : memref<?xf32> -> tensor<64xf32>
      %a = arith.addf %acc, %t : tensor<64xf32>
      scf.yield %a : tensor<64xf32>
    }
    tile.store %s, %x[%c0] : tensor<64xf32>, memref<?xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "loop", "gpu.known_block_size" = array<i32: 32, 1, 1>} : () -> ()

  // What is only read and reshaped is read in vectors too, and its parts are folded in a thread.
  "gpu.func"() <{function_type = (memref<?x?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?x?xf32>):
    %c0 = arith.constant 0 : index
    // CHECK: tile.load {{.*}} -> tensor<1x2048xf32, #tile.layout<"register=[{{\[}}0, 1], [0, 2], [0, 512], [0, 1024]] lane=[{{\[}}0, 4], [0, 8], [0, 16], [0, 32], [0, 64]] warp=[{{\[}}0, 128], [0, 256]] -> [1, 2048]">>
    %r = tile.load %x[%c0, %c0] : memref<?x?xf32> -> tensor<1x2048xf32>
    // CHECK: tile.reshape {{.*}} -> tensor<4x512xf32, #tile.layout<"register=[{{\[}}0, 1], [0, 2], [1, 0], [2, 0]] lane=
    %p = tile.reshape %r : tensor<1x2048xf32> -> tensor<4x512xf32>
    %f = tile.reduce max %p over [0] : tensor<4x512xf32> -> tensor<1x512xf32>
    // CHECK-NOT: convert_layout
    tile.store %f, %x[%c0, %c0] : tensor<1x512xf32>, memref<?x?xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "parts", "gpu.known_block_size" = array<i32: 128, 1, 1>} : () -> ()
}) {sym_name = "m"} : () -> ()
