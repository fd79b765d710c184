// RUN: phobos-opt %s | phobos-opt -f mlir | filecheck %s
// RUN: phobos-opt %s -p ph-ptx-verify,ph-ptx-canonicalize,ph-ptx-reorder -t ptx | filecheck %s --check-prefix=PTX

ptx.module @m sm_90a {
  ptx.shared @stage 4096 align 128
  ptx.shared @barriers 16 align 8

  // The map of a tensor: its address is taken once.
  // CHECK-LABEL: ptx.entry @load(n: u32, x_map_0: b8[128] align 64) maxntid 128
  // PTX-LABEL: .entry load
  // PTX:       .param .u32 n,
  // PTX-NEXT:  .param .align 64 .b8 x_map_0[128]
  ptx.entry @load(n: u32, x_map_0: b8[128] align 64) maxntid 128 {
    %n = ptx.param u32 0
    // CHECK: %address = ptx.param_address 1
    // PTX:      mov.b64 %[[SYMBOL:rd.*]], x_map_0;
    // PTX-NEXT: cvta.param.u64 %[[MAP:rd.*]], %[[SYMBOL]];
    %address = ptx.param_address 1
    %map = ptx.cvta param.u64 %address
    %again = ptx.param_address 1
    %same = ptx.cvta param.u64 %again
    %stage = ptx.symbol @stage : b32
    %barriers = ptx.symbol @barriers : b32
    %mask = ptx.imm 3 : b16
    %zero = ptx.imm 0 : b32
    %bytes = ptx.imm 4096 : b32
    %all = ptx.imm -1 : b32
    %eight = ptx.imm 8 : b32
    // CHECK: %chosen = ptx.elect sync %all
    // CHECK-NEXT: %lane, %p = ptx.elect sync %all -> b32, pred
    // CHECK-NEXT: ptx.prefetch tensormap [%same] guard %chosen
    // PTX-NEXT: elect.sync _|%[[CHOSEN:p.*]], 0xffffffff;
    // PTX-NEXT: elect.sync %[[LANE:r.*]]|%{{.*}}, 0xffffffff;
    // PTX-NEXT: @%[[CHOSEN]] prefetch.tensormap [%[[MAP]]];
    %chosen = ptx.elect sync %all
    %lane, %p = ptx.elect sync %all -> b32, pred
    ptx.prefetch tensormap [%same] guard %chosen
    // CHECK: %remote = ptx.mapa shared::cluster.u32 %barriers, %lane
    // PTX-NEXT: mapa.shared::cluster.u32 %[[REMOTE:r.*]], %[[BARRIERS:r.*]], %[[LANE]];
    %remote = ptx.mapa shared::cluster.u32 %barriers, %lane
    %empty = ptx.add u32 %barriers, %eight
    ptx.bra ^wait
  ^wait:
    // A loop that only waits stays as it is.
    // CHECK: %done = ptx.mbarrier try_wait.parity.shared.b64 [%empty], %zero
    // PTX-NEXT: $L_wait_1:
    // PTX-NEXT: mbarrier.try_wait.parity.shared.b64 %[[DONE:p.*]], [barriers+8], 0;
    // PTX-NEXT: @!%[[DONE]] bra $L_wait_1;
    %done = ptx.mbarrier try_wait.parity.shared.b64 [%empty], %zero
    ptx.cond_bra %done, ^copy, ^wait
  ^copy:
    // CHECK: ptx.mbarrier arrive.expect_tx.shared::cta.b64 [%barriers], %bytes
    // PTX-NEXT: mbarrier.arrive.expect_tx.shared::cta.b64 _, [barriers], 4096;
    ptx.mbarrier arrive.expect_tx.shared::cta.b64 [%barriers], %bytes
    // CHECK-NEXT: ptx.cp.async.bulk.tensor 2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%stage], [%map, {%zero, %n}], [%barriers] guard %chosen
    // PTX-NEXT: @%[[CHOSEN]] cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [stage], [%[[MAP]], {0, %[[N:r.*]]}], [barriers];
    ptx.cp.async.bulk.tensor 2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%stage], [%map, {%zero, %n}], [%barriers] guard %chosen
    // CHECK-NEXT: ptx.cp.async.bulk.tensor 3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%stage], [%same, {%zero, %n, %lane}], [%barriers + 8], %mask
    // PTX-NEXT: cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [stage], [%[[MAP]], {0, %[[N]], %[[LANE]]}], [barriers+8], 3;
    ptx.cp.async.bulk.tensor 3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%stage], [%same, {%zero, %n, %lane}], [%barriers + 8], %mask
    // PTX-NEXT: mbarrier.arrive.shared::cluster.b64 _, [%[[REMOTE]]];
    // PTX-NEXT: mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%[[REMOTE]]], 4096;
    ptx.mbarrier arrive.shared::cluster.b64 [%remote]
    ptx.mbarrier arrive.release.cluster.shared::cluster.b64 [%remote], %bytes
    // CHECK: ptx.setmaxnreg inc.sync.aligned.u32 40
    // PTX-NEXT: setmaxnreg.inc.sync.aligned.u32 40;
    ptx.setmaxnreg inc.sync.aligned.u32 40
    // PTX-NEXT: fence.mbarrier_init.release.cluster;
    // PTX-NEXT: barrier.cluster.arrive.relaxed.aligned;
    // PTX-NEXT: barrier.cluster.wait.aligned;
    ptx.fence mbarrier_init.release.cluster
    ptx.barrier.cluster arrive.relaxed.aligned
    ptx.barrier.cluster wait.aligned
    ptx.ret
  }

  // CHECK-LABEL: ptx.entry @store
  // PTX-LABEL: .entry store
  ptx.entry @store(x_map_0: b8[128] align 64, p: u64) {
    %address = ptx.param_address 0
    %map = ptx.cvta param.u64 %address
    %p = ptx.param u64 1
    %to = ptx.cvta to.global.u64 %p
    %stage = ptx.symbol @stage : b32
    %x = ptx.sreg cluster_ctaid.x
    %bytes = ptx.imm 64 : b32
    // CHECK: ptx.cp.async.bulk.tensor 1d.global.shared::cta.tile.bulk_group [%map, {%x}], [%stage]
    // PTX: cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%{{rd.*}}, {%r{{.*}}}], [stage];
    ptx.cp.async.bulk.tensor 1d.global.shared::cta.tile.bulk_group [%map, {%x}], [%stage]
    // CHECK-NEXT: ptx.cp.async.bulk global.shared::cta.bulk_group [%to], [%stage + 64], %bytes
    // PTX-NEXT: cp.async.bulk.global.shared::cta.bulk_group [%{{rd.*}}], [stage+64], 64;
    ptx.cp.async.bulk global.shared::cta.bulk_group [%to], [%stage + 64], %bytes
    // CHECK-NEXT: ptx.cp.async.bulk.commit_group
    // CHECK-NEXT: ptx.cp.async.bulk.wait_group read 1
    // CHECK-NEXT: ptx.cp.async.bulk.wait_group 0
    // PTX-NEXT: cp.async.bulk.commit_group;
    // PTX-NEXT: cp.async.bulk.wait_group.read 1;
    // PTX-NEXT: cp.async.bulk.wait_group 0;
    ptx.cp.async.bulk.commit_group
    ptx.cp.async.bulk.wait_group read 1
    ptx.cp.async.bulk.wait_group 0
    ptx.ret
  }

  // Two blocks that read each other's memory.
  // CHECK-LABEL: ptx.entry @cluster(p: u64) maxntid 64 attributes {phobos.cluster = array<i64: 2, 1, 1>}
  // PTX-LABEL: .entry cluster
  // PTX:      .maxntid 64, 1, 1
  // PTX-NEXT: .minnctapersm 1
  // PTX-NEXT: .reqnctapercluster 2, 1, 1
  ptx.entry @cluster(p: u64) maxntid 64 attributes {"phobos.cluster" = array<i64: 2, 1, 1>} {
    %p = ptx.param u64 0
    %to = ptx.cvta to.global.u64 %p
    %one = ptx.imm 1 : b32
    %rank = ptx.sreg cluster_ctarank
    %stage = ptx.symbol @stage : b32
    ptx.st shared.b32 [%stage], %rank
    // PTX:      st.shared.b32 [stage], %[[RANK:r.*]];
    // PTX-NEXT: barrier.cluster.arrive.release.aligned;
    // PTX-NEXT: barrier.cluster.wait.acquire.aligned;
    // PTX-NEXT: xor.b32 %[[OTHER:r.*]], %[[RANK]], 1;
    // PTX-NEXT: mapa.shared::cluster.u32 %[[THERE:r.*]], %{{r.*}}, %[[OTHER]];
    // PTX-NEXT: ld.shared::cluster.v2.b32 {%{{.*}}, %[[V:r.*]]}, [%[[THERE]]+8];
    // PTX-NEXT: st.shared::cluster.b32 [%[[THERE]]], %[[V]];
    ptx.barrier.cluster arrive.release.aligned
    ptx.barrier.cluster wait.acquire.aligned
    %other = ptx.xor b32 %rank, %one
    // CHECK: %there = ptx.mapa shared::cluster.u32 %stage, %other
    // CHECK-NEXT: %u, %v = ptx.ld shared::cluster.v2.b32 [%there + 8]
    // CHECK-NEXT: ptx.st shared::cluster.b32 [%there], %v
    %there = ptx.mapa shared::cluster.u32 %stage, %other
    %u, %v = ptx.ld shared::cluster.v2.b32 [%there + 8]
    ptx.st shared::cluster.b32 [%there], %v
    ptx.st global.b32 [%to], %u
    // PTX:      barrier.cluster.arrive.relaxed;
    // PTX-NEXT: barrier.cluster.wait;
    ptx.barrier.cluster arrive.relaxed
    ptx.barrier.cluster wait
    ptx.ret
  }
}
