// RUN: not phobos-opt %s --split-input-file -p ph-infer-uniformity 2>&1 | filecheck %s

"gpu.module"() <{sym_name = "m"}> ({
  // CHECK: `cluster.barrier` needs all CTAs of the cluster, but only some may get here
  // CHECK: `ctx.cluster.rank` differs between the CTAs of a cluster
  "gpu.func"() <{function_type = (index) -> (), kernel}> ({
  ^bb0(%n: index):
    %rank = cluster.rank
    %is_own = arith.cmpi eq, %rank, %n : index
    scf.if %is_own {
      cluster.barrier
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "k", phobos.cluster = array<i64: 2, 1, 1>} : () -> ()
}) : () -> ()

// -----

"gpu.module"() <{sym_name = "m"}> ({
  // CHECK: `cluster.arrive` needs uniform control flow, but only some threads get here
  "gpu.func"() <{function_type = (index) -> (), kernel}> ({
  ^bb0(%n: index):
    %thread = ctx.thread
    %is_own = arith.cmpi eq, %thread, %n : index
    scf.if %is_own {
      cluster.arrive
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "k", phobos.cluster = array<i64: 2, 1, 1>} : () -> ()
}) : () -> ()
