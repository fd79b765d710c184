// RUN: phobos-opt %s -p ph-analyze-extents,ph-assign-layouts,ph-place-tiles,ph-insert-barriers | filecheck %s

"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?xf32>, memref<?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>, %y: memref<?xf32>):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    // Each thread stores what it loaded itself.
    // CHECK: tile.load %x[%c0]
    // CHECK-NOT: collective.barrier
    // CHECK: tile.store %a, %x[%c0]
    %a = tile.load %x[%c0] : memref<?xf32> -> tensor<64xf32>
    tile.store %a, %x[%c0] : tensor<64xf32>, memref<?xf32>
    // Another tensor.
    // CHECK-NEXT: %b = tile.load %y[%c0]
    %b = tile.load %y[%c0] : memref<?xf32> -> tensor<64xf32>
    // Another place of the tensor that was written.
    // CHECK-NEXT: collective.barrier
    // CHECK-NEXT: %c = tile.load %x[%c64]
    %c = tile.load %x[%c64] : memref<?xf32> -> tensor<64xf32>
    tile.store %b, %y[%c64] : tensor<64xf32>, memref<?xf32>
    tile.store %c, %y[%c0] : tensor<64xf32>, memref<?xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "tensor", "gpu.known_block_size" = array<i32: 64, 1, 1>} : () -> ()

  // Both warps read all elements, and one of them writes: reads come before the writes.
  "gpu.func"() <{function_type = (memref<?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>):
    %c0 = arith.constant 0 : index
    // CHECK: tile.load %x
    // CHECK-NEXT: collective.barrier
    // CHECK-NEXT: tile.store
    // CHECK-NEXT: tile.store
    // CHECK-NEXT: gpu.return
    %a = tile.load %x[%c0] : memref<?xf32> -> tensor<32xf32>
    tile.store %a, %x[%c0] : tensor<32xf32>, memref<?xf32>
    tile.store %a, %x[%c0] : tensor<32xf32>, memref<?xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "copies", "gpu.known_block_size" = array<i32: 64, 1, 1>} : () -> ()

  // A loop that moves its tile by the tile's length.
  "gpu.func"() <{function_type = (memref<?xf32>, index) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>, %n: index):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    // CHECK: scf.for
    // CHECK-NEXT: tile.load
    // CHECK-NEXT: tile.store
    scf.for %k = %c0 to %n step %c64 {
      %a = tile.load %x[%k] : memref<?xf32> -> tensor<64xf32>
      tile.store %a, %x[%k] : tensor<64xf32>, memref<?xf32>
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "apart", "gpu.known_block_size" = array<i32: 64, 1, 1>} : () -> ()

  // By less: the end of one iteration is ordered against the start of the next.
  "gpu.func"() <{function_type = (memref<?xf32>, index) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>, %n: index):
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    // CHECK: scf.for
    // CHECK-NEXT: collective.barrier
    // CHECK-NEXT: tile.load
    scf.for %k = %c0 to %n step %c32 {
      %a = tile.load %x[%k] : memref<?xf32> -> tensor<64xf32>
      tile.store %a, %x[%k] : tensor<64xf32>, memref<?xf32>
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "loop", "gpu.known_block_size" = array<i32: 64, 1, 1>} : () -> ()
}) {sym_name = "m"} : () -> ()
