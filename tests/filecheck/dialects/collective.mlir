// RUN: phobos-opt %s | phobos-opt -f mlir | filecheck %s

func.func @collectives(%x: f32, %i: i32, %p: i1) {
  // CHECK: %s = collective.reduce add over lane %x : f32 -> f32
  %s = collective.reduce add over lane %x : f32 -> f32
  // CHECK-NEXT: %m = collective.reduce umax over thread %i : i32 -> i32
  %m = collective.reduce umax over thread %i : i32 -> i32
  // CHECK-NEXT: %c = collective.reduce count over warp %p : i1 -> i32
  %c = collective.reduce count over warp %p : i1 -> i32
  // CHECK-NEXT: %u = collective.shuffle xor %x, %i : f32
  %u = collective.shuffle xor %x, %i : f32
  // CHECK-NEXT: %r = collective.scan over warp %x : f32
  %r = collective.scan over warp %x : f32
  // CHECK-NEXT: %b = collective.ballot %p
  %b = collective.ballot %p
  // CHECK-NEXT: collective.barrier
  collective.barrier
  func.return
}

// CHECK-LABEL: @atomics
func.func @atomics(%x: f32, %i: index, %n: i32, %t: memref<?xf32>, %s: memref<2xi32>) {
  // CHECK: %a = collective.atomic add %x, %t[%i] : f32, memref<?xf32>
  %a = collective.atomic add %x, %t[%i] : f32, memref<?xf32>
  // CHECK-NEXT: %b = collective.atomic umax %n, %s[%i] : i32, memref<2xi32>
  %b = collective.atomic umax %n, %s[%i] : i32, memref<2xi32>
  // CHECK-NEXT: %c = collective.cas %x, %a, %t[%i] : f32, memref<?xf32>
  %c = collective.cas %x, %a, %t[%i] : f32, memref<?xf32>
  // CHECK-NEXT: %d = collective.load_acquire %t[%i] : memref<?xf32> -> f32
  %d = collective.load_acquire %t[%i] : memref<?xf32> -> f32
  // CHECK-NEXT: collective.store_release %d, %t[%i] : f32, memref<?xf32>
  collective.store_release %d, %t[%i] : f32, memref<?xf32>
  // CHECK-NEXT: collective.grid_barrier %s : memref<2xi32>
  collective.grid_barrier %s : memref<2xi32>
  func.return
}
