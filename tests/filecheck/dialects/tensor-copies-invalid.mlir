// RUN: phobos-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: tile.open_ring: a ring is two i64 a stage, not memref<3xi64, #tile.shared>
func.func @odd_ring(%ring: memref<3xi64, #tile.shared>) {
  tile.open_ring %ring : memref<3xi64, #tile.shared>
  func.return
}

// -----

// CHECK: tile.await_stage: a ring is two i64 a stage, not memref<4xi32, #tile.shared>
func.func @narrow_ring(%ring: memref<4xi32, #tile.shared>, %i: index) {
  tile.await_stage %ring[%i] phase %i : memref<4xi32, #tile.shared>
  func.return
}

// -----

// CHECK: tile.fill_stage: its copies move 8192 bytes, not 4096
func.func @bytes(%A: memref<?x?xf16>, %s: memref<64x64xf16, #tile.shared>, %ring: memref<4xi64, #tile.shared>, %i: index) {
  tile.fill_stage %ring[%i] bytes 4096 {
    tile.tensor_copy %A[%i, %i] to %s swizzle 128 : memref<?x?xf16>, memref<64x64xf16, #tile.shared>
  } : memref<4xi64, #tile.shared>
  func.return
}

// -----

// CHECK: tile.tensor_copy: a subscript and an extent for each of 2 to 5 axes
func.func @rank(%A: memref<?xf16>, %s: memref<64xf16, #tile.shared>, %i: index) {
  tile.tensor_copy %A[%i] to %s swizzle 128 : memref<?xf16>, memref<64xf16, #tile.shared>
  func.return
}

// -----

// CHECK: tile.tensor_copy does not convert elements
func.func @element(%A: memref<?x?xf16>, %s: memref<64x64xf32, #tile.shared>, %i: index) {
  tile.tensor_copy %A[%i, %i] to %s swizzle 128 : memref<?x?xf16>, memref<64x64xf32, #tile.shared>
  func.return
}

// -----

// CHECK: tile.tensor_copy: rows of a swizzle have 32, 64 or 128 bytes
func.func @swizzle(%A: memref<?x?xf16>, %s: memref<64x64xf16, #tile.shared>, %i: index) {
  tile.tensor_copy %A[%i, %i] to %s swizzle 256 : memref<?x?xf16>, memref<64x64xf16, #tile.shared>
  func.return
}

// -----

// CHECK: tile.tensor_copy: boxes of (64, 64) do not fill (64, 32)
func.func @boxes(%A: memref<?x?xf16>, %s: memref<64x32xf16, #tile.shared>, %i: index) {
  tile.tensor_copy %A[%i, %i] to %s swizzle 128 : memref<?x?xf16>, memref<64x32xf16, #tile.shared>
  func.return
}

// -----

// CHECK: tile.tensor_copy: only f32 is rounded, to tf32
func.func @rounded(%A: memref<?x?xf16>, %s: memref<64x64xf16, #tile.shared>, %i: index) {
  tile.tensor_copy %A[%i, %i] to %s swizzle 128 rounded "tf32" : memref<?x?xf16>, memref<64x64xf16, #tile.shared>
  func.return
}

// -----

// CHECK: tile.tensor_copy: the extents of a tile are known, unlike memref<?x64xf16, #tile.shared>
func.func @extents(%A: memref<?x?xf16>, %s: memref<?x64xf16, #tile.shared>, %ring: memref<4xi64, #tile.shared>, %i: index) {
  tile.fill_stage %ring[%i] bytes 8192 {
    tile.tensor_copy %A[%i, %i] to %s swizzle 128 : memref<?x?xf16>, memref<?x64xf16, #tile.shared>
  } : memref<4xi64, #tile.shared>
  func.return
}

// -----

// CHECK: tile.fill_stage: one lane copies here, and `collective.barrier` is more
func.func @waits(%ring: memref<4xi64, #tile.shared>, %i: index) {
  tile.fill_stage %ring[%i] bytes 0 {
    collective.barrier
  } : memref<4xi64, #tile.shared>
  func.return
}
