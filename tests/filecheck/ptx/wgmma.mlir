// RUN: phobos-opt %s | phobos-opt -f mlir | filecheck %s
// RUN: phobos-opt %s -p ph-ptx-verify,ph-ptx-canonicalize,ph-ptx-licm,ph-ptx-dead-code -t ptx | filecheck %s --check-prefix=PTX

ptx.module @m sm_90a {
  // A loop whose accumulators are arguments of its block: one register each, and no move in it.
  ptx.entry @loop(p: u64) {
    %base = ptx.param u64 0
    %zero = ptx.imm 0 : b32
    %two = ptx.imm 2 : b64
    ptx.bra ^loop(%zero, %zero, %base : b32, b32, b64)
  ^loop(%a: !ptx.reg<b32>, %b: !ptx.reg<b32>, %x: !ptx.reg<b64>):
    // CHECK: %c, %d = ptx.wgmma.fence sync.aligned {%a, %b}
    // CHECK-NEXT: %e, %f = ptx.wgmma.mma_async sync.aligned.m64n8k16.f16.f16.f16 {%c, %d}, %x, %x, 1, 1, -1, 0, 1
    // CHECK: ptx.wgmma.commit_group sync.aligned
    // CHECK-NEXT: %i, %j = ptx.wgmma.wait_group sync.aligned 0, {%g, %h}
    %c, %d = ptx.wgmma.fence sync.aligned {%a, %b}
    %e, %f = ptx.wgmma.mma_async sync.aligned.m64n8k16.f16.f16.f16 {%c, %d}, %x, %x, 1, 1, -1, 0, 1
    %y = ptx.add u64 %x, %two
    %g, %h = ptx.wgmma.mma_async sync.aligned.m64n8k16.f16.f16.f16 {%e, %f}, %y, %x, 1, 1, 1, 0, 0
    ptx.wgmma.commit_group sync.aligned
    %i, %j = ptx.wgmma.wait_group sync.aligned 0, {%g, %h}
    %q = ptx.setp ne.u64 %y, %base
    ptx.cond_bra %q, ^loop(%i, %j, %y : b32, b32, b64), ^done
  ^done:
    %out = ptx.cvta to.global.u64 %base
    ptx.st global.v2.b32 [%out], {%i, %j}
    ptx.ret
  }

// PTX-LABEL: .entry loop
// PTX:       mov.b32 %[[A:r.*]], 0;
// PTX-NEXT:  mov.b32 %[[B:r.*]], 0;
// PTX:       $L_loop_1:
// PTX-NEXT:  wgmma.fence.sync.aligned;
// PTX-NEXT:  wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%[[A]], %[[B]]}, %[[X:rd.*]], %[[X]], 1, 1, -1, 0, 1;
// PTX-NEXT:  add.u64 %[[Y:rd.*]], %[[X]], 2;
// PTX-NEXT:  wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%[[A]], %[[B]]}, %[[Y]], %[[X]], 1, 1, 1, 0, 0;
// PTX-NEXT:  wgmma.commit_group.sync.aligned;
// PTX-NEXT:  wgmma.wait_group.sync.aligned 0;
// PTX-NEXT:  setp
// PTX:       st.global.v2.b32 [%{{.*}}], {%[[A]], %[[B]]};

  // The first accumulator is needed once more behind the product, so it is copied.
  ptx.entry @kept(p: u64) {
    %base = ptx.param u64 0
    %out = ptx.cvta to.global.u64 %base
    %a = ptx.ld global.b32 [%out]
    %b = ptx.ld global.b32 [%out + 4]
    // CHECK: ptx.wgmma.fence sync.aligned
    // CHECK-NEXT: %{{.*}}, %{{.*}} = ptx.wgmma.mma_async sync.aligned.m64n8k16.f16.f16.f16
    ptx.wgmma.fence sync.aligned
    %c, %d = ptx.wgmma.mma_async sync.aligned.m64n8k16.f16.f16.f16 {%a, %b}, %base, %base, 1, 1, 1, 0, 0
    ptx.wgmma.commit_group sync.aligned
    // CHECK: ptx.wgmma.wait_group sync.aligned 7
    ptx.wgmma.wait_group sync.aligned 7
    %e, %f = ptx.wgmma.wait_group sync.aligned 0, {%c, %d}
    ptx.st global.v4.b32 [%out], {%a, %e, %f, %e}
    ptx.ret
  }

// PTX-LABEL: .entry kept
// PTX:       ld.global.b32 %[[A:r.*]], [
// PTX-NEXT:  ld.global.b32 %[[B:r.*]], [
// PTX-NEXT:  wgmma.fence.sync.aligned;
// PTX-NEXT:  mov.b32 %[[C:r.*]], %[[A]];
// PTX-NEXT:  wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%[[C]], %[[B]]},
// PTX-NEXT:  wgmma.commit_group.sync.aligned;
// PTX-NEXT:  wgmma.wait_group.sync.aligned 7;
// PTX-NEXT:  wgmma.wait_group.sync.aligned 0;
// PTX-NEXT:  st.global.v4.b32 [%{{.*}}], {%[[A]], %[[C]], %[[B]], %[[C]]};

  // One value in two registers; A in registers, of which one is an accumulator's first value, too;
  // constants are put in registers; the product stays though nothing uses it.
  ptx.entry @twice(p: u64) {
    %base = ptx.param u64 0
    %k = ptx.sreg tid.x
    %n = ptx.imm 5 : b32
    // CHECK: ptx.wgmma.mma_async sync.aligned.m64n8k32.s32.s8.u8.satfinite {%k, %k, %n, %n}, {%k, %n, %k, %k}, %base, 0
    %c, %d, %e, %f = ptx.wgmma.mma_async sync.aligned.m64n8k32.s32.s8.u8.satfinite {%k, %k, %n, %n}, {%k, %n, %k, %k}, %base, 0
    ptx.ret
  }

// PTX-LABEL: .entry twice
// PTX:       mov.b32 %[[FIVE:r.*]], 5;
// PTX:       mov.u32 %[[K:r.*]], %tid.x;
// PTX-NEXT:  mov.b32 %[[C:r.*]], %[[K]];
// PTX-NEXT:  mov.b32 %[[D:r.*]], %[[K]];
// PTX-NEXT:  mov.b32 %[[E:r.*]], 5;
// PTX-NEXT:  mov.b32 %[[F:r.*]], 5;
// PTX-NEXT:  wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8.satfinite {%[[C]], %[[D]], %[[E]], %[[F]]}, {%[[K]], %[[FIVE]], %[[K]], %[[K]]}, %{{.*}}, 0;
// PTX-NEXT:  ret;
}
