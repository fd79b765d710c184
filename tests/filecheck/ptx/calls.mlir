// RUN: phobos-opt %s | phobos-opt -f mlir | filecheck %s
// RUN: phobos-opt %s -t ptx | filecheck %s --check-prefix=PTX

ptx.module @m sm_80 {
  ptx.entry @k() {
    %i = ptx.sreg tid.x
    %w = ptx.cvt s64.s32 %i
    // CHECK: ptx.printf "%d %lld", %i, %w : !ptx.reg<b32>, !ptx.reg<b64>
    ptx.printf "%d %lld", %i, %w : !ptx.reg<b32>, !ptx.reg<b64>
    // CHECK-NEXT: ptx.assertfail "no", "k.ph", #builtin.int<7>
    ptx.assertfail "no", "k.ph", #builtin.int<7>
    ptx.ret
  }
}

// PTX: .extern .func (.param .b32 result) vprintf
// PTX: .extern .func __assertfail
// PTX: .global .align 1 .b8 $text_1[8] = {37, 100, 32, 37, 108, 108, 100, 0};
// PTX: .local .align 8 .b8 values[16];
// PTX: st.local.b32 [values+0], %r1;
// PTX-NEXT: st.local.b64 [values+8], %rd1;
// PTX: call (result), vprintf, (first, second);
// PTX: st.param.b32 [part2], 7;
// PTX: call __assertfail, (part0, part1, part2, part3, part4);
