// RUN: phobos-opt %s -p ph-bind-constants | filecheck %s

"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<64x?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<64x?xf32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // CHECK: %threads = arith.constant 96 : index
    %threads = ctx.threads
    // CHECK-NEXT: %warps = arith.constant 3 : index
    %warps = ctx.warps
    // CHECK-NEXT: %lanes = arith.constant 32 : index
    %lanes = ctx.lanes
    // A literal extent is known, a named one is read at run time.
    // CHECK-NEXT: %rows = arith.constant 64 : index
    %rows = memref.dim %x, %c0 : memref<64x?xf32>
    // CHECK-NEXT: %columns = memref.dim %x, %c1 : memref<64x?xf32>
    %columns = memref.dim %x, %c1 : memref<64x?xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", "gpu.known_block_size" = array<i32: 96, 1, 1>} : () -> ()
}) {sym_name = "m"} : () -> ()
