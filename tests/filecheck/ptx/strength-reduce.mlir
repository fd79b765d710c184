// RUN: phobos-opt %s -p ph-ptx-strength-reduce,ph-ptx-fold,ph-ptx-dead-code | filecheck %s

ptx.module @m sm_80 {
  // A row of a matrix in each iteration: one addition steps the pointer.
  ptx.entry @rows(x: u64, pitch: s32, n: s32) {
    %zero = ptx.imm 0 : b32
    %one = ptx.imm 1 : b32
    %two = ptx.imm 2 : b32
    %x = ptx.param u64 0
    %pitch = ptx.param s32 1
    %n = ptx.param s32 2
    ptx.bra ^loop(%zero, %zero : b32, b32)
  ^loop(%i: !ptx.reg<b32>, %sum: !ptx.reg<b32>):
    %o = ptx.mul wide.s32 %i, %pitch
    %b = ptx.shl b64 %o, %two
    %a = ptx.add s64 %x, %b
    %v = ptx.ld global.b32 [%a + 4]
    %sum1 = ptx.add s32 %sum, %v
    %i1 = ptx.add s32 %i, %one
    %p = ptx.setp lt.s32 %i1, %n
    ptx.cond_bra %p, ^loop(%i1, %sum1 : b32, b32), ^done
  ^done:
    ptx.st global.b32 [%x], %sum1
    ptx.ret
  }
  // CHECK-LABEL: ptx.entry @rows
  // CHECK:         [[X:%[0-9a-z]+]] = ptx.param u64 0
  // CHECK:         [[STEP:%[0-9a-z]+]] = ptx.mul wide.s32 %pitch
  // CHECK:         ptx.bra ^loop(%{{.*}}, %{{.*}}, [[X]] : b32, b32, b64)
  // CHECK:       ^loop([[I:%[0-9a-z]+]]: !ptx.reg<b32>, [[SUM:%[0-9a-z]+]]: !ptx.reg<b32>, [[P:%[0-9a-z]+]]: !ptx.reg<b64>):
  // CHECK-NEXT:    %{{.*}} = ptx.ld global.b32 {{\[}}[[P]] + 4]
  // CHECK:         [[NEXT:%[0-9a-z]+]] = ptx.add s64 [[P]], [[STEP]]
  // CHECK-NEXT:    ptx.cond_bra %{{.*}}, ^loop(%{{.*}}, %{{.*}}, [[NEXT]] : b32, b32, b64), ^done

  // One widening multiplication is cheaper than stepping a pointer.
  ptx.entry @elements(x: u64, n: s32) {
    %zero = ptx.imm 0 : b32
    %one = ptx.imm 1 : b32
    %four = ptx.imm 4 : b32
    %x = ptx.param u64 0
    %n = ptx.param s32 1
    ptx.bra ^loop(%zero : b32)
  ^loop(%i: !ptx.reg<b32>):
    %a = ptx.mad wide.s32 %i, %four, %x
    ptx.st global.b32 [%a], %i
    %i1 = ptx.add s32 %i, %one
    %p = ptx.setp lt.s32 %i1, %n
    ptx.cond_bra %p, ^loop(%i1 : b32), ^done
  ^done:
    ptx.ret
  }
  // CHECK-LABEL: ptx.entry @elements
  // CHECK:       ^loop([[I:%[0-9a-z]+]]: !ptx.reg<b32>):
  // CHECK-NEXT:    %{{.*}} = ptx.mad wide.s32
}
