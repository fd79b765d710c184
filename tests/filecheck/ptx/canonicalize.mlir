// RUN: phobos-opt %s -p ph-ptx-canonicalize | filecheck %s
// RUN: phobos-opt %s -p ph-ptx-canonicalize,ph-ptx-verify -t ptx | filecheck %s --check-prefix PTX

ptx.module @m sm_80 {
  ptx.entry @k(x: u64, i: u32) {
    %c4 = ptx.imm 4 : b32
    %c16 = ptx.imm 16 : b64
    %x = ptx.param u64 0
    %i = ptx.param u32 1
    %o = ptx.mul wide.u32 %i, %c4
    %a = ptx.add u64 %o, %c16
    %p = ptx.add u64 %x, %a
    %v = ptx.ld global.b32 [%p]
    ptx.st global.b32 [%p + 4], %v
    ptx.ret
  }
}
// CHECK:         [[C4:%[0-9a-z]+]] = ptx.imm 4 : b32
// CHECK-NEXT:    [[X:%[0-9a-z]+]] = ptx.param u64 0
// CHECK-NEXT:    [[I:%[0-9a-z]+]] = ptx.param u32 1
// CHECK-NEXT:    [[P:%[0-9a-z]+]] = ptx.mad wide.u32 [[I]], [[C4]], [[X]]
// CHECK-NEXT:    [[V:%[0-9a-z]+]] = ptx.ld global.b32 {{\[}}[[P]] + 16]
// CHECK-NEXT:    ptx.st global.b32 {{\[}}[[P]] + 20], [[V]]
// CHECK-NEXT:    ptx.ret

// PTX:      .version 7.4
// PTX-NEXT: .target sm_80
// PTX:      .visible .entry k(
// PTX:      ld.param.u64 %rd1, [x];
// PTX-NEXT: ld.param.u32 %r1, [i];
// PTX-NEXT: mad.wide.u32 %rd2, %r1, 4, %rd1;
// PTX-NEXT: ld.global.b32 %r2, [%rd2+16];
// PTX-NEXT: st.global.b32 [%rd2+20], %r2;
// PTX-NEXT: ret;
