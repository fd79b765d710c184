// RUN: phobos-opt %s -p "ph-place-tiles,ph-insert-barriers,ph-lower-to-ptx{chip=sm_90a},ph-ptx-canonicalize" | filecheck %s

// Coordinates have 32 bits, places 64: what is farther away becomes the last coordinate or the first,
// both of which are outside of every tensor. Stages are few.
// CHECK: ptx.entry @wide
// CHECK-DAG: %[[LAST:[0-9]+]] = ptx.imm 0x7fffffff : b64
// CHECK-DAG: %[[FIRST:[0-9]+]] = ptx.imm 0xffffffff80000000 : b64
// CHECK-DAG: %[[I:[0-9]+]] = ptx.param u64 7
// CHECK-DAG: %[[S:[0-9]+]] = ptx.param u64 8
// CHECK: ptx.cvt u32.u64 %[[S]]
// CHECK: %[[BELOW:[0-9]+]] = ptx.min s64 %[[I]], %[[LAST]]
// CHECK-NEXT: %[[NEAR:[0-9]+]] = ptx.max s64 %[[BELOW]], %[[FIRST]]
// CHECK-NEXT: %[[ROW:[0-9]+]] = ptx.cvt u32.u64 %[[NEAR]]
// CHECK: ptx.cp.async.bulk.tensor 2d{{.*}} {%{{[0-9]+}}, %[[ROW]]}
#swizzled = #tile.shared_layout<"offset=[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]] -> [64, 64]">
"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?x?xf16>, index, index) -> (), kernel}> ({
  ^bb0(%A: memref<?x?xf16>, %i: index, %s: index):
    %zero = arith.constant 0 : index
    %a = memref.alloca() : memref<2x64x64xf16, #tile.shared>
    %ring = memref.alloca() : memref<4xi64, #tile.shared>
    tile.open_ring %ring : memref<4xi64, #tile.shared>
    tile.fill_stage %ring[%s] bytes 8192 {
      %stage = tile.stage %a[%s] : memref<2x64x64xf16, #tile.shared> -> memref<64x64xf16, #swizzled, #tile.shared>
      tile.tensor_copy %A[%i, %zero] to %stage swizzle 128 : memref<?x?xf16>, memref<64x64xf16, #swizzled, #tile.shared>
    } : memref<4xi64, #tile.shared>
    tile.await_stage %ring[%s] phase %zero : memref<4xi64, #tile.shared>
    tile.release_stage %ring[%s] : memref<4xi64, #tile.shared>
    tile.close_ring %ring : memref<4xi64, #tile.shared>
    "gpu.return"() : () -> ()
  }) {sym_name = "wide", "gpu.known_block_size" = array<i32: 64, 1, 1>, arg_attrs = [{phobos.name = "A", phobos.type = "f16"}, {phobos.name = "i"}, {phobos.name = "s"}]} : () -> ()
}) {sym_name = "m", phobos.index_bits = 64 : i64} : () -> ()
