// RUN: phobos-opt %s -p ph-ptx-reorder | filecheck %s

ptx.module @m sm_80 {
  // Three loads, then three squares, then their sums: with two registers to spare, each square
  // follows its load, and is added as soon as it is known.
  // CHECK: ptx.entry @sums
  ptx.entry @sums(p: u64) maxnreg 5 {
    %p = ptx.param u64 0
    // CHECK: %[[A:.*]] = ptx.ld global.b32 [%p]
    // CHECK-NEXT: %[[AA:.*]] = ptx.mul f32 %[[A]], %[[A]]
    // CHECK-NEXT: %[[B:.*]] = ptx.ld global.b32 [%p + 4]
    // CHECK-NEXT: %[[BB:.*]] = ptx.mul f32 %[[B]], %[[B]]
    // CHECK-NEXT: %[[AB:.*]] = ptx.add f32 %[[AA]], %[[BB]]
    // CHECK-NEXT: %[[C:.*]] = ptx.ld global.b32 [%p + 8]
    // CHECK-NEXT: %[[CC:.*]] = ptx.mul f32 %[[C]], %[[C]]
    // CHECK-NEXT: %[[D:.*]] = ptx.ld global.b32 [%p + 12]
    // CHECK-NEXT: %[[DD:.*]] = ptx.mul f32 %[[D]], %[[D]]
    // CHECK-NEXT: ptx.add
    // CHECK-NEXT: ptx.add
    // CHECK-NEXT: ptx.st
    %a = ptx.ld global.b32 [%p]
    %b = ptx.ld global.b32 [%p + 4]
    %c = ptx.ld global.b32 [%p + 8]
    %d = ptx.ld global.b32 [%p + 12]
    %aa = ptx.mul f32 %a, %a
    %bb = ptx.mul f32 %b, %b
    %cc = ptx.mul f32 %c, %c
    %dd = ptx.mul f32 %d, %d
    %ab = ptx.add f32 %aa, %bb
    %cd = ptx.add f32 %cc, %dd
    %s = ptx.add f32 %ab, %cd
    ptx.st global.b32 [%p], %s
    ptx.ret
  }
  // What fits is left as it is.
  // CHECK: ptx.entry @fits
  // CHECK: ptx.ld
  // CHECK-NEXT: ptx.ld
  // CHECK-NEXT: ptx.mul
  ptx.entry @fits(p: u64) {
    %p = ptx.param u64 0
    %a = ptx.ld global.b32 [%p]
    %b = ptx.ld global.b32 [%p + 4]
    %aa = ptx.mul f32 %a, %a
    %bb = ptx.mul f32 %b, %b
    %s = ptx.add f32 %aa, %bb
    ptx.st global.b32 [%p], %s
    ptx.ret
  }
  // Nothing moves over a store or a barrier: both loads stay above it.
  // CHECK: ptx.entry @stores
  // CHECK: ptx.ld global.b32 [%p]
  // CHECK: ptx.ld global.b32 [%p + 4]
  // CHECK: ptx.st global.b32 [%p], %z
  // CHECK-NOT: ptx.ld
  ptx.entry @stores(p: u64, z: u32) maxnreg 3 {
    %p = ptx.param u64 0
    %z = ptx.param u32 1
    %a = ptx.ld global.b32 [%p]
    %b = ptx.ld global.b32 [%p + 4]
    %aa = ptx.mul f32 %a, %a
    %bb = ptx.mul f32 %b, %b
    ptx.st global.b32 [%p], %z
    ptx.st global.b32 [%p + 4], %aa
    ptx.st global.b32 [%p + 8], %bb
    ptx.ret
  }
}
