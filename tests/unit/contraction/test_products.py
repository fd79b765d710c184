"""Products of tiles on the emulator: small integers, so that every path must be exact."""

from __future__ import annotations

import random

import ml_dtypes
import numpy as np
import pytest

import phobos

TYPES = {
    "f16": (np.float16, "f32", np.float32),
    "bf16": (ml_dtypes.bfloat16, "f32", np.float32),
    "f32": (np.float32, "f32", np.float32),
    "f64": (np.float64, "f64", np.float64),
    "i8": (np.int8, "i32", np.int32),
}
EXTENTS = (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 48, 64, 65, 96, 100, 129)
CHIPS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_120")

SOURCE = """
@launch({threads})
@dynshared
@pipeline({stages}){attributes}
kernel product(A: tensor<{t}>[{a}], B: tensor<{t}>[{b}], C: tensor<{total}>[M, N]) {{
  let row = ctx.block.x * {tm}
  let column = ctx.block.y * {tn}
  var acc: tile<{total}>[{tm}, {tn}] = {zero}
  for k in range(0, K, {tk}) {{
    acc += {dot}(A[{a_slice}], B[{b_slice}])
  }}
  C[row :+ {tm}, column :+ {tn}] = acc
}}
"""


def source(t: str, tile: tuple[int, int, int], threads: int, stages: int, form: str, extra: str):
    """A product kernel; `form` is dot, dot_t or t_dot."""
    tm, tn, tk = tile
    rows, depth, columns = f"row :+ {tm}", f"k :+ {tk}", f"column :+ {tn}"
    a_turned, b_turned = form == "t_dot", form == "dot_t"
    return SOURCE.format(
        t=t,
        total=TYPES[t][1],
        threads=threads,
        stages=stages,
        attributes=extra,
        tm=tm,
        tn=tn,
        tk=tk,
        zero="0" if t == "i8" else "0.0",
        dot=form,
        a="K, M" if a_turned else "M, K",
        b="N, K" if b_turned else "K, N",
        a_slice=f"{depth}, {rows}" if a_turned else f"{rows}, {depth}",
        b_slice=f"{columns}, {depth}" if b_turned else f"{depth}, {columns}",
    )


def check(
    chip: str,
    t: str,
    sizes: tuple[int, int, int],
    tile: tuple[int, int, int],
    *,
    threads: int = 128,
    stages: int = 2,
    form: str = "dot",
    extra: str = "",
    checks: tuple[str, ...] = ("bounds", "align", "init"),
    seed: int = 0,
) -> None:
    """Multiplies random integers and compares with == ."""
    m, n, k = sizes
    element, _, total = TYPES[t]
    multiple = next(x for x in (16, 8, 4, 2, 1) if not any(size % x for size in sizes))
    module = phobos.compile(
        source(t, tile, threads, stages, form, extra), chip=chip, extent_multiple=multiple
    )
    rng = np.random.default_rng(seed)
    a = rng.integers(-4, 5, (m, k)).astype(element)
    b = rng.integers(-4, 5, (k, n)).astype(element)
    c = np.full((m, n), 77, total)
    given_a = np.ascontiguousarray(a.T) if form == "t_dot" else a
    given_b = np.ascontiguousarray(b.T) if form == "dot_t" else b
    tm, tn, _ = tile
    grid = (-(-m // tm), -(-n // tn), 1)
    index = np.uint64 if module.contract.index_bits == 64 else np.uint32
    arguments: list[object] = []
    for array in (given_a, given_b, c):
        rows, columns = array.shape
        arguments += [array, array, *np.array([0, rows, columns, columns, 1], index)]
    shared = module.contract.kernels[0].dynamic_shared_bytes
    phobos.emulate(
        module.ptx, "product", grid, (threads, 1, 1), arguments,
        shared=shared, checks=checks, seed=seed,
    )  # fmt: skip
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(c.astype(np.float64), wanted)


def _padded(extent: int) -> int:
    return 1 << (extent - 1).bit_length()


Case = tuple[str, str, tuple[int, int, int], tuple[int, int, int], int, int, str]


def random_cases(count: int) -> list[Case]:
    """Cases drawn once and for all: chip, type, extents, tile, threads, stages, form."""
    rng = random.Random(5)
    cases: list[Case] = []
    for number in range(count):
        t = sorted(TYPES)[number % len(TYPES)]
        small = t == "f64"
        edges = (16, 32, 48) if small else (16, 32, 48, 64, 80, 96, 112)
        tile = (rng.choice(edges), rng.choice(edges), rng.choice((16, 32, 48)))
        sizes = (rng.choice(EXTENTS), rng.choice(EXTENTS), rng.choice(EXTENTS))
        threads = 32 * rng.choice((1, 2, 3, 4, 5, 8, 12))
        form = rng.choice(("dot", "dot_t", "t_dot"))
        stage = (
            (_padded(tile[0]) + _padded(tile[1]))
            * _padded(tile[2])
            * np.dtype(TYPES[t][0]).itemsize
        )
        stages = rng.randint(1, min(5, max(1, 60_000 // stage)))
        cases.append((rng.choice(CHIPS), t, sizes, tile, threads, stages, form))
    return cases


@pytest.mark.filterwarnings("ignore:.*needs \\d+ registers:phobos.PhobosWarning")
@pytest.mark.parametrize("case", random_cases(24), ids=lambda case: "-".join(map(str, case[:2])))
def test_products_are_exact(case: Case) -> None:
    """Extents below a tile, odd tiles, one row, any number of warps and stages."""
    chip, t, sizes, tile, threads, stages, form = case
    check(chip, t, sizes, tile, threads=threads, stages=stages, form=form)


@pytest.mark.parametrize("steps", range(1, 7))
@pytest.mark.parametrize("chip", ["sm_75", "sm_80"])
def test_trip_counts_around_the_stages(chip: str, steps: int) -> None:
    """One trip, and stages - 1 to stages + 2."""
    check(chip, "f16", (32, 32, 16 * steps), (32, 32, 16), threads=64, stages=4)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("chip", "t"), [("sm_80", "f16"), ("sm_80", "f32"), ("sm_75", "i8")])
def test_no_race(chip: str, t: str, seed: int) -> None:
    """The barriers that the compiler places suffice under several schedules."""
    check(
        chip, t, (48, 32, 80), (32, 32, 32), threads=64, stages=3,
        checks=("bounds", "align", "init", "race"), seed=seed,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["tf32", "bf16", "f16"])
def test_rounded_operands(name: str) -> None:
    """f32 operands on tensor cores; small integers survive the rounding."""
    check("sm_80", "f32", (40, 24, 36), (32, 32, 16), extra=f"\n@tensorcore({name})")


@pytest.mark.parametrize("name", ["wmma", "tf32x3"])
def test_what_is_not_there_yet_says_so(name: str) -> None:
    """A clear error at the product, and what works instead."""
    text = source("f32", (32, 32, 16), 64, 2, "dot", f"\n@tensorcore({name})")
    with pytest.raises(phobos.PhobosError, match=rf"@tensorcore\({name}\) is not supported yet"):
        phobos.compile(text, chip="sm_80")
