"""Clusters: which CTA is which, and sums over the CTAs of one."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.diagnostics import PhobosError
from tests.support.cases import Arrays
from tests.unit.builtins.trying import check, compiled

CHIP = ("sm_90",)


def integers(tensors: Arrays) -> None:
    """Small numbers, whose sums are right to the last bit in every type."""
    rng = np.random.default_rng(3)
    for tensor in tensors.values():
        tensor[...] = rng.integers(0, 9, tensor.shape).astype(tensor.dtype)


def sums(x: np.ndarray, size: int) -> np.ndarray:
    """The sum of the tiles of each cluster, one behind the other; axis 0 of `x` counts CTAs."""
    return x.reshape(-1, size, *x.shape[1:]).sum(axis=1)


def test_ranks_and_sizes() -> None:
    source = """\
@cluster(4)
@launch(32)
kernel k(Y: tensor<i32>[B]) {
  let number = ctx.block.x / ctx.cluster.size
  Y[ctx.block.x :+ 1] = i32(ctx.cluster.rank + 10 * ctx.cluster.size + 100 * number)
}
"""
    wanted = np.array([40, 41, 42, 43, 140, 141, 142, 143])
    check(source, lambda *_: {"Y": wanted}, [{"B": 8}], grid=(8,), chips=CHIP, widths=(32, 64))


def test_a_cluster_of_one_needs_no_chip_that_has_clusters() -> None:
    source = """\
@cluster(1)
kernel k(X: tensor<f32>[R, 8], Y: tensor<f32>[R, 8]) {
  let row = ctx.block.x / ctx.cluster.size * 16 + ctx.cluster.rank
  Y[row :+ 16, :] = cluster_sum(X[row :+ 16, :])
}
"""
    check(source, lambda t, _: {"Y": t["X"]}, [{"R": 30}], grid=(2,), chips=("sm_75", "sm_90"))
    assert compiled(source, "sm_90").contract.kernel("k").cluster == (1, 1, 1)


SUM = """\
@cluster({size})
@launch({threads})
kernel k(X: tensor<{type}>[B, {shape}], Y: tensor<{type}>[C, {shape}]) {{
  let t = reshape(X[ctx.block.x :+ 1, {all}], {shape})
  let rows = {rows} / ctx.cluster.size
  let part = reshape(cluster_sum(t), 1, rows{extents})
  Y[ctx.block.x / ctx.cluster.size :+ 1, ctx.cluster.rank * rows :+ rows{rest}] = part
}}
"""


def sum_of(type_: str, shape: tuple[int, ...], size: int, threads: int) -> str:
    rows, *rest = shape
    return SUM.format(
        size=size,
        threads=threads,
        type=type_,
        shape=", ".join(map(str, shape)),
        rows=rows,
        all=", ".join(":" for _ in shape),
        rest="".join(", :" for _ in rest),
        extents="".join(f", {extent}" for extent in rest),
    )


@pytest.mark.parametrize(
    ("type_", "shape", "size", "threads"),
    [
        ("f32", (32, 64), 4, 128),
        ("f16", (16, 48), 8, 64),
        ("bf16", (64,), 2, 32),
        ("f64", (8, 8), 4, 96),
        ("i32", (24, 20), 4, 128),
        ("u64", (4, 3, 5), 2, 40),
        ("f32", (8, 1), 8, 256),
    ],
)
def test_sums(type_: str, shape: tuple[int, ...], size: int, threads: int) -> None:
    check(
        sum_of(type_, shape, size, threads),
        lambda t, _: {"Y": sums(t["X"], size)},
        [{"B": 2 * size, "C": 2}],
        grid=(2 * size,),
        chips=CHIP,
        prepare=integers,
    )


def test_each_cta_adds_the_next_ranks_to_its_own_tile() -> None:
    def ranks(tensors: Arrays) -> None:
        tensors["X"][...] = np.array([2048, 1, 1, -2048])[:, None]

    # In f16, 2048 + 1 is 2048, which makes a difference in the order of rank 0 alone.
    wanted = np.array([[0, 0, 2, 2, 2, 2, 2, 2]])
    source = sum_of("f16", (8,), 4, 32)
    check(source, lambda *_: {"Y": wanted}, [{"B": 4, "C": 1}], grid=(4,), chips=CHIP,
          prepare=ranks)  # fmt: skip


def test_sums_in_a_loop_with_other_shared_memory() -> None:
    """The buffers of two sums and of what crosses warps take turns, in every iteration."""
    source = """\
@cluster(2)
@launch(128)
kernel k(X: tensor<f32>[N, 32], Y: tensor<f32>[M, 32], Z: tensor<f32>[M, 32]) {
  for i in range(ctx.block.x / ctx.cluster.size, N / 64, ctx.blocks.x / ctx.cluster.size) {
    let t = X[i * 64 + ctx.cluster.rank * 32 :+ 32, :]
    let row = i * 32 + ctx.cluster.rank * 16
    Y[row :+ 16, :] = cluster_sum(transpose(t))
    if i < 3 {
      Z[row :+ 16, :] = cluster_sum(t + 1.0)
    }
  }
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        x = tensors["X"].reshape(-1, 2, 32, 32)
        z = (x + 1).sum(axis=1)
        z[3:] = tensors["Z"].reshape(-1, 32, 32)[3:]
        return {"Y": x.sum(axis=1).swapaxes(1, 2).reshape(-1, 32), "Z": z.reshape(-1, 32)}

    dims = [{"N": 64 * 5, "M": 32 * 5}]
    check(source, reference, dims, grid=(4,), chips=CHIP, prepare=integers)


@pytest.mark.parametrize("chip", ["sm_90", "sm_90a"])
def test_sums_take_turns_with_the_stages_of_loops(chip: str) -> None:
    """Copies for the next loop wait until no slower CTA reads what lies there."""
    source = """\
@cluster(2)
@launch(128)
@dynshared
kernel k(A: tensor<f16>[M, K], B: tensor<f16>[K, 64], Y: tensor<f32>[M, 64]) {
  let half = K / 2
  let first = ctx.cluster.rank * half
  for m in range(ctx.block.x / 2 * 64, M, ctx.blocks.x / 2 * 64) {
    var acc: tile<f32>[64, 64] = 0.0
    for k in range(first, first + half, 32) {
      acc += dot(A[m :+ 64, k :+ 32], B[k :+ 32, :])
    }
    Y[m + ctx.cluster.rank * 32 :+ 32, :] = cluster_sum(acc)
  }
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        return {"Y": tensors["A"].astype(np.float32) @ tensors["B"].astype(np.float32)}

    dims = {"M": 128, "K": 128}
    ptx = compiled(source, chip, extents=dims).ptx
    assert ("cp.async.bulk.tensor" in ptx) == (chip == "sm_90a")
    check(source, reference, [dims] * 2, grid=(2,), chips=(chip,), prepare=integers)


def test_whole_clusters_choose_and_single_ctas_end() -> None:
    """Sums under an `if` and behind a `return` that depend on y; ranks that end early."""
    source = """\
@cluster(4)
@launch(40)
kernel k(X: tensor<i32>[P, R, 12], Y: tensor<i32>[P, R, 3]) {
  let t = flat(X[ctx.block.y :+ 1, ctx.block.x :+ 1, :])
  if ctx.block.y == 1 { return }
  var part: tile<i32>[3] = 0
  if ctx.block.y > 1 {
    part = cluster_sum(t)
  } else {
    part = cluster_sum(t + 1)
  }
  if ctx.cluster.rank == 2 { return }
  Y[ctx.block.y :+ 1, ctx.block.x :+ 1, :] = reshape(part, 1, 1, 3)
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        x, y = tensors["X"].reshape(3, 2, 4, 4, 3), tensors["Y"].reshape(3, 2, 4, 3).copy()
        wrote = [0, 1, 3]
        y[0][:, wrote] = (x[0] + 1).sum(axis=1)[:, wrote]
        y[2][:, wrote] = x[2].sum(axis=1)[:, wrote]
        return {"Y": y.reshape(3, 8, 3)}

    dims = [{"P": 3, "R": 8}] * 3
    check(source, reference, dims, grid=(8, 3), chips=CHIP, prepare=integers)


def test_a_grid_of_parts_of_clusters_is_refused() -> None:
    source = sum_of("f32", (8,), 4, 32)
    kernel = phobos.compile(source, chip="sm_90", cache=False)["k"]
    x, y = np.ones((6, 8), np.float32), np.zeros((2, 8), np.float32)
    wanted = "clusters of 4 CTAs along x, and a grid of 6 CTAs there is no multiple of that"
    with pytest.raises(PhobosError, match=wanted) as caught:
        kernel(x, y, grid=6, device="emulator")
    assert "help: launch 8 (grid=, --grid), or round up in the source" in str(caught.value)


def test_the_grid_is_inferred_from_the_number_of_the_cluster() -> None:
    source = """\
@cluster(2)
@launch(32)
kernel k(X: tensor<f32>[N], Y: tensor<f32>[M]) {
  let number = ctx.block.x / ctx.cluster.size
  Y[number * 16 + ctx.cluster.rank * 8 :+ 8] = cluster_sum(X[ctx.block.x * 16 :+ 16])
}
"""
    module = phobos.compile(source, chip="sm_90", cache=False)
    assert module.contract.kernel("k").grid == ("ceildiv(M, 16) * 2", "1", "1")
    x, y = np.arange(80, dtype=np.float32), np.empty(40, np.float32)
    module["k"](x, y, device="emulator")
    padded = np.concatenate([x, np.zeros(16, np.float32)]).reshape(3, 2, 16)
    np.testing.assert_array_equal(y, padded.sum(axis=1).ravel()[:40])


def test_a_kernel_that_does_not_say_which_cluster_has_one() -> None:
    source = """\
@cluster(2)
@launch(32)
kernel k(X: tensor<f32>[32], Y: tensor<f32>[16]) {
  Y[ctx.cluster.rank * 8 :+ 8] = cluster_sum(X[ctx.cluster.rank * 16 :+ 16])
}
"""
    module = phobos.compile(source, chip="sm_90", cache=False)
    assert module.contract.kernel("k").grid == ("2", "1", "1")
    x, y = np.arange(32, dtype=np.float32), np.empty(16, np.float32)
    module["k"](x, y, device="emulator")
    np.testing.assert_array_equal(y, x[:16] + x[16:])


def test_a_chip_without_clusters_is_refused() -> None:
    with pytest.raises(PhobosError, match="sm_89 has no clusters, and this kernel asks") as caught:
        compiled(sum_of("f32", (8,), 4, 32), "sm_89")
    assert "compile for a chip that has: sm_90" in str(caught.value)
    source = "@cluster(2)\nkernel k(Y: tensor<f32>[N]) { Y[ctx.block.x * 64 :+ 64] = 1 }"
    with pytest.raises(PhobosError, match="clusters of 2 CTAs"):
        compiled(source, "sm_80")
