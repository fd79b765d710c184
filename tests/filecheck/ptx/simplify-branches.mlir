// RUN: phobos-opt %s -p ph-ptx-simplify-branches | filecheck %s

ptx.module @m sm_80 {
  ptx.entry @constant(x: u64) {
    %true = ptx.imm 1 : pred
    %x = ptx.param u64 0
    %t = ptx.sreg tid.x
    ptx.cond_bra %true, ^a, ^b
  ^a:
    ptx.bra ^c(%t : b32)
  ^b:
    %n = ptx.sreg ntid.x
    ptx.bra ^c(%n : b32)
  ^c(%y: !ptx.reg<b32>):
    ptx.st global.b32 [%x], %y
    ptx.ret
  }
  // CHECK-LABEL: ptx.entry @constant
  // CHECK:         [[T:%[0-9a-z]+]] = ptx.sreg tid.x
  // CHECK-NEXT:    ptx.st global.b32 [%{{.*}}], [[T]]
  // CHECK-NEXT:    ptx.ret
  // CHECK-NEXT:  }

  // A negated condition swaps the targets; blocks that only branch on are passed by.
  ptx.entry @negated(x: u64, n: u32) {
    %x = ptx.param u64 0
    %n = ptx.param f32 1
    %p = ptx.setp lt.f32 %n, %n
    %q = ptx.not pred %p
    ptx.cond_bra %q, ^hop, ^other
  ^hop:
    ptx.bra ^done(%n : b32)
  ^other:
    ptx.st global.b32 [%x], %n
    %t = ptx.sreg tid.x
    ptx.bra ^done(%t : b32)
  ^done(%y: !ptx.reg<b32>):
    ptx.st global.b32 [%x + 4], %y
    ptx.ret
  }
  // CHECK-LABEL: ptx.entry @negated
  // CHECK:         [[N:%[0-9a-z]+]] = ptx.param f32 1
  // CHECK:         [[P:%[0-9a-z]+]] = ptx.setp lt.f32
  // CHECK:         ptx.cond_bra [[P]], ^other, ^done([[N]] : b32)
  // CHECK-NOT:   ^hop
  // CHECK:       ^other:
  // CHECK:         ptx.bra ^done(%{{.*}} : b32)

  // What every edge passes alike is no argument.
  ptx.entry @common(x: u64) {
    %x = ptx.param u64 0
    %zero = ptx.imm 0 : b32
    %ten = ptx.imm 10 : b32
    %t = ptx.sreg tid.x
    ptx.bra ^loop(%zero, %t : b32, b32)
  ^loop(%i: !ptx.reg<b32>, %same: !ptx.reg<b32>):
    %j = ptx.add s32 %i, %same
    %p = ptx.setp lt.s32 %j, %ten
    ptx.cond_bra %p, ^loop(%j, %same : b32, b32), ^done
  ^done:
    ptx.st global.b32 [%x], %same
    ptx.ret
  }
  // CHECK-LABEL: ptx.entry @common
  // CHECK:         [[T:%[0-9a-z]+]] = ptx.sreg tid.x
  // CHECK:       ^loop([[I:%[0-9a-z]+]]: !ptx.reg<b32>):
  // CHECK-NEXT:    [[J:%[0-9a-z]+]] = ptx.add s32 [[I]], [[T]]
  // CHECK:         ptx.cond_bra %{{.*}}, ^loop([[J]] : b32), ^done
  // CHECK:         ptx.st global.b32 [%{{.*}}], [[T]]

  // Nothing to do.
  ptx.entry @loop_forever() {
    ptx.bra ^loop
  ^loop:
    ptx.bar sync 0
    ptx.bra ^loop
  }
  // CHECK-LABEL: ptx.entry @loop_forever
  // CHECK-NEXT:    ptx.bra ^loop
  // CHECK-NEXT:  ^loop:
  // CHECK-NEXT:    ptx.bar sync 0
  // CHECK-NEXT:    ptx.bra ^loop
}
