// RUN: phobos-opt %s -p ph-ptx-negate-comparisons | filecheck %s
// RUN: phobos-opt %s -p ph-ptx-negate-comparisons,ph-ptx-negate-comparisons | filecheck %s

ptx.module @m sm_80 {
  ptx.entry @k(x: u64) {
    %one = ptx.imm 0x3f800000 : b32
    %x = ptx.param u64 0
    %a = ptx.ld global.b32 [%x]
    %d = ptx.ld global.b64 [%x + 8]
    %p = ptx.setp gt.f32 %a, %one
    %q, %r0 = ptx.setp lt.ftz.f32 %a, %one -> pred, pred
    %r = ptx.setp ltu.f32 %a, %one
    %s = ptx.setp eq.f32 %a, %one
    %t = ptx.setp le.f64 %d, %d
    %u = ptx.setp ge.s32 %a, %one
    %v = ptx.selp b32 %a, %one, %p
    ptx.st global.b32 [%x + 16], %v
    ptx.st global.b32 [%x + 20], %a guard %q
    ptx.st global.b32 [%x + 24], %a guard %r0
    ptx.st global.b32 [%x + 28], %a guard %r
    ptx.st global.b32 [%x + 32], %a guard %s
    ptx.st global.b32 [%x + 36], %a guard %t
    ptx.st global.b32 [%x + 40], %a guard %u
    ptx.st global.b32 [%x + 44], %a guard %p
    ptx.ret
  }
}

// CHECK:      %{{[0-9]+}}, [[P:%[0-9a-z]+]] = ptx.setp leu.f32 [[A:%[0-9a-z]+]], [[ONE:%[0-9a-z]+]] -> pred, pred
// Two results change places.
// CHECK-NEXT: [[NOTQ:%[0-9a-z]+]], [[Q:%[0-9a-z]+]] = ptx.setp geu.ftz.f32 [[A]], [[ONE]] -> pred, pred
// What holds for NaN, or is no ordering of f32, stays.
// CHECK-NEXT: ptx.setp ltu.f32
// CHECK-NEXT: ptx.setp eq.f32
// CHECK-NEXT: ptx.setp le.f64
// CHECK-NEXT: ptx.setp ge.s32
// CHECK-NEXT: ptx.selp b32 [[A]], [[ONE]], [[P]]
// CHECK:      ptx.st global.b32 [%{{.*}} + 20], [[A]] guard [[Q]]
// CHECK-NEXT: ptx.st global.b32 [%{{.*}} + 24], [[A]] guard [[NOTQ]]
// CHECK:      ptx.st global.b32 [%{{.*}} + 44], [[A]] guard [[P]]
