// RUN: phobos-opt %s -p ph-ptx-fuse | filecheck %s

ptx.module @m sm_80 {
  ptx.entry @k(x: u64, i: s32) {
    %c4 = ptx.imm 4 : b32
    %x = ptx.param u64 0
    %i = ptx.param s32 1
    %p = ptx.mul wide.s32 %i, %c4
    %a = ptx.add s64 %p, %x
    %q = ptx.mul lo.s32 %i, %i
    %b = ptx.add s32 %i, %q
    %r = ptx.mul lo.s32 %i, %c4
    %c = ptx.add s32 %r, %b
    ptx.st global.v2.b32 [%a], {%c, %r}
    ptx.ret
  }
}
// CHECK:         [[X:%[0-9a-z]+]] = ptx.param u64 0
// CHECK-NEXT:    [[I:%[0-9a-z]+]] = ptx.param s32 1
// CHECK-NEXT:    [[A:%[0-9a-z]+]] = ptx.mad wide.s32 [[I]], %{{.*}}, [[X]]
// CHECK-NEXT:    [[B:%[0-9a-z]+]] = ptx.mad lo.s32 [[I]], [[I]], [[I]]
// The product that something else uses stays.
// CHECK-NEXT:    [[R:%[0-9a-z]+]] = ptx.mul lo.s32
// CHECK-NEXT:    [[C:%[0-9a-z]+]] = ptx.add s32 [[R]], [[B]]
// CHECK-NEXT:    ptx.st global.v2.b32 {{\[}}[[A]]], {[[C]], [[R]]}
