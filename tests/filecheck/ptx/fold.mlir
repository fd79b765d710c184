// RUN: phobos-opt %s -p ph-ptx-fold,ph-ptx-dead-code | filecheck %s

ptx.module @m sm_80 {
  // Constants move outward through additions, and into the offsets of the accesses.
  ptx.entry @addresses(x: u64, i: u64) {
    %c16 = ptx.imm 16 : b64
    %base = ptx.param u64 0
    %i = ptx.param u64 1
    %a = ptx.add u64 %base, %c16
    %b = ptx.add u64 %a, %i
    %c = ptx.add u64 %i, %a
    %x = ptx.ld global.b32 [%b]
    %y = ptx.ld global.b32 [%c + 4]
    %z = ptx.add s32 %x, %y
    ptx.st global.b32 [%c + -16], %z
    ptx.ret
  }
  // CHECK-LABEL: ptx.entry @addresses
  // CHECK-NEXT:    [[BASE:%[0-9a-z]+]] = ptx.param u64 0
  // CHECK-NEXT:    [[I:%[0-9a-z]+]] = ptx.param u64 1
  // CHECK-NEXT:    [[A:%[0-9a-z]+]] = ptx.add u64 [[BASE]], [[I]]
  // CHECK-NEXT:    [[X:%[0-9a-z]+]] = ptx.ld global.b32 {{\[}}[[A]] + 16]
  // CHECK-NEXT:    [[Y:%[0-9a-z]+]] = ptx.ld global.b32 {{\[}}[[A]] + 20]
  // CHECK-NEXT:    [[Z:%[0-9a-z]+]] = ptx.add s32 [[X]], [[Y]]
  // CHECK-NEXT:    ptx.st global.b32 {{\[}}[[A]]], [[Z]]
  // CHECK-NEXT:    ptx.ret

  // A bound check made once serves all blocks that it dominates; loads that a store may change
  // stay, those of read-only data do not.
  ptx.entry @reuse(x: u64, n: u32) {
    %x = ptx.param u64 0
    %n = ptx.param u32 1
    %t = ptx.sreg tid.x
    %p = ptx.setp lt.u32 %t, %n
    ptx.cond_bra %p, ^then, ^done
  ^then:
    %t1 = ptx.sreg tid.x
    %n1 = ptx.param u32 1
    %p1 = ptx.setp lt.u32 %t1, %n1
    %r = ptx.ld global.nc.b32 [%x]
    %s = ptx.ld global.nc.b32 [%x]
    %v = ptx.ld global.b32 [%x + 4]
    ptx.st global.v2.b32 [%x], {%r, %s} guard %p1
    %w = ptx.ld global.b32 [%x + 4]
    ptx.st global.v2.b32 [%x + 8], {%v, %w}
    ptx.bra ^done
  ^done:
    ptx.ret
  }
  // CHECK-LABEL: ptx.entry @reuse
  // CHECK:         [[P:%[0-9a-z]+]] = ptx.setp lt.u32
  // CHECK:       ^then:
  // CHECK-NEXT:    [[R:%[0-9a-z]+]] = ptx.ld global.nc.b32
  // CHECK-NEXT:    [[V:%[0-9a-z]+]] = ptx.ld global.b32
  // CHECK-NEXT:    ptx.st global.v2.b32 [{{.*}}], {[[R]], [[R]]} guard [[P]]
  // CHECK-NEXT:    [[W:%[0-9a-z]+]] = ptx.ld global.b32
  // CHECK-NEXT:    ptx.st global.v2.b32 [{{.*}} + 8], {[[V]], [[W]]}

  // Guards that are settled or negated.
  ptx.entry @guards(x: u64, n: u32) {
    %true = ptx.imm 1 : pred
    %false = ptx.imm 0 : pred
    %zero = ptx.imm 0 : b32
    %x = ptx.param u64 0
    %n = ptx.param u32 1
    %p = ptx.setp lt.f32 %n, %zero
    %q = ptx.not pred %p
    %a = ptx.ld global.b32 [%x] guard %true else %zero
    %b = ptx.ld global.b32 [%x + 4] guard %false else %n
    ptx.st global.b32 [%x + 8], %a guard not %true
    ptx.st global.b32 [%x + 12], %a guard %q
    ptx.st global.b32 [%x + 16], %b guard not %q
    ptx.ret
  }
  // CHECK-LABEL: ptx.entry @guards
  // CHECK:         [[N:%[0-9a-z]+]] = ptx.param u32 1
  // CHECK-NEXT:    [[P:%[0-9a-z]+]] = ptx.setp lt.f32
  // CHECK-NEXT:    [[A:%[0-9a-z]+]] = ptx.ld global.b32 [{{%[0-9a-z]+}}]{{$}}
  // CHECK-NEXT:    ptx.st global.b32 [{{.*}} + 12], [[A]] guard not [[P]]
  // CHECK-NEXT:    ptx.st global.b32 [{{.*}} + 16], [[N]] guard [[P]]
  // CHECK-NEXT:    ptx.ret

  // A predicate that goes through an integer and back.
  ptx.entry @predicates(x: u64, n: u32) {
    %c0 = ptx.imm 0 : b32
    %c1 = ptx.imm 1 : b32
    %x = ptx.param u64 0
    %n = ptx.param u32 1
    %p = ptx.setp lt.s32 %n, %c1
    %i = ptx.selp b32 %c1, %c0, %p
    %q = ptx.setp eq.s32 %i, %c0
    ptx.st global.b32 [%x], %n guard %q
    ptx.ret
  }
  // CHECK-LABEL: ptx.entry @predicates
  // CHECK:         [[Q:%[0-9a-z]+]] = ptx.setp ge.s32
  // CHECK-NEXT:    ptx.st global.b32 {{.*}} guard [[Q]]

  // Floats stay: x + 0 is not x for -0, x * 1 quiets a NaN.
  ptx.entry @floats(x: u64, a: f32) {
    %zero = ptx.imm 0 : b32
    %one = ptx.imm 0x3f800000 : b32
    %x = ptx.param u64 0
    %a = ptx.param f32 1
    %b = ptx.add f32 %a, %zero
    %c = ptx.mul f32 %b, %one
    %two = ptx.add f32 %one, %one
    ptx.st global.v2.b32 [%x], {%c, %two}
    ptx.ret
  }
  // CHECK-LABEL: ptx.entry @floats
  // CHECK:         [[TWO:%[0-9a-z]+]] = ptx.imm 0x40000000 : b32
  // CHECK:         ptx.add f32
  // CHECK-NEXT:    [[C:%[0-9a-z]+]] = ptx.mul f32
  // CHECK-NEXT:    ptx.st global.v2.b32 [{{.*}}], {[[C]], [[TWO]]}
}
