// RUN: phobos-opt %s | filecheck %s
// RUN: phobos-opt %s | phobos-opt | filecheck %s

// CHECK-LABEL: @ring
func.func @ring(%A: memref<?x?xf16>, %X: memref<?x?x?xf32>, %i: index) {
  %a = memref.alloca() : memref<4x64x64xf16, #tile.shared>
  %x = memref.alloca() : memref<4x1x8x32xf32, #tile.shared>
  %ring = memref.alloca() : memref<8xi64, #tile.shared>
  // CHECK: tile.open_ring %ring : memref<8xi64, #tile.shared>
  tile.open_ring %ring : memref<8xi64, #tile.shared>
  // CHECK-NEXT: tile.fill_stage %ring[%i] bytes 8192 {
  tile.fill_stage %ring[%i] bytes 8192 {
    %one = tile.stage %a[%i] : memref<4x64x64xf16, #tile.shared> -> memref<64x64xf16, #tile.shared>
    // CHECK: tile.tensor_copy %A[%i, %i] to %one swizzle 128 : memref<?x?xf16>, memref<64x64xf16, #tile.shared>
    tile.tensor_copy %A[%i, %i] to %one swizzle 128 : memref<?x?xf16>, memref<64x64xf16, #tile.shared>
  // CHECK-NEXT: } : memref<8xi64, #tile.shared>
  } : memref<8xi64, #tile.shared>
  // CHECK-NEXT: tile.fill_stage %ring[%i] after %i bytes 1024 {
  tile.fill_stage %ring[%i] after %i bytes 1024 {
    %two = tile.stage %x[%i] : memref<4x1x8x32xf32, #tile.shared> -> memref<1x8x32xf32, #tile.shared>
    // CHECK: tile.tensor_copy %X[%i, %i, %i] to %two swizzle 32 transposed rounded "tf32" : memref<?x?x?xf32>, memref<1x8x32xf32, #tile.shared>
    tile.tensor_copy %X[%i, %i, %i] to %two swizzle 32 transposed rounded "tf32" : memref<?x?x?xf32>, memref<1x8x32xf32, #tile.shared>
  } : memref<8xi64, #tile.shared>
  // CHECK: tile.await_stage %ring[%i] phase %i : memref<8xi64, #tile.shared>
  tile.await_stage %ring[%i] phase %i : memref<8xi64, #tile.shared>
  // CHECK-NEXT: tile.release_stage %ring[%i] : memref<8xi64, #tile.shared>
  tile.release_stage %ring[%i] : memref<8xi64, #tile.shared>
  // CHECK-NEXT: tile.close_ring %ring : memref<8xi64, #tile.shared>
  tile.close_ring %ring : memref<8xi64, #tile.shared>
  func.return
}
