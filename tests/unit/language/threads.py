"""Rules of what each thread does for itself, and of what threads do together."""

from __future__ import annotations

import numpy as np

from tests.unit.language.rule import LANE, THREAD, WARP, Rule, X, first

PLACES = "Each thread for itself"
COLLECTIVES = "Collectives and shuffles"
MEMORY = "Updates by many threads"
CLUSTERS = "Clusters"
RUNS = "A thread's own run"
UNIFORM = "How far a value differs"
LOOKING = "Looking inside"

CLUSTER_HEAD = """
@cluster(2)
kernel k(X: tensor<f32>[64], Y: tensor<f32>[64]) {
"""

RULES = (
    Rule(
        PLACES,
        "blocks have axes, threads have none",
        "Y[ctx.thread] = f32(ctx.block.x + ctx.blocks.y + ctx.warp * ctx.lanes + ctx.lane)"
        " + f32(ctx.threads + ctx.warps)",
        1 + THREAD + 66,
        "Y[0] = f32(ctx.block)",
        "`ctx.block` needs an axis",
        "ctx.block",
    ),
    Rule(
        PLACES,
        "what `ctx` knows",
        "Y[ctx.thread] = f32(ctx.lane)",
        LANE,
        "Y[0] = f32(ctx.warpsize)",
        "`ctx` has no field `warpsize`",
        "warpsize",
    ),
    Rule(
        COLLECTIVES,
        "a collective folds over lanes, warps or threads",
        "let x = X[ctx.thread]\nY[ctx.thread] = sum<over ctx.lane>(x) + max<over ctx.warp>(x) +"
        " min<over ctx.thread>(x)",
        np.where(WARP, X[32:].sum(), X[:32].sum()) + X[LANE + 32],
        "Y[ctx.thread] = sum<over ctx.block>(X[0])",
        "expected `ctx.lane`, `ctx.warp`, `ctx.thread` or axes, found `ctx.block`",
        "ctx.block",
    ),
    Rule(
        COLLECTIVES,
        "it folds a scalar of each thread",
        "let x = X[ctx.thread]\nlet p = ctx.lane > 29\n"
        "Y[ctx.thread] = prod<over ctx.lane>(where(p, x, 1)) + f32(count<over ctx.thread>(p))",
        np.where(WARP, 31 * 31.5, 15 * 15.5) + 4,
        "Y[ctx.thread] = sum<over ctx.lane>(X[:])",
        "`sum<over ctx.lane>` folds one scalar of each thread, not tile<f32>[64]",
        "sum<over ctx.lane>(X[:])",
    ),
    Rule(
        COLLECTIVES,
        "`any`, `all` and `count` fold bools",
        "let p = ctx.lane == n\n"
        "if any<over ctx.lane>(p) && !all<over ctx.lane>(p) { Y[ctx.thread] = 1 }",
        1,
        "Y[ctx.thread] = f32(i32(any<over ctx.lane>(X[0])))",
        "`any` folds bools, but this is f32",
        "any<over ctx.lane>(X[0])",
    ),
    Rule(
        COLLECTIVES,
        "places and running sums over threads",
        "let x = X[ctx.thread]\nY[ctx.thread] = scan<over ctx.thread>(x) +"
        " f32(argmax<over ctx.lane>(x) + 100 * argmin<over ctx.thread>(x))",
        np.cumsum(X) + 31,
        "Y[ctx.thread] = scan<over ctx.lane>(X[:])",
        "`scan<over ctx.lane>` folds one scalar of each thread, not tile<f32>[64]",
        "scan<over ctx.lane>(X[:])",
    ),
    Rule(
        COLLECTIVES,
        "a shuffle moves a scalar by integers",
        "let x = X[ctx.thread]\nY[ctx.thread] = shuffle(x, n) + shuffle_xor(x, 1) +"
        " shuffle_up(x, 2) + shuffle_down(x, 1)",
        X[WARP * 32 + 3]
        + X[THREAD ^ 1]
        + X[np.where(LANE >= 2, THREAD - 2, THREAD)]
        + X[np.where(LANE < 31, THREAD + 1, THREAD)],
        "Y[ctx.thread] = shuffle(X[0], 0.5)",
        "the second argument of `shuffle` is an integer, not a float literal",
        "0.5",
    ),
    Rule(
        COLLECTIVES,
        "a ballot is of bools",
        "Y[ctx.thread] = f32(popcount(ballot(ctx.thread < 40)))",
        np.where(WARP, 8, 32),
        "Y[ctx.thread] = f32(ballot(n))",
        "a condition is one bool, but this is i32",
        "n",
    ),
    Rule(
        MEMORY,
        "an update names an element and a value",
        "atomic_add(Y, n, 1)\natomic_max(Y, 0, X[ctx.thread])\natomic_min(Y, 1, -X[ctx.thread])\n"
        "if ctx.thread == 0 {\n  Y[5] = atomic_exchange(Y, 4, 9)\n"
        "  Y[6] = atomic_cas(Y, 4, 9, 8)\n}",
        first(31.5, -31.5, 0, 64, 8, 0, 9),
        "atomic_add(Y, 0)",
        "`atomic_add` of `Y` takes 1 subscript and 1 value behind its name, not 1 argument",
        "atomic_add(Y, 0)",
    ),
    Rule(
        MEMORY,
        "elements of 8 bits have no atomic updates",
        "var t: tile<u32>[2] = 0\natomic_add(t, 1, u32(n))\nY[0 :+ 2] = f32(t)",
        first(0, 192),
        "kernel k(A: tensor<i8>[4]) { atomic_add(A, 0, 1) }",
        "there is no atomic update of i8",
        "atomic_add(A, 0, 1)",
    ),
    Rule(
        MEMORY,
        "and, or and xor are updates of integers",
        "var t: tile<i32>[4] = 0\natomic_or(t, 0, i32(1) << i32(ctx.lane % 4))\n"
        "atomic_xor(t, 1, i32(ctx.thread))\natomic_and(t, 2, 5)\nY[0 :+ 4] = f32(t)",
        first(15, np.bitwise_xor.reduce(THREAD), 0),
        "atomic_and(Y, 0, 1)",
        "`atomic_and` works on the bits of integers, not on f32",
        "atomic_and(Y, 0, 1)",
    ),
    Rule(
        MEMORY,
        "a tile that is updated is a `var`",
        "var t = X[:]\natomic_add(t, 0, 1)\nY[:] = t",
        np.r_[64, X[1:]],
        "let t = X[:]\natomic_add(t, 0, 1)",
        "`t` is a `let` and cannot be assigned to",
        "t",
    ),
    Rule(
        MEMORY,
        "a grid barrier is of a persistent kernel",
        """
@persistent
@launch(64)
kernel k(S: tensor<i32>[2], Y: tensor<f32>[64]) {
  grid_barrier(S)
  if ctx.block.x == 0 { Y[:] = 1 }
}
""",
        1,
        "kernel k(s: tensor<i32>[2]) { grid_barrier(s) }",
        "`grid_barrier` needs all CTAs of the grid to run at once",
        "grid_barrier(s)",
    ),
    Rule(
        MEMORY,
        "its state is a tensor of 2 i32",
        """
@persistent
kernel k(S: tensor<i32>[4], Y: tensor<f32>[64]) {
  for i in range(3) { grid_barrier(S) }
  if ctx.block.x == 0 { Y[:] = 2 }
}
""",
        2,
        "@persistent\nkernel k(s: tensor<f32>[2]) { grid_barrier(s) }",
        "the state of a grid barrier is a tensor of at least 2 i32, but this is tensor<f32>[2]",
        "s",
    ),
    Rule(
        MEMORY,
        "flags are read and written with an acquire and a release",
        "if ctx.thread == 0 { store_release(Y, n, load_acquire(X, 5) + 1) }",
        first(0, 0, 0, 3.5),
        "store_release(Y, 1)",
        "`store_release` of `Y` takes 1 subscript and 1 value behind its name, not 1 argument",
        "store_release(Y, 1)",
    ),
    Rule(
        CLUSTERS,
        "the CTAs of a cluster have ranks",
        CLUSTER_HEAD + "let first = ctx.block.x / ctx.cluster.size * 64 + ctx.cluster.rank * 32\n"
        "Y[first :+ 32] = f32(10 * ctx.cluster.size + ctx.cluster.rank)\n}",
        20 + WARP,
        "Y[0] = f32(ctx.cluster.rank)",
        "`ctx.cluster.rank` is about a cluster, and the CTAs of this kernel form none",
        "ctx.cluster.rank",
        chip="sm_90",
    ),
    Rule(
        CLUSTERS,
        "each CTA gets its part of a sum, of as many rows as the others",
        CLUSTER_HEAD + "let own = ctx.block.x / ctx.cluster.size * 64 + ctx.cluster.rank * 32\n"
        "Y[own :+ 32] = cluster_sum(X[:] + f32(ctx.cluster.rank))\n}",
        2 * X + 1,
        CLUSTER_HEAD + "Y[0 :+ 31] = cluster_sum(X[0 :+ 31])\n}",
        "`cluster_sum` gives each of 2 CTAs as many rows, but tile<f32>[31] has 31",
        "cluster_sum(X[0 :+ 31])",
        chip="sm_90",
    ),
    Rule(
        CLUSTERS,
        "all CTAs of the cluster get to it",
        CLUSTER_HEAD + "let number = ctx.block.x / ctx.cluster.size\n"
        "if number < 1 { Y[number * 64 + ctx.cluster.rank * 32 :+ 32] = cluster_sum(X[:]) }\n}",
        2 * X,
        CLUSTER_HEAD + "if ctx.block.x < 1 { Y[0 :+ 32] = cluster_sum(X[:]) }\n}",
        "`cluster_sum` needs all CTAs of the cluster, but only some may get here",
        "cluster_sum(X[:])",
        chip="sm_90",
    ),
    Rule(
        RUNS,
        "a run lies along the last axis",
        "if ctx.thread < 4 {\n  let r = elem(W[ctx.thread, 4 :+ 8])\n"
        "  Y[ctx.thread] = sum(r * r) - sum(W[ctx.thread, 4 :+ 8])\n}",
        first(*((r * r).sum() - r.sum() for r in np.arange(64).reshape(4, 16)[:, 4:12])),
        "let r = elem(W[0 :+ 4, 0 :+ 4])",
        "a thread's run lies along the last axis alone",
        "W[0 :+ 4, 0 :+ 4]",
    ),
    Rule(
        RUNS,
        "its length is a constant, where it begins is each thread's own",
        "if ctx.thread < 16 { store(Y[ctx.thread * 4 :+ 4], elem(X[60 - ctx.thread * 4 :+ 4])) }",
        X.reshape(16, 4)[::-1].ravel(),
        "let r = elem(X[0 :+ n])",
        "the length of a slice is a compile-time constant",
        "n",
    ),
    Rule(
        RUNS,
        "what is stored is as long as where it goes",
        "if ctx.thread == 0 {\n  store(Y[4 :+ 4], elem(X[0 :+ 4]) + 1)\n  store(Y[8 :+ 2], 5)\n}",
        first(0, 0, 0, 0, 1, 1.5, 2, 2.5, 5, 5),
        "store(Y[0 :+ 4], elem(X[0 :+ 8]))",
        "this slice of `Y` is run<f32>[4], but this value is run<f32>[8]",
        "X[0 :+ 8]",
    ),
    Rule(
        RUNS,
        "a run is used as a whole",
        "if ctx.thread == 0 { Y[0] = sum(elem(X[0 :+ 4]) * elem(X[4 :+ 4])) }",
        first((X[:4] * X[4:8]).sum()),
        "let r = elem(X[0 :+ 4])\nY[0] = r[1]",
        "`r` is a run, which is used as a whole",
        "r[1]",
    ),
    Rule(
        RUNS,
        "runs and tiles do not mix",
        "Y[:] = X[:]\nbarrier()\nif ctx.thread == 0 { store(Y[0 :+ 2], elem(X[2 :+ 2])) }",
        np.r_[X[2:4], X[2:]],
        "let r = elem(X[0 :+ 4]) + X[0 :+ 4]",
        "`+`: run<f32>[4] and tile<f32>[4] do not mix: a run is one thread's, a"
        " tile the whole CTA's",
        "elem(X[0 :+ 4]) + X[0 :+ 4]",
    ),
    Rule(
        RUNS,
        "`word` packs 32 bits",
        """
@launch(32)
kernel k(B: tensor<u8>[16], Y: tensor<f32>[64]) {
  if ctx.thread == 0 {
    for i in range(16) { B[i] = u8(i) }
    let w = word(B[4 :+ 4])
    Y[0] = f32(byteperm(w, w, i32(0)) & 255)
    Y[1] = f32(dp4a(w, w, i32(1)))
    Y[2] = f32(clz(w) + popcount(brev(w)))
    Y[3] = f32(f16bits(i32(15360)))
  }
}
""",
        first(4, 1 + 16 + 25 + 36 + 49, 5 + 8, 1),
        "let w = word(X[0 :+ 4])",
        "`word` packs 32 bits, but run<f32>[4] has 128",
        "word(X[0 :+ 4])",
    ),
    Rule(
        UNIFORM,
        "all threads reach a tile operation",
        "if n > 2 { Y[:] = X[:] }",
        X,
        "if ctx.lane == 0 { Y[:] = X[:] }",
        "a tile operation needs uniform control flow, but only some threads get here",
        "Y[:] = X[:]",
    ),
    Rule(
        UNIFORM,
        "all threads reach a barrier",
        "var t: tile<f32>[64]\nfor i in range(n) {\n  t[63 - ctx.thread] = f32(ctx.thread + i)\n"
        "  barrier()\n  Y[ctx.thread] = t[ctx.thread]\n  barrier()\n}",
        65 - THREAD,
        "if ctx.lane > 3 { return }\nbarrier()",
        "`barrier()` needs uniform control flow, but only some threads get here",
        "barrier()",
    ),
    Rule(
        UNIFORM,
        "all threads reach a collective over threads or warps",
        "for i in range(n) { Y[ctx.thread] = sum<over ctx.thread>(X[ctx.thread]) }",
        X.sum(),
        "if ctx.warp > 0 { Y[ctx.thread] = sum<over ctx.warp>(X[ctx.thread]) }",
        "a collective over `ctx.warp` needs uniform control flow, but only some threads get here",
        "sum<over ctx.warp>(X[ctx.thread])",
    ),
    Rule(
        UNIFORM,
        "all lanes of a warp reach a collective over lanes",
        "if ctx.warp > 0 { Y[ctx.thread] = sum<over ctx.lane>(X[ctx.thread]) }",
        np.where(WARP, X[32:].sum(), 0),
        "for i in range(ctx.lane) { Y[ctx.thread] = sum<over ctx.lane>(X[ctx.thread]) }",
        "a collective over `ctx.lane` needs at least warp-uniform control flow, but only some lanes"
        " of a warp get here",
        "sum<over ctx.lane>(X[ctx.thread])",
    ),
    Rule(
        UNIFORM,
        "all lanes of a warp reach a shuffle",
        "if all<over ctx.lane>(ctx.thread > 31) { Y[ctx.thread] = shuffle(X[ctx.thread], 1) }",
        np.where(WARP, X[33], 0),
        "if X[ctx.thread] > 3 { Y[ctx.thread] = shuffle(X[ctx.thread], 0) }",
        "a shuffle needs at least warp-uniform control flow, but only some lanes of a warp"
        " get here",
        "shuffle(X[ctx.thread], 0)",
    ),
    Rule(
        UNIFORM,
        "where a tile begins is the same for all threads",
        "let i = max<over ctx.thread>(I[ctx.thread]) - 31\nY[i :+ 32] = X[i :+ 32]",
        np.where(WARP, X, 0),
        "Y[ctx.thread :+ 8] = X[0 :+ 8]",
        "a slice that makes a tile needs a uniform start; this one is varying",
        "Y[ctx.thread :+ 8] = X[0 :+ 8]",
    ),
    Rule(
        UNIFORM,
        "a scalar that meets a tile is the same for all threads",
        "Y[:] = X[:] + X[n]",
        X + X[3],
        "Y[:] = X[:] + X[ctx.thread]",
        "a scalar that meets a tile must be uniform, since the tile is one value of the CTA; this"
        " one is varying",
        "X[ctx.thread]",
    ),
    Rule(
        UNIFORM,
        "what is assigned under a condition differs as far as the condition",
        "var m = 0\nif n > 2 { m = 8 }\nY[m :+ 8] = X[0 :+ 8]",
        np.r_[np.zeros(8), X[:8], np.zeros(48)],
        "var m = 0\nif ctx.warp > 0 { m = 8 }\nY[m :+ 8] = X[0 :+ 8]",
        "a slice that makes a tile needs a uniform start; this one is warp-uniform",
        "Y[m :+ 8] = X[0 :+ 8]",
    ),
    Rule(
        LOOKING,
        "`assert` takes a bool and a text",
        'assert(n == 3, "n is as always")\nY[:] = 1',
        1,
        'assert(n, "n")',
        "a condition is one bool, but this is i32",
        "n",
        assertions=True,
    ),
    Rule(
        LOOKING,
        "`print` has a scalar for each `{}`",
        'if ctx.thread == 5 { print("{} {} {{}}", n, X[ctx.thread]) }\nY[:] = f32(I[0]) - 61',
        2,
        'print("{} {}", n)',
        "the text has 2 `{}`, and 1 value follows",
        '"{} {}"',
        assertions=True,
    ),
)
