// RUN: not phobos-opt %s -p ph-ptx-verify --split-input-file 2>&1 | filecheck %s

// CHECK: k.ph:3:7: error: `redux.sync.add.u32` does not exist on sm_75
// CHECK: help: sm_80, sm_86, sm_89, sm_90 and sm_120 have it
// CHECK-NOT: Traceback
ptx.module @m sm_75 {
  ptx.entry @k(x: u32) {
    %all = ptx.imm -1 : b32
    %x = ptx.param u32 0
    %s = ptx.redux sync.add.u32 %x, %all loc("k.ph":3:7)
    ptx.ret
  }
}

// -----

// CHECK: error: `ex2.approx.ftz.bf16` does not exist on sm_80
ptx.module @m sm_80 {
  ptx.entry @k(x: u16) {
    %x = ptx.param u16 0
    %s = ptx.ex2 approx.ftz.bf16 %x
    ptx.ret
  }
}

// -----

// CHECK: error: the variables in shared memory take 65536 bytes; the limit is 49152
// CHECK: help: memory sized at launch (`@dynshared`) can take 166912 bytes on sm_80
ptx.module @m sm_80 {
  ptx.shared @tile 65536 align 16
}
