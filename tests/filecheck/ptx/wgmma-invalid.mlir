// RUN: not phobos-opt %s -p ph-ptx-verify --split-input-file 2>&1 | filecheck %s

// CHECK: k.ph:3:7: error: `wgmma.fence.sync.aligned` does not exist on sm_90
// CHECK: help: sm_90a has it
// CHECK-NOT: Traceback
ptx.module @m sm_90 {
  ptx.entry @k() {
    ptx.wgmma.fence sync.aligned loc("k.ph":3:7)
    ptx.ret
  }
}

// -----

// CHECK: `wgmma.mma_async.sync.aligned.m64n12k16.f16.f16.f16` is no form of `wgmma.mma_async`; these are: `sync.aligned.m64n{8..256/8}k16.f32.f16.f16`
ptx.module @m sm_90a {
  ptx.entry @k(p: u64) {
    %x = ptx.param u64 0
    %a = ptx.imm 0 : b32
    %c, %d, %e = ptx.wgmma.mma_async sync.aligned.m64n12k16.f16.f16.f16 {%a, %a, %a}, %x, %x, 1, 1, 1, 0, 0
    ptx.ret
  }
}

// -----

// CHECK: `wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16` takes `b32{n/4} = &b32{n/4}, b64!, b64!, #0|1, #1|-1, #1|-1, #0|1, #0|1` or
ptx.module @m sm_90a {
  ptx.entry @k(p: u64) {
    %x = ptx.param u64 0
    %a = ptx.imm 0 : b32
    %c, %d, %e = ptx.wgmma.mma_async sync.aligned.m64n8k16.f16.f16.f16 {%a, %a, %a}, %x, %x, 1, 1, 1, 0, 0
    ptx.ret
  }
}

// -----

// CHECK: literal 0 is not one of 1, -1
ptx.module @m sm_90a {
  ptx.entry @k(p: u64) {
    %x = ptx.param u64 0
    %a = ptx.imm 0 : b32
    %c, %d = ptx.wgmma.mma_async sync.aligned.m64n8k16.f16.f16.f16 {%a, %a}, %x, %x, 1, 1, 0, 0, 0
    ptx.ret
  }
}

// -----

// CHECK: literal 8 is not one of 0 to 7
ptx.module @m sm_90a {
  ptx.entry @k() {
    ptx.wgmma.wait_group sync.aligned 8
    ptx.ret
  }
}

// -----

// CHECK: `wgmma.fence.sync.aligned`: operand 0 is b64, expected b32
ptx.module @m sm_90a {
  ptx.entry @k(p: u64) {
    %x = ptx.param u64 0
    %y = ptx.wgmma.fence sync.aligned {%x} : b64
    ptx.ret
  }
}
