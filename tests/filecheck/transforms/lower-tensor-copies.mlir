// RUN: phobos-opt %s -p "ph-place-tiles,ph-insert-barriers,ph-lower-to-ptx{chip=sm_90a},ph-ptx-canonicalize" | filecheck %s

// One parameter a tensor map: A is read in boxes of two kinds. Swizzles are of address bits.
// CHECK: ptx.shared extern @ring_shared align 1024
// CHECK: ptx.entry @ring
// CHECK-SAME: A_map_0: b8[128] align 64, A_map_1: b8[128] align 64
// CHECK-SAME: phobos.tensor_maps = [{tensor = "A", type = "tf32", box = array<i64: 256, 32>, swizzle = 128 : i64}, {tensor = "A", type = "f32", box = array<i64: 64, 32>, swizzle = 128 : i64}]
#tall = #tile.shared_layout<"offset=[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [256, 0], [0, 32]] -> [512, 64]">
#small = #tile.shared_layout<"offset=[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]] -> [64, 32]">
"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?x?xf32>, index) -> (), kernel}> ({
  ^bb0(%A: memref<?x?xf32>, %i: index):
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %a = memref.alloca() : memref<1x512x64xf32, #tile.shared>
    %b = memref.alloca() : memref<1x64x32xf32, #tile.shared>
    %ring = memref.alloca() : memref<2xi64, #tile.shared>
    // A thread elected in the first warp makes the barriers: a full stage takes one arrival, that of
    // the thread that copies, an empty one takes one of each warp.
    // CHECK: ptx.elect sync
    // CHECK: ptx.mbarrier init.shared.b64 [%{{.*}} + 139264], %[[ONE:[0-9]+]]
    // CHECK-NEXT: ptx.mbarrier init.shared.b64 [%{{.*}} + 139272], %[[WARPS:[0-9]+]]
    // CHECK-NEXT: ptx.fence mbarrier_init.release.cluster
    tile.open_ring %ring : memref<2xi64, #tile.shared>
    // The warp waits until the stage is empty, and one lane starts the copies, box by box: 256 rows
    // of 128 bytes each.
    // CHECK: ptx.bar sync 0
    // CHECK: ptx.mbarrier try_wait.parity.shared.b64 [%[[STAGE:[0-9]+]] + 139272], %{{[0-9]+}}
    // CHECK: ptx.elect sync
    // CHECK: ptx.mbarrier arrive.expect_tx.shared::cta.b64 [%[[STAGE]] + 139264], %{{[0-9]+}}
    // CHECK: ptx.cp.async.bulk.tensor 2d{{.*}} [%[[A:[0-9]+]]], [%[[MAP:[0-9]+]], {%[[I:[0-9]+]], %[[ZERO:[0-9]+]]}], [%[[STAGE]] + 139264]
    // CHECK: ptx.cp.async.bulk.tensor 2d{{.*}} [%[[A]] + 32768], [%[[MAP]], {%[[I]], %[[ROW:[0-9]+]]}], [%[[STAGE]] + 139264]
    // CHECK: ptx.cp.async.bulk.tensor 2d{{.*}} [%[[A]] + 65536], [%[[MAP]], {%[[COLUMN:[0-9]+]], %[[ZERO]]}], [%[[STAGE]] + 139264]
    // CHECK: ptx.cp.async.bulk.tensor 2d{{.*}} [%[[A]] + 98304], [%[[MAP]], {%[[COLUMN]], %[[ROW]]}], [%[[STAGE]] + 139264]
    // CHECK: ptx.cp.async.bulk.tensor 2d{{.*}} [%{{[0-9]+}} + 131072], [%{{[0-9]+}}, {%[[ZERO]], %[[I]]}], [%[[STAGE]] + 139264]
    tile.fill_stage %ring[%i] after %one bytes 139264 {
      %stage = tile.stage %a[%i] : memref<1x512x64xf32, #tile.shared> -> memref<512x64xf32, #tall, #tile.shared>
      tile.tensor_copy %A[%zero, %i] to %stage swizzle 128 rounded "tf32" : memref<?x?xf32>, memref<512x64xf32, #tall, #tile.shared>
      %other = tile.stage %b[%i] : memref<1x64x32xf32, #tile.shared> -> memref<64x32xf32, #small, #tile.shared>
      tile.tensor_copy %A[%i, %zero] to %other swizzle 128 : memref<?x?xf32>, memref<64x32xf32, #small, #tile.shared>
    } : memref<2xi64, #tile.shared>
    // CHECK: ptx.mbarrier try_wait.parity.shared.b64 [%[[MINE:[0-9]+]] + 139264], %[[ZERO]]
    tile.await_stage %ring[%i] phase %zero : memref<2xi64, #tile.shared>
    // A lane of each warp.
    // CHECK: ptx.setp eq.u32 %{{.*}}, %[[ZERO]]
    // CHECK: ptx.mbarrier arrive.shared::cta.b64 [%[[MINE]] + 139272] guard %{{.*}}
    tile.release_stage %ring[%i] : memref<2xi64, #tile.shared>
    // Not before all have passed.
    // CHECK: ptx.bar sync 0
    // CHECK: ptx.elect sync
    // CHECK: ptx.mbarrier inval.shared.b64 [%{{.*}} + 139264]
    // CHECK: ptx.mbarrier inval.shared.b64 [%{{.*}} + 139272]
    tile.close_ring %ring : memref<2xi64, #tile.shared>
    "gpu.return"() : () -> ()
  }) {sym_name = "ring", phobos.dynshared, "gpu.known_block_size" = array<i32: 64, 1, 1>, arg_attrs = [{phobos.name = "A", phobos.type = "f32"}, {phobos.name = "i"}]} : () -> ()
}) {sym_name = "m"} : () -> ()
