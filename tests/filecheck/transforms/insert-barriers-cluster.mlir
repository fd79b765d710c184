// RUN: phobos-opt %s -p ph-insert-barriers | filecheck %s

// A barrier of the cluster is one of the CTA too, and behind the wait all threads are through with
// the buffer. In a loop only what other buffers share its bytes with needs a barrier.
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (memref<?xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<?xf32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c9 = arith.constant 9 : index
    %t = tile.load %x[%c0] : memref<?xf32> -> tensor<128xf32>
    // CHECK: scf.for
    // CHECK-NEXT: memref.alloca
    // CHECK-NEXT: tile.reshape
    // CHECK-NEXT: tile.store %u, %b
    // CHECK-NEXT: cluster.barrier
    // CHECK-NEXT: cluster.load %b ahead 0
    // CHECK-NEXT: cluster.arrive
    // CHECK-NEXT: cluster.wait %b
    // CHECK-NEXT: }
    scf.for %i = %c0 to %c9 step %c1 {
      %b = memref.alloca() {tile.offset = 0 : i64} : memref<2x64xf32, #tile.shared>
      %u = tile.reshape %t : tensor<128xf32> -> tensor<2x64xf32>
      tile.store %u, %b[%c0, %c0] : tensor<2x64xf32>, memref<2x64xf32, #tile.shared>
      cluster.barrier
      %p = cluster.load %b ahead 0 : memref<2x64xf32, #tile.shared> -> tensor<1x64xf32>
      cluster.arrive
      cluster.wait %b : memref<2x64xf32, #tile.shared>
    }
    // Without the wait a thread may still read.
    // CHECK: cluster.barrier
    // CHECK-NEXT: cluster.load
    // CHECK-NEXT: memref.alloca
    // CHECK-NEXT: collective.barrier
    // CHECK-NEXT: tile.store
    %d = memref.alloca() {tile.offset = 0 : i64} : memref<2x64xf32, #tile.shared>
    cluster.barrier
    %q = cluster.load %d ahead 1 : memref<2x64xf32, #tile.shared> -> tensor<1x64xf32>
    %e = memref.alloca() {tile.offset = 0 : i64} : memref<128xf32, #tile.shared>
    tile.store %t, %e[%c0] : tensor<128xf32>, memref<128xf32, #tile.shared>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", "gpu.known_block_size" = array<i32: 128, 1, 1>} : () -> ()
}) : () -> ()
