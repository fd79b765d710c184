// RUN: phobos-opt %s -p ph-ptx-dead-code | filecheck %s

ptx.module @m sm_80 {
  // A value that a loop only carries along goes, and so does an unused load; what writes memory,
  // orders it or stops the kernel stays.
  ptx.entry @loop(x: u64) {
    %zero = ptx.imm 0 : b32
    %one = ptx.imm 1 : b32
    %ten = ptx.imm 10 : b32
    %x = ptx.param u64 0
    ptx.bra ^loop(%zero, %one : b32, b32)
  ^loop(%i: !ptx.reg<b32>, %n: !ptx.reg<b32>):
    %n1 = ptx.add s32 %n, %i
    %unused = ptx.ld global.b32 [%x]
    %ordering = ptx.ld acquire.gpu.global.b32 [%x]
    %old = ptx.atom global.add.u32 [%x], %one
    %i1 = ptx.add s32 %i, %one
    %p = ptx.setp lt.s32 %i1, %ten
    ptx.bar sync 0
    ptx.trap guard %p
    ptx.cond_bra %p, ^loop(%i1, %n1 : b32, b32), ^done
  ^done:
    ptx.ret
  }
  // CHECK-LABEL: ptx.entry @loop
  // CHECK:         ptx.bra ^loop([[ZERO:%[0-9a-z]+]] : b32)
  // CHECK-NEXT:  ^loop([[I:%[0-9a-z]+]]: !ptx.reg<b32>):
  // CHECK-NEXT:    %{{.*}} = ptx.ld acquire.gpu.global.b32
  // CHECK-NEXT:    %{{.*}} = ptx.atom global.add.u32
  // CHECK-NEXT:    [[I1:%[0-9a-z]+]] = ptx.add s32 [[I]]
  // CHECK-NEXT:    [[P:%[0-9a-z]+]] = ptx.setp lt.s32
  // CHECK-NEXT:    ptx.bar sync 0
  // CHECK-NEXT:    ptx.trap guard [[P]]
  // CHECK-NEXT:    ptx.cond_bra [[P]], ^loop([[I1]] : b32), ^done
}
