// RUN: not phobos-opt %s -p ph-ptx-verify --split-input-file 2>&1 | filecheck %s

// CHECK: k.ph:3:7: error: `cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster` does not exist on sm_90
// CHECK-NEXT: help: sm_90a has it
// CHECK-NOT: Traceback
ptx.module @m sm_90 {
  ptx.entry @k(x_map_0: b8[128] align 64) {
    %address = ptx.param_address 0
    %map = ptx.cvta param.u64 %address
    %at = ptx.imm 128 : b32
    %all = ptx.imm 3 : b16
    ptx.cp.async.bulk.tensor 2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%at], [%map, {%at, %at}], [%at], %all loc("k.ph":3:7)
    ptx.ret
  }
}

// -----

// CHECK: error: a bulk copy of 40 bytes
// CHECK-NEXT: help: it copies multiples of 16 bytes
// CHECK: error: a barrier that expects 0 arrivals
// CHECK-NEXT: help: it can expect 1 to 1048575
// CHECK: error: a barrier that expects 1048576 bytes
// CHECK-NEXT: help: it can expect 0 to 1048575
ptx.module @m sm_90 {
  ptx.entry @k(x: u64) {
    %x = ptx.param u64 0
    %from = ptx.cvta to.global.u64 %x
    %at = ptx.imm 128 : b32
    %none = ptx.imm 0 : b32
    %odd = ptx.imm 40 : b32
    %many = ptx.imm 1048576 : b32
    ptx.cp.async.bulk shared::cluster.global.mbarrier::complete_tx::bytes [%at], [%from], %odd, [%at]
    ptx.mbarrier init.shared.b64 [%at], %none
    ptx.mbarrier arrive.expect_tx.shared::cta.b64 [%at], %many
    ptx.ret
  }
}

// -----

// CHECK: error: `k` has no parameter 2
// CHECK: error: the parameter `x` is no tensor map
// CHECK-NEXT: help: a tensor map is `x: b8[128] align 64`
// CHECK: error: the parameter `y` is no tensor map
// CHECK: error: ptxas would ignore this: how many registers `k` begins with is open
// CHECK-NEXT: help: give the kernel `maxntid` or `maxnreg`
ptx.module @m sm_90a {
  ptx.entry @k(x: u64, y: b8[128]) {
    %at = ptx.imm 128 : b32
    %x = ptx.param_address 0
    %first = ptx.cvta param.u64 %x
    %y = ptx.param_address 1
    %second = ptx.cvta param.u64 %y
    %z = ptx.param_address 2
    ptx.prefetch tensormap [%first]
    ptx.cp.async.bulk.tensor 1d.global.shared::cta.tile.bulk_group [%second, {%at}], [%at]
    ptx.setmaxnreg dec.sync.aligned.u32 40
    ptx.ret
  }
}

// -----

// CHECK: error: `ptx.setmaxnreg` is not valid: `setmaxnreg.dec.sync.aligned.u32`: literal 60 is not one of 24 to 256 in steps of 8
ptx.module @m sm_90a {
  ptx.entry @k() maxntid 128 {
    ptx.setmaxnreg dec.sync.aligned.u32 60
    ptx.ret
  }
}

// -----

// CHECK: error: `k` needs clusters, which sm_89 does not have
// CHECK-NEXT: help: sm_90, sm_90a and sm_120 have them
ptx.module @m sm_89 {
  ptx.entry @k() attributes {"phobos.cluster" = array<i64: 2, 1, 1>} {
    ptx.ret
  }
}

// -----

// CHECK: error: a cluster of 16 blocks; the limit is 8
ptx.module @m sm_90 {
  ptx.entry @k() attributes {"phobos.cluster" = array<i64: 4, 4, 1>} {
    ptx.ret
  }
}
