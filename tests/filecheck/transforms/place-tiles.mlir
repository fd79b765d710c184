// RUN: phobos-opt %s -p ph-place-tiles | filecheck %s

"gpu.module"() ({
  // Lives that do not overlap share bytes where these are many; the third overlaps the second.
  // CHECK: memref.alloca() {tile.offset = 0 : i64} : memref<512xf32, #tile.shared>
  // CHECK: memref.alloca() {tile.offset = 0 : i64} : memref<1024xf32, #tile.shared>
  // CHECK: memref.alloca() {tile.offset = 4096 : i64} : memref<4xf32, #tile.shared>
  // CHECK: tile.shared_bytes = 4112 : i64
  "gpu.func"() <{function_type = (f32, index) -> (), kernel}> ({
  ^bb0(%x: f32, %i: index):
    %a = memref.alloca() : memref<512xf32, #tile.shared>
    memref.store %x, %a[%i] : memref<512xf32, #tile.shared>
    %b = memref.alloca() : memref<1024xf32, #tile.shared>
    memref.store %x, %b[%i] : memref<1024xf32, #tile.shared>
    %c = memref.alloca() : memref<4xf32, #tile.shared>
    memref.store %x, %c[%i] : memref<4xf32, #tile.shared>
    %y = memref.load %b[%i] : memref<1024xf32, #tile.shared>
    "gpu.return"() : () -> ()
  }) {sym_name = "many"} : () -> ()

  // Few bytes are not shared, which saves a barrier.
  // CHECK: memref.alloca() {tile.offset = 0 : i64} : memref<8xf32, #tile.shared>
  // CHECK: memref.alloca() {tile.offset = 128 : i64} : memref<4xf32, #tile.shared>
  // CHECK: tile.shared_bytes = 144 : i64
  "gpu.func"() <{function_type = (f32, index) -> (), kernel}> ({
  ^bb0(%x: f32, %i: index):
    %a = memref.alloca() : memref<8xf32, #tile.shared>
    memref.store %x, %a[%i] : memref<8xf32, #tile.shared>
    %b = memref.alloca() : memref<4xf32, #tile.shared>
    memref.store %x, %b[%i] : memref<4xf32, #tile.shared>
    "gpu.return"() : () -> ()
  }) {sym_name = "few"} : () -> ()
}) {sym_name = "m"} : () -> ()
