// RUN: not phobos-opt %s -p "ph-place-tiles,ph-insert-barriers,ph-lower-to-ptx{chip=sm_90a}" --split-input-file 2>&1 | filecheck %s

// CHECK: k.ph:3:7: error: nothing opens this ring
// CHECK: help: `tile.open_ring` makes its barriers
"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?x?xf16>, index) -> (), kernel}> ({
  ^bb0(%A: memref<?x?xf16>, %i: index):
    %ring = memref.alloca() : memref<4xi64, #tile.shared>
    tile.await_stage %ring[%i] phase %i : memref<4xi64, #tile.shared> loc("k.ph":3:7)
    "gpu.return"() : () -> ()
  }) {sym_name = "k", "gpu.known_block_size" = array<i32: 128, 1, 1>, arg_attrs = [{phobos.name = "A", phobos.type = "f16"}, {phobos.name = "i"}]} : () -> ()
}) {sym_name = "m"} : () -> ()

// -----

// CHECK: k.ph:3:7: error: `tile.open_ring` wants a `memref.alloca` of shared memory that has its place
// CHECK: help: `ph-place-tiles` gives it one
"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?x?xf16>, index) -> (), kernel}> ({
  ^bb0(%A: memref<?x?xf16>, %i: index):
    %ring = memref.alloca() : memref<4xi64>
    tile.open_ring %ring : memref<4xi64> loc("k.ph":3:7)
    "gpu.return"() : () -> ()
  }) {sym_name = "k", "gpu.known_block_size" = array<i32: 128, 1, 1>, arg_attrs = [{phobos.name = "A", phobos.type = "f16"}, {phobos.name = "i"}]} : () -> ()
}) {sym_name = "m"} : () -> ()

// -----

// CHECK: k.ph:3:7: error: a tensor copy belongs into a `tile.fill_stage`
#swizzled = #tile.shared_layout<"offset=[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]] -> [64, 64]">
"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?x?xf16>, index) -> (), kernel}> ({
  ^bb0(%A: memref<?x?xf16>, %i: index):
    %ring = memref.alloca() : memref<4xi64, #tile.shared>
    %s = memref.alloca() : memref<64x64xf16, #swizzled, #tile.shared>
    tile.open_ring %ring : memref<4xi64, #tile.shared>
      tile.tensor_copy %A[%i, %i] to %s swizzle 128 : memref<?x?xf16>, memref<64x64xf16, #swizzled, #tile.shared> loc("k.ph":3:7)
    "gpu.return"() : () -> ()
  }) {sym_name = "k", "gpu.known_block_size" = array<i32: 128, 1, 1>, arg_attrs = [{phobos.name = "A", phobos.type = "f16"}, {phobos.name = "i"}]} : () -> ()
}) {sym_name = "m"} : () -> ()

// -----

// CHECK: k.ph:3:7: error: boxes swizzled by 128 bytes put elements elsewhere than the layout of memref<64x64xf16, #tile.shared> has them
"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?x?xf16>, index) -> (), kernel}> ({
  ^bb0(%A: memref<?x?xf16>, %i: index):
    %ring = memref.alloca() : memref<4xi64, #tile.shared>
    %s = memref.alloca() : memref<64x64xf16, #tile.shared>
    tile.open_ring %ring : memref<4xi64, #tile.shared>
    tile.fill_stage %ring[%i] bytes 8192 {
      tile.tensor_copy %A[%i, %i] to %s swizzle 128 : memref<?x?xf16>, memref<64x64xf16, #tile.shared> loc("k.ph":3:7)
    } : memref<4xi64, #tile.shared>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", "gpu.known_block_size" = array<i32: 128, 1, 1>, arg_attrs = [{phobos.name = "A", phobos.type = "f16"}, {phobos.name = "i"}]} : () -> ()
}) {sym_name = "m"} : () -> ()

// -----

// CHECK: k.ph:3:7: error: boxes swizzled by 64 bytes put elements elsewhere
// CHECK: help: boxes swizzled by 128 bytes have it
#swizzled = #tile.shared_layout<"offset=[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]] -> [64, 64]">
"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?x?xf16>, index) -> (), kernel}> ({
  ^bb0(%A: memref<?x?xf16>, %i: index):
    %ring = memref.alloca() : memref<4xi64, #tile.shared>
    %s = memref.alloca() : memref<64x64xf16, #swizzled, #tile.shared>
    tile.open_ring %ring : memref<4xi64, #tile.shared>
    tile.fill_stage %ring[%i] bytes 8192 {
      tile.tensor_copy %A[%i, %i] to %s swizzle 64 : memref<?x?xf16>, memref<64x64xf16, #swizzled, #tile.shared> loc("k.ph":3:7)
    } : memref<4xi64, #tile.shared>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", "gpu.known_block_size" = array<i32: 128, 1, 1>, arg_attrs = [{phobos.name = "A", phobos.type = "f16"}, {phobos.name = "i"}]} : () -> ()
}) {sym_name = "m"} : () -> ()

// -----

// CHECK: k.ph:3:7: error: a tensor copy is of a tensor that is a parameter of the kernel
#swizzled = #tile.shared_layout<"offset=[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]] -> [64, 64]">
"gpu.module"() ({
  "gpu.func"() <{function_type = (memref<?x?xf16>, index) -> (), kernel}> ({
  ^bb0(%A: memref<?x?xf16>, %i: index):
    %ring = memref.alloca() : memref<4xi64, #tile.shared>
    %s = memref.alloca() : memref<64x64xf16, #swizzled, #tile.shared>
    %T = memref.alloca() : memref<64x64xf16, #tile.shared>
    tile.open_ring %ring : memref<4xi64, #tile.shared>
    tile.fill_stage %ring[%i] bytes 8192 {
      tile.tensor_copy %T[%i, %i] to %s swizzle 128 : memref<64x64xf16, #tile.shared>, memref<64x64xf16, #swizzled, #tile.shared> loc("k.ph":3:7)
    } : memref<4xi64, #tile.shared>
    "gpu.return"() : () -> ()
  }) {sym_name = "k", "gpu.known_block_size" = array<i32: 128, 1, 1>, arg_attrs = [{phobos.name = "A", phobos.type = "f16"}, {phobos.name = "i"}]} : () -> ()
}) {sym_name = "m"} : () -> ()
