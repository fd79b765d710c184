"""Products by `wgmma` on the emulator: small integers, so that every path must be exact."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import phobos
from phobos.targets.ptx.assembler import assemble
from tests.support.ptxas import needs_ptxas
from tests.unit.contraction.test_products import (
    ELEMENTS,
    EXTENTS,
    PATHS,
    Case,
    Path,
    check,
    multiply,
    source,
)

CHIP = "sm_90a"
NAMES = ("f16", "bf16", "f16 in f16", "f8e5m2", "f32 as f16")
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*is not applied to this loop:phobos.PhobosWarning"),
    pytest.mark.filterwarnings("ignore:.*keeps \\d+ registers:phobos.PhobosWarning"),
]


BYTES = (
    "f8e4m3", "f8e5m2", "e4m3 by e5m2", "e5m2 by e4m3", "e5m2 by e4m3 in f16",
    "i8", "u8", "u8 by i8", "i8 by u8",
)  # fmt: skip
"""Paths whose operands lie along K: by wgmma in the form `dot_t`."""
_PTX_NAMES = {"i8": "s8", "u8": "u8"}


def random_cases(
    count: int,
    seed: int = 11,
    names: tuple[str, ...] = NAMES,
    forms: tuple[str, ...] = ("dot", "dot_t", "t_dot"),
) -> list[Case]:
    """Cases drawn once and for all, of tiles that warpgroups multiply."""
    rng = random.Random(seed)
    cases: list[Case] = []
    for number in range(count):
        tile = (
            rng.choice((64, 80, 96, 112, 128)),
            rng.choice((64, 80, 96, 112, 128)),
            rng.choice((16, 32, 48, 64, 80)),
        )
        sizes = (rng.choice(EXTENTS), rng.choice(EXTENTS), rng.choice(EXTENTS))
        threads, stages = rng.choice((128, 256, 512)), rng.randint(1, 3 if tile[2] > 64 else 5)
        form = rng.choice(forms)
        cases.append((CHIP, names[number % len(names)], sizes, tile, threads, stages, form))
    return cases


@pytest.mark.parametrize("case", random_cases(20), ids=lambda case: "-".join(map(str, case[1:3])))
def test_products_are_exact(case: Case) -> None:
    """Extents below a tile, odd tiles, one row, one to four warpgroups, one to five stages."""
    chip, name, sizes, tile, threads, stages, form = case
    text = source(PATHS[name], tile, threads, stages, form)
    assert "wgmma.mma_async" in phobos.compile(text, chip=chip).ptx
    check(
        chip, name, sizes, tile, threads=threads, stages=stages, form=form,
        checks=("all",),
    )  # fmt: skip


@pytest.mark.parametrize(
    "case", random_cases(12, 3, BYTES, ("dot_t",)), ids=lambda case: "-".join(map(str, case[1:3]))
)
def test_products_of_bytes_are_exact(case: Case) -> None:
    """The same of operands that both lie along K, in steps of 32."""
    chip, name, sizes, tile, threads, stages, form = case
    tile = (*tile[:2], max(tile[2], 32))
    text = source(PATHS[name], tile, threads, stages, form)
    pair = ".".join(_PTX_NAMES.get(one, one[2:]) for one in (PATHS[name].a, PATHS[name].b))
    ptx = phobos.compile(text, chip=chip).ptx
    assert re.search(rf"wgmma.mma_async.sync.aligned.m64n\d+k32.\w+.{pair} ", ptx)
    check(
        chip, name, sizes, tile, threads=threads, stages=stages, form=form,
        checks=("bounds", "align", "init", "race"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "instruction"),
    [("f8e4m3", "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"), ("i8", "mma.sync")],
)
@pytest.mark.parametrize("form", ["dot", "t_dot"])
def test_bytes_that_lie_across_take_another_way(name: str, instruction: str, form: str) -> None:
    """Nothing turns them on their way to shared memory."""
    text = source(PATHS[name], (64, 64, 32), 128, 2, form)
    ptx = phobos.compile(text, chip=CHIP).ptx
    assert instruction in ptx
    assert "k32.f32" not in ptx
    assert "k32.s32.s8.s8 {" not in ptx or instruction == "mma.sync"
    check(CHIP, name, (65, 70, 80), (64, 64, 32), form=form)


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("steps", range(6))
def test_trip_counts_around_the_stages(steps: int, stages: int) -> None:
    """None, one, and around what is copied ahead and what is in flight."""
    check(CHIP, "f16", (64, 32, 16 * steps), (64, 32, 16), stages=stages)


@pytest.mark.parametrize("form", ["dot", "dot_t", "t_dot"])
@pytest.mark.parametrize("seed", range(6))
def test_no_race(form: str, seed: int) -> None:
    """Stages that products in flight read are not overwritten, in any of several schedules."""
    check(
        CHIP, "f16", (70, 70, 112), (64, 64, 16), threads=256, stages=4, form=form,
        checks=("all",), seed=seed,
    )  # fmt: skip


CHAIN = """
@launch({threads})
@dynshared
@pipeline
kernel chain(
  Q: tensor<f16>[S, D], K: tensor<f16>[T, D], V: tensor<f16>[T, D], O: tensor<f32>[S, D]
) {{
  let row = ctx.block.x * {rows}
  var acc: tile<f32>[{rows}, 64] = 0.0
  for n in range(0, T, 32) {{
    let s = dot_t(Q[row :+ {rows}, 0 :+ 64], K[n :+ 32, 0 :+ 64])
    acc = 0.5 * acc + dot(f16(s * 0.25), V[n :+ 32, 0 :+ 64])
  }}
  O[row :+ {rows}, 0 :+ 64] = acc
}}
"""


@pytest.mark.parametrize(("rows", "threads"), [(64, 128), (128, 256), (128, 128)])
def test_a_product_of_a_product_takes_it_from_registers(rows: int, threads: int) -> None:
    """As attention does: nothing of the scores goes through shared memory."""
    module = phobos.compile(CHAIN.format(rows=rows, threads=threads), chip=CHIP)
    assert "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" in module.ptx
    assert "ldmatrix" not in module.ptx
    rng = np.random.default_rng(2)
    s, t = rows + 9, 75
    q, k, v = (rng.integers(-2, 3, (size, 64)).astype(np.float16) for size in (s, t, t))
    found = np.full((s, 64), np.nan, np.float32)
    module["chain"](q, k, v, found, grid=(-(-s // rows), 1, 1))
    wanted = np.zeros((s, 64))
    for n in range(0, t, 32):
        scores = q.astype(np.float64) @ k[n : n + 32].astype(np.float64).T
        wanted = 0.5 * wanted + np.float16(scores * 0.25).astype(np.float64) @ v[n : n + 32]
    np.testing.assert_array_equal(found, wanted.astype(np.float32))


def test_sums_of_small_floats_are_made_in_parts() -> None:
    """The hardware's own sum has fewer bits than f32: the longer it is, the more it loses."""
    rng = np.random.default_rng(3)
    a, b = (
        rng.standard_normal(size).astype(ELEMENTS["f8e4m3"]) for size in ((64, 1024), (1024, 64))
    )
    wanted = a.astype(np.float64) @ b.astype(np.float64)

    def error(attribute: str) -> float:
        path = Path("f8e4m3", "f8e4m3", "f32", attribute)
        found = multiply(CHIP, path, a, b, (64, 64, 128), form="dot_t")
        return float(np.abs(found - wanted).max())

    whole, parts = error("@fast_math"), error("")
    assert parts < whole / 3


@needs_ptxas
@pytest.mark.parametrize(
    ("name", "form"),
    [*((name, form) for name in NAMES for form in ("dot", "t_dot"))]
    + [(name, "dot_t") for name in BYTES],
)
def test_ptxas_does_not_serialize(name: str, form: str) -> None:
    """It warns where it has to wait for each product by itself."""
    text = source(PATHS[name], (128, 128, 64), 256, 4, form)
    assert assemble(phobos.compile(text, chip=CHIP).ptx, CHIP).warnings == ()


@pytest.mark.parametrize(("columns", "piece"), [(80, 80), (100, 104), (24, 24)])
def test_columns_past_the_tile_are_not_multiplied(columns: int, piece: int) -> None:
    """The layout is one of 32 or 128 columns; the instruction has multiples of 8."""
    tile = (64, columns, 32)
    ptx = phobos.compile(source(PATHS["f16"], tile, 128, 3, "dot"), chip=CHIP).ptx
    assert f"wgmma.mma_async.sync.aligned.m64n{piece}k16." in ptx
    check(CHIP, "f16", (70, columns + 3, 40), tile, stages=3)


def test_who_asks_for_mma_sync_gets_it() -> None:
    """`@tensorcore(sync)` is the instruction of all chips from sm_80 on."""
    text = source(PATHS["f16"], (64, 64, 32), 128, 3, "dot").replace(
        "kernel", "@tensorcore(sync)\nkernel"
    )
    ptx = phobos.compile(text, chip=CHIP).ptx
    assert "mma.sync" in ptx
    assert "wgmma" not in ptx
