"""Products of tiles on the emulator: small integers, so that every path must be exact."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import ml_dtypes
import numpy as np
import pytest

import phobos
from phobos.targets.ptx.assembler import assemble
from phobos.targets.ptx.contract import Contract
from tests.support.ptxas import needs_ptxas

CHIPS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_120")


@dataclass(frozen=True)
class Path:
    """A way to multiply: types of operands and sum, and the attribute that asks for it.

    `chips` are those that it is tested on; where one lacks the instruction another way is taken.
    """

    a: str
    b: str
    total: str
    attribute: str = ""
    chips: tuple[str, ...] = CHIPS

    @property
    def attributes(self) -> str:
        return f"\n{self.attribute}" if self.attribute else ""


ELEMENTS = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i32": np.int32,
    "u8": np.uint8,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
}
PATHS = {
    "f16": Path("f16", "f16", "f32"),
    "bf16": Path("bf16", "bf16", "f32"),
    "f32": Path("f32", "f32", "f32"),
    "f64": Path("f64", "f64", "f64"),
    "i8": Path("i8", "i8", "i32"),
    "u8": Path("u8", "u8", "i32"),
    "u8 by i8": Path("u8", "i8", "i32"),
    "i8 by u8": Path("i8", "u8", "i32"),
    "f8e4m3": Path("f8e4m3", "f8e4m3", "f32"),
    "f8e5m2": Path("f8e5m2", "f8e5m2", "f32"),
    "e4m3 by e5m2": Path("f8e4m3", "f8e5m2", "f32"),
    "e5m2 by e4m3": Path("f8e5m2", "f8e4m3", "f32"),
    "f16 in f16": Path("f16", "f16", "f16"),
    "e4m3 in f16": Path("f8e4m3", "f8e4m3", "f16"),
    "e5m2 by e4m3 in f16": Path("f8e5m2", "f8e4m3", "f16"),
    "tf32": Path("f32", "f32", "f32", "@tensorcore(tf32)"),
    "tf32x3": Path("f32", "f32", "f32", "@tensorcore(tf32x3)", CHIPS[1:]),
    "wmma f16": Path("f16", "f16", "f32", "@tensorcore(wmma)"),
    "wmma f16 in f16": Path("f16", "f16", "f16", "@tensorcore(wmma)"),
    "wmma bf16": Path("bf16", "bf16", "f32", "@tensorcore(wmma)"),
    "wmma f32": Path("f32", "f32", "f32", "@tensorcore(wmma)"),
    "wmma tf32": Path("f32", "f32", "f32", "@tensorcore(wmma, tf32)"),
    "wmma f64": Path("f64", "f64", "f64", "@tensorcore(wmma)"),
    "wmma i8": Path("i8", "i8", "i32", "@tensorcore(wmma)"),
    "wmma u8": Path("u8", "u8", "i32", "@tensorcore(wmma)"),
    "wmma f8e5m2": Path("f8e5m2", "f8e5m2", "f32", "@tensorcore(wmma)"),
    "f32 as f16": Path("f32", "f32", "f32", "@tensorcore"),
    "f32 as bf16": Path("f32", "f32", "f32", "@tensorcore(bf16)"),
}
EXTENTS = (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 48, 64, 65, 96, 100, 129)
SOURCE = """
@launch({threads})
@dynshared
@pipeline({stages}){attributes}
kernel product(A: tensor<{a}>[{a_dims}], B: tensor<{b}>[{b_dims}], C: tensor<{total}>[M, N]) {{
  let row = ctx.block.x * {tm}
  let column = ctx.block.y * {tn}
  var acc: tile<{total}>[{tm}, {tn}] = {zero}
  for k in range(0, K, {tk}) {{
    acc += {dot}(A[{a_slice}], B[{b_slice}])
  }}
  C[row :+ {tm}, column :+ {tn}] = acc
}}
"""


def source(path: Path, tile: tuple[int, int, int], threads: int, stages: int, form: str):
    """A product kernel; `form` is dot, dot_t or t_dot."""
    tm, tn, tk = tile
    rows, depth, columns = f"row :+ {tm}", f"k :+ {tk}", f"column :+ {tn}"
    a_turned, b_turned = form == "t_dot", form == "dot_t"
    return SOURCE.format(
        a=path.a,
        b=path.b,
        total=path.total,
        threads=threads,
        stages=stages,
        attributes=path.attributes,
        tm=tm,
        tn=tn,
        tk=tk,
        zero="0" if path.total == "i32" else "0.0",
        dot=form,
        a_dims="K, M" if a_turned else "M, K",
        b_dims="N, K" if b_turned else "K, N",
        a_slice=f"{depth}, {rows}" if a_turned else f"{rows}, {depth}",
        b_slice=f"{columns}, {depth}" if b_turned else f"{depth}, {columns}",
    )


class Built(Protocol):
    """What is emulated: PTX and how to launch it."""

    @property
    def ptx(self) -> str: ...

    @property
    def contract(self) -> Contract | None: ...


def built(text: str, chip: str, multiple: int) -> Built:
    """A program as it is compiled by default, for extents that `multiple` divides."""
    return phobos.compile(text, chip=chip, extent_multiple=multiple)


def multiply(
    chip: str,
    path: Path,
    a: np.ndarray,
    b: np.ndarray,
    tile: tuple[int, int, int],
    *,
    threads: int = 128,
    stages: int = 2,
    form: str = "dot",
    checks: tuple[str, ...] = ("bounds", "align", "init"),
    seed: int = 0,
    build: Callable[[str, str, int], Built] = built,
) -> np.ndarray:
    """A times B, [M, K] by [K, N], by a kernel on the emulator."""
    (m, k), n = a.shape, b.shape[1]
    multiple = next(x for x in (16, 8, 4, 2, 1) if not any(size % x for size in (m, n, k)))
    module = build(source(path, tile, threads, stages, form), chip, multiple)
    c = np.full((m, n), 77).astype(ELEMENTS[path.total])
    given_a = np.ascontiguousarray(a.T) if form == "t_dot" else a
    given_b = np.ascontiguousarray(b.T) if form == "dot_t" else b
    tm, tn, _ = tile
    grid = (-(-m // tm), -(-n // tn), 1)
    assert module.contract is not None
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
    return c


def check(
    chip: str,
    name: str,
    sizes: tuple[int, int, int],
    tile: tuple[int, int, int],
    *,
    threads: int = 128,
    stages: int = 2,
    form: str = "dot",
    checks: tuple[str, ...] = ("bounds", "align", "init"),
    seed: int = 0,
    build: Callable[[str, str, int], Built] = built,
) -> None:
    """Multiplies random integers and compares with == ."""
    m, n, k = sizes
    path = PATHS[name]
    rng = np.random.default_rng(seed)
    a = _integers(rng, path.a, (m, k))
    b = _integers(rng, path.b, (k, n))
    c = multiply(
        chip, path, a, b, tile,
        threads=threads, stages=stages, form=form, checks=checks, seed=seed, build=build,
    )  # fmt: skip
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(c.astype(np.float64), wanted)


def _integers(rng: np.random.Generator, element: str, shape: tuple[int, int]) -> np.ndarray:
    """Small integers that every type holds, of both signs where it has one."""
    numbers = rng.integers(-4, 5, shape)
    if element == "u8":
        return np.where(numbers < 0, numbers + 256, numbers).astype(np.uint8)
    # Halves sum integers below 2048 exactly: a sum of 129 products is below that.
    return numbers.astype(ELEMENTS[element])


def _padded(extent: int) -> int:
    return 1 << (extent - 1).bit_length()


Case = tuple[str, str, tuple[int, int, int], tuple[int, int, int], int, int, str]


def random_cases(count: int, seed: int = 5) -> list[Case]:
    """Cases drawn once and for all: chip, path, extents, tile, threads, stages, form."""
    rng = random.Random(seed)
    cases: list[Case] = []
    for number in range(count):
        name = sorted(PATHS)[number % len(PATHS)]
        path = PATHS[name]
        edges = (16, 32, 48) if path.a == "f64" else (16, 32, 48, 64, 80, 96, 112)
        tile = (rng.choice(edges), rng.choice(edges), rng.choice((16, 32, 48)))
        sizes = (rng.choice(EXTENTS), rng.choice(EXTENTS), rng.choice(EXTENTS))
        threads = 32 * rng.choice((1, 2, 3, 4, 5, 8, 12))
        form = rng.choice(("dot", "dot_t", "t_dot"))
        stage = (
            (_padded(tile[0]) + _padded(tile[1]))
            * _padded(tile[2])
            * np.dtype(ELEMENTS[path.a]).itemsize
        )
        stages = rng.randint(1, min(5, max(1, 60_000 // stage)))
        cases.append((rng.choice(path.chips), name, sizes, tile, threads, stages, form))
    return cases


@pytest.mark.filterwarnings("ignore:.*keeps \\d+ registers:phobos.PhobosWarning")
@pytest.mark.filterwarnings("ignore:.*is not applied to this loop:phobos.PhobosWarning")
@pytest.mark.filterwarnings("ignore:.*tensor cores are not used:phobos.PhobosWarning")
@pytest.mark.parametrize("case", random_cases(56), ids=lambda case: "-".join(map(str, case[:2])))
def test_products_are_exact(case: Case) -> None:
    """Extents below a tile, odd tiles, one row, any number of warps and stages."""
    chip, name, sizes, tile, threads, stages, form = case
    check(chip, name, sizes, tile, threads=threads, stages=stages, form=form)


@pytest.mark.parametrize("steps", range(7))
def test_trip_counts_around_the_stages(steps: int) -> None:
    """None, one, and stages - 1 to stages + 2."""
    check("sm_80", "f16", (32, 32, 16 * steps), (32, 32, 16), threads=64, stages=4)


@pytest.mark.parametrize("steps", range(7))
def test_trip_counts_of_multiply_adds(steps: int) -> None:
    """Operands are loaded a step ahead, the last iteration's from its own stage."""
    check("sm_80", "f32", (50, 64, 4 * steps), (64, 64, 4), threads=64, stages=4)


@pytest.mark.parametrize("steps", range(5))
@pytest.mark.parametrize("name", ["f16", "i8", "f32", "wmma f16"])
def test_trip_counts_of_two_stages(name: str, steps: int) -> None:
    """None to twice the stages, where threads store what they have loaded ahead."""
    check("sm_75", name, (32, 32, 16 * steps), (32, 32, 16), threads=64)


@pytest.mark.parametrize("k", [64, 130])
def test_no_room_for_a_second_stage(k: int) -> None:
    """32 KB of the 64 KB that sm_75 has, less what a second stage would need to fit."""
    check("sm_75", "f32", (17, 33, k), (64, 80, 64), threads=256)


@pytest.mark.parametrize("form", ["dot", "dot_t"])
@pytest.mark.parametrize(
    ("chip", "name", "tile"),
    [
        ("sm_80", "f32", (64, 64, 32)),
        ("sm_90", "f32", (48, 80, 8)),
        ("sm_89", "f64", (64, 64, 4)),
        ("sm_90", "f32", (128, 32, 1)),
    ],
)
def test_operands_that_copies_turn(
    chip: str, name: str, tile: tuple[int, int, int], form: str
) -> None:
    """64 results a thread and more, of extents that no tile divides; no barrier is missing."""
    m, n, k = tile
    check(
        chip, name, (m + 7, n - 5, 3 * k + k // 2), tile, threads=m * n // 64 // 32 * 32,
        stages=3, form=form, checks=("bounds", "align", "init", "race"),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("chip", "name"),
    [
        ("sm_80", "f16"),
        ("sm_80", "f32"),
        ("sm_75", "f16"),
        ("sm_75", "i8"),
        ("sm_75", "f32"),
        ("sm_89", "e4m3 by e5m2"),
        ("sm_90", "f64"),
        ("sm_75", "wmma f16"),
        ("sm_80", "wmma tf32"),
    ],
)
def test_no_race(chip: str, name: str, seed: int) -> None:
    """The barriers that the compiler places suffice under several schedules."""
    check(
        chip, name, (48, 32, 80), (32, 32, 32), threads=64, stages=3,
        checks=("bounds", "align", "init", "race"), seed=seed,
    )  # fmt: skip


@needs_ptxas
@pytest.mark.filterwarnings("ignore:.*tensor cores are not used:phobos.PhobosWarning")
@pytest.mark.parametrize("name", PATHS)
def test_ptxas_takes_every_path(name: str) -> None:
    """Without a warning, on sm_90 and on another chip, not the same for each path."""
    chips = PATHS[name].chips
    for chip in {"sm_90", chips[list(PATHS).index(name) % len(chips)]}:
        text = source(PATHS[name], (32, 32, 32), 128, 2, "dot_t")
        assert assemble(phobos.compile(text, chip=chip).ptx, chip).warnings == ()


# Real numbers ------------------------------------------------------------------------------------


def _error(chip: str, name: str, sizes: tuple[int, int, int], tile: tuple[int, int, int]) -> float:
    """The largest error against float64, in units of 2^-24 of the sum of the magnitudes."""
    m, n, k = sizes
    rng = np.random.default_rng(1)
    path = PATHS[name]
    a = rng.standard_normal((m, k)).astype(ELEMENTS[path.a])
    b = rng.standard_normal((k, n)).astype(ELEMENTS[path.b])
    c = multiply(chip, path, a, b, tile)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    error = np.abs(c.astype(np.float64) - wide_a @ wide_b)
    return float(np.max(error / (np.abs(wide_a) @ np.abs(wide_b)))) * 2**24


@pytest.mark.parametrize("sizes", [(33, 17, 100), (7, 65, 129)])
@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
def test_three_products_of_tf32_are_near_those_of_f32(
    chip: str, sizes: tuple[int, int, int]
) -> None:
    """Within a small factor of multiply-adds of f32, and far better than tf32."""
    exact = _error(chip, "f32", sizes, (32, 32, 16))
    three = _error(chip, "tf32x3", sizes, (32, 32, 16))
    rounded = _error(chip, "tf32", sizes, (32, 32, 16))
    assert three < 3 * exact
    assert three < rounded / 50


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("f16", 8.0),
        ("bf16", 8.0),
        ("f8e4m3", 8.0),
        ("f32", 8.0),
        ("wmma f16", 8.0),
        ("f64", 2.0**-26),
    ],
)
@pytest.mark.parametrize("chip", ["sm_75", "sm_90"])
def test_error_is_that_of_the_sum(chip: str, name: str, bound: float) -> None:
    """Products are exact: what is left is the error of adding 129 numbers up.

    It would be 129 units at most and is about the root of that, as roundings go both ways.
    """
    assert _error(chip, name, (33, 17, 129), (32, 32, 16)) < bound


def test_tf32x3_says_which_chip_it_needs() -> None:
    """A clear error at the product, and what to do without."""
    text = source(PATHS["tf32x3"], (32, 32, 16), 64, 2, "dot")
    with pytest.raises(phobos.PhobosError, match=r"@tensorcore\(tf32x3\) needs sm_80 or newer"):
        phobos.compile(text, chip="sm_75")


def test_what_the_chip_lacks_is_told() -> None:
    """A warning at the product, and why."""
    text = source(PATHS["tf32"], (32, 32, 16), 64, 2, "dot")
    with pytest.warns(phobos.PhobosWarning, match="tensor cores are not used .*sm_75 has no mma"):
        phobos.compile(text, chip="sm_75", cache=False)


def test_wmma_is_for_32_bit_indices() -> None:
    """A clear error at the product, and what to do."""
    text = source(PATHS["wmma f16"], (32, 32, 16), 64, 2, "dot")
    with pytest.raises(phobos.PhobosError, match=r"@tensorcore\(wmma\) .* 32-bit indices"):
        phobos.compile(text, chip="sm_80", index_bits=64)


@pytest.mark.filterwarnings("ignore:.*tensor cores are not used:phobos.PhobosWarning")
@pytest.mark.parametrize("name", ["f16", "wmma f16", "f64"])
def test_a_matrix_product_takes_whole_warps(name: str) -> None:
    """Where a warp lacks lanes there are multiply-adds."""
    text = source(PATHS[name], (32, 32, 16), 48, 2, "dot")
    assert "mma.sync" not in phobos.compile(text, chip="sm_80").ptx
    check("sm_80", name, (17, 33, 20), (32, 32, 16), threads=48)
