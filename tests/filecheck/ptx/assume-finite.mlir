// RUN: phobos-opt %s -p "ph-ptx-assume-finite{least_saved=-9}" | filecheck %s
// RUN: phobos-opt %s -p ph-ptx-assume-finite | filecheck %s --check-prefix ALONE

// A product and a sum of it are rounded; that shows inf and NaN of both. The larger of two hides
// them, so the other rounding is looked at, too. It is one of the smaller of a sum and 4.

ptx.module @m sm_75 {
  ptx.entry @k(x: u64) {
    %zero = ptx.imm 0 : b32
    %below_one = ptx.imm 0x3f7fff00 : b32
    %minus_below_one = ptx.imm 0xbf7fff00 : b32
    %down = ptx.imm 0x37800000 : b32
    %up = ptx.imm 0x47800000 : b32
    %inf = ptx.imm 0x7f800000 : b32
    %four = ptx.imm 0x40800000 : b32
    %x = ptx.param u64 0
    %a = ptx.ld global.b32 [%x]
    %b = ptx.ld global.b32 [%x + 4]
    %c = ptx.ld global.b32 [%x + 8]
    %product = ptx.mul rn.f32 %a, %b
    %t0 = ptx.mul rn.f32 %product, %below_one
    %rest = ptx.fma rn.f32 %product, %minus_below_one, %t0
    %minus_rest = ptx.neg f32 %rest
    %part0 = ptx.fma rn.f32 %product, %down, %minus_rest
    %size = ptx.abs f32 %product
    %p0 = ptx.setp neu.f32 %size, %inf
    %up0 = ptx.mul rn.f32 %part0, %up
    %rounded = ptx.selp b32 %up0, %product, %p0 {phobos.rounds = "any"}
    %sum = ptx.sub rn.f32 %rounded, %c
    %t1 = ptx.mul rn.f32 %sum, %below_one
    %part1 = ptx.sub rn.f32 %sum, %t1
    %p1 = ptx.setp ne.f32 %part1, %zero
    %up1 = ptx.mul rn.f32 %part1, %up
    %s = ptx.selp b32 %up1, %sum, %p1 {phobos.rounds = "sum"}
    %larger = ptx.max f32 %s, %b
    %again = ptx.add rn.f32 %larger, %larger
    %t2 = ptx.mul rn.f32 %again, %below_one
    %part2 = ptx.sub rn.f32 %again, %t2
    %p2 = ptx.setp ne.f32 %part2, %zero
    %up2 = ptx.mul rn.f32 %part2, %up
    %r = ptx.selp b32 %up2, %again, %p2 {phobos.rounds = "sum"}
    %smaller = ptx.min f32 %r, %four
    ptx.st global.b32 [%x + 12], %smaller
    ptx.ret
  }
}

// CHECK:       [[A:%[0-9a-z_]+]] = ptx.ld global.b32 [[X:\[%[0-9a-z_]+]]]
// CHECK-NEXT:  [[B:%[0-9a-z_]+]] = ptx.ld global.b32 [[X]] + 4]
// CHECK-NEXT:  [[C:%[0-9a-z_]+]] = ptx.ld global.b32 [[X]] + 8]
// CHECK-NEXT:  [[PRODUCT:%[0-9a-z_]+]] = ptx.mul rn.f32 [[A]], [[B]]
// CHECK-NEXT:  [[T:%[0-9a-z_]+]] = ptx.mul rn.f32 [[PRODUCT]], %{{.*}}
// CHECK-NEXT:  [[REST:%[0-9a-z_]+]] = ptx.fma rn.f32 [[PRODUCT]], %{{.*}}, [[T]]
// CHECK-NEXT:  [[NEG:%[0-9a-z_]+]] = ptx.neg f32 [[REST]]
// CHECK-NEXT:  [[PART:%[0-9a-z_]+]] = ptx.fma rn.f32 [[PRODUCT]], %{{.*}}, [[NEG]]
// The product is multiplied by 2^16 where c is taken from it.
// CHECK-NEXT:  [[MINUS_C:%[0-9a-z_]+]] = ptx.neg f32 [[C]]
// CHECK-NEXT:  [[SUM:%[0-9a-z_]+]] = ptx.fma rn.f32 [[PART]], %{{.*}}, [[MINUS_C]]
// CHECK-NEXT:  [[MANY:%[0-9a-z_]+]] = ptx.fma rn.f32 [[SUM]], %{{.*}}, [[ZERO:%[0-9a-z_]+]]
// CHECK-NEXT:  [[NEG:%[0-9a-z_]+]] = ptx.neg f32 [[MANY]]
// CHECK-NEXT:  [[S:%[0-9a-z_]+]] = ptx.fma rn.f32 [[SUM]], %{{.*}}, [[NEG]]
// CHECK-NEXT:  [[LARGER:%[0-9a-z_]+]] = ptx.max f32 [[S]], [[B]]
// CHECK-NEXT:  [[AGAIN:%[0-9a-z_]+]] = ptx.add rn.f32 [[LARGER]], [[LARGER]]
// CHECK-NEXT:  [[SMALLER:%[0-9a-z_]+]] = ptx.min f32 [[AGAIN]], %four
// CHECK-NEXT:  [[MANY:%[0-9a-z_]+]] = ptx.fma rn.f32 [[SMALLER]], %{{.*}}, [[ZERO]]
// CHECK-NEXT:  [[NEG:%[0-9a-z_]+]] = ptx.neg f32 [[MANY]]
// CHECK-NEXT:  [[R:%[0-9a-z_]+]] = ptx.fma rn.f32 [[SMALLER]], %{{.*}}, [[NEG]]
// CHECK-NEXT:  [[TEST:%[0-9a-z_]+]] = ptx.fma rn.f32 [[S]], [[R]], [[ZERO]]
// CHECK-NEXT:  [[SIZE:%[0-9a-z_]+]] = ptx.abs f32 [[TEST]]
// CHECK-NEXT:  [[HUGE:%[0-9a-z_]+]] = ptx.setp geu.f32 [[SIZE]], %{{.*}}
// CHECK-NEXT:  ptx.cond_bra [[HUGE]], ^[[REDO:[0-9a-z]+]], ^[[GO_ON:[0-9a-z]+]]([[R]] : b32)
// CHECK-NEXT:  ^[[REDO]]:
// Nothing in common with the above that would have to be kept.
// CHECK-NEXT:  [[ONES:%[0-9a-z_]+]] = ptx.and b32 [[TEST]], [[ALL_ONES:%[0-9a-z_]+]]
// CHECK-NEXT:  [[NOTHING:%[0-9a-z_]+]] = ptx.xor b32 [[ONES]], [[ALL_ONES]]
// CHECK-NEXT:  [[A1:%[0-9a-z_]+]] = ptx.or b32 [[A]], [[NOTHING]]
// CHECK-NEXT:  [[B1:%[0-9a-z_]+]] = ptx.or b32 [[B]], [[NOTHING]]
// CHECK-NEXT:  [[C1:%[0-9a-z_]+]] = ptx.or b32 [[C]], [[NOTHING]]
// CHECK-NEXT:  ptx.mul rn.f32 [[A1]], [[B1]]
// CHECK:       ptx.selp b32
// CHECK:       ptx.selp b32
// CHECK:       [[LAST:%[0-9a-z_]+]] = ptx.selp b32 %{{[0-9a-z_]+}}, %{{[0-9a-z_]+}}, %{{[0-9a-z_]+$}}
// CHECK-NEXT:  [[R1:%[0-9a-z_]+]] = ptx.min f32 [[LAST]], %four
// CHECK-NEXT:  ptx.bra ^[[GO_ON]]([[R1]] : b32)
// CHECK-NEXT:  ^[[GO_ON]]([[RESULT:%[0-9a-z_]+]]: !ptx.reg<b32>):
// CHECK-NEXT:  ptx.st global.b32 [[X]] + 12], [[RESULT]]

// Three roundings do not pay for a branch.
// ALONE-NOT: ptx.cond_bra
// ALONE-NOT: phobos.rounds
