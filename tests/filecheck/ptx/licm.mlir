// RUN: phobos-opt %s -p ph-ptx-licm | filecheck %s

ptx.module @m sm_80 {
  // An invariant leaves all loops in which it is one; loads and shuffles stay.
  ptx.entry @nest(x: u64, pitch: s32) {
    %zero = ptx.imm 0 : b32
    %one = ptx.imm 1 : b32
    %ten = ptx.imm 10 : b32
    %all = ptx.imm -1 : b32
    %x = ptx.param u64 0
    %pitch = ptx.param s32 1
    ptx.bra ^outer(%zero : b32)
  ^outer(%i: !ptx.reg<b32>):
    ptx.bra ^inner(%zero : b32)
  ^inner(%j: !ptx.reg<b32>):
    %scale = ptx.mul wide.s32 %pitch, %ten
    %row = ptx.mul wide.s32 %i, %pitch
    %both = ptx.add s64 %scale, %row
    %address = ptx.add s64 %x, %both
    %v = ptx.ld global.b32 [%address]
    %w = ptx.shfl sync.idx.b32 %pitch, %zero, %zero, %all
    %u = ptx.add s32 %v, %w
    ptx.st global.b32 [%address], %u
    %j1 = ptx.add s32 %j, %one
    %p = ptx.setp lt.s32 %j1, %ten
    ptx.cond_bra %p, ^inner(%j1 : b32), ^next
  ^next:
    %i1 = ptx.add s32 %i, %one
    %q = ptx.setp lt.s32 %i1, %ten
    ptx.cond_bra %q, ^outer(%i1 : b32), ^done
  ^done:
    ptx.ret
  }
  // CHECK:         [[SCALE:%[0-9a-z]+]] = ptx.mul wide.s32
  // CHECK-NEXT:    ptx.bra ^outer
  // CHECK:       ^outer([[I:%[0-9a-z]+]]: !ptx.reg<b32>):
  // CHECK-NEXT:    [[ROW:%[0-9a-z]+]] = ptx.mul wide.s32 [[I]]
  // CHECK-NEXT:    [[BOTH:%[0-9a-z]+]] = ptx.add s64 [[SCALE]], [[ROW]]
  // CHECK-NEXT:    [[ADDRESS:%[0-9a-z]+]] = ptx.add s64 %{{.*}}, [[BOTH]]
  // CHECK-NEXT:    ptx.bra ^inner
  // CHECK:       ^inner([[J:%[0-9a-z]+]]: !ptx.reg<b32>):
  // CHECK-NEXT:    %{{.*}} = ptx.ld global.b32 {{\[}}[[ADDRESS]]]
  // CHECK-NEXT:    %{{.*}} = ptx.shfl sync.idx.b32
}
