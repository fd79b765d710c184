// RUN: phobos-opt %s --split-input-file -p ph-expand-collectives | filecheck %s
// RUN: phobos-opt %s --split-input-file -p ph-expand-collectives,ph-place-tiles,ph-insert-barriers \
// RUN:   | filecheck %s --check-prefix PLACED

"gpu.module"() ({
  "gpu.func"() <{function_type = (f32) -> (), kernel}> ({
  ^bb0(%x: f32):
    // CHECK:      %[[W:.*]] = collective.reduce add over lane %x : f32 -> f32
    // CHECK-NEXT: %[[S:.*]] = memref.alloca() : memref<2xf32, #tile.shared>
    // CHECK:      %[[LANE:.*]] = ctx.lane
    // CHECK:      scf.if %{{.*}} {
    // CHECK-NEXT:   memref.store %[[W]], %[[S]][%{{.*}}] : memref<2xf32, #tile.shared>
    // CHECK:      %[[P:.*]] = vector.load %[[S]]{{.*}} : memref<2xf32, #tile.shared>, vector<2xf32>
    // CHECK-NEXT: %[[P0:.*]] = vector.extract %[[P]][0]
    // CHECK-NEXT: %[[P1:.*]] = vector.extract %[[P]][1]
    // CHECK-NEXT: arith.addf %[[P0]], %[[P1]] : f32
    // PLACED:      memref.alloca() {tile.offset = 0 : i64} : memref<2xf32, #tile.shared>
    // PLACED:      scf.if
    // PLACED:      }
    // PLACED-NEXT: collective.barrier
    // PLACED-NEXT: vector.load
    %t = collective.reduce add over thread %x : f32 -> f32
    // A second fold has bytes of its own, so its store does not wait for the first one's loads.
    // PLACED:      memref.alloca() {tile.offset = 128 : i64} : memref<2xf32, #tile.shared>
    // PLACED-NOT:  collective.barrier
    // PLACED:      scf.if
    // PLACED:      }
    // PLACED-NEXT: collective.barrier
    // PLACED-NEXT: vector.load
    // PLACED:      tile.shared_bytes = 136 : i64
    %u = collective.reduce max over thread %t : f32 -> f32
    "gpu.return"() : () -> ()
  }) {sym_name = "two_warps", "gpu.known_block_size" = array<i32: 64, 1, 1>} : () -> ()
}) {sym_name = "m"} : () -> ()

// -----

"gpu.module"() ({
  // One warp needs no exchange.
  "gpu.func"() <{function_type = (i1) -> (), kernel}> ({
  ^bb0(%p: i1):
    // CHECK: collective.reduce any over lane %p : i1 -> i1
    // CHECK-NOT: memref.alloca
    %t = collective.reduce any over thread %p : i1 -> i1
    "gpu.return"() : () -> ()
  }) {sym_name = "one_warp", "gpu.known_block_size" = array<i32: 20, 1, 1>} : () -> ()
}) {sym_name = "m"} : () -> ()
