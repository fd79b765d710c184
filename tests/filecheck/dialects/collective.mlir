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
