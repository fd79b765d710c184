"""Products in tf32 by `wgmma`: as they are if both operands lie along K, else C^T = B^T A^T.

Here threads round the operands and store them to shared memory: the choice of instruction is told
that tensor copies bring them, whether they could or not.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

import phobos
from phobos.dialects.contraction import DotOp
from phobos.dialects.staging import AwaitProductsOp
from phobos.driver.compilation import Compilation, compile_text
from phobos.driver.options import CompileOptions
from phobos.pipeline import default_pipeline
from phobos.runtime.emulator_device import EmulatorDevice
from phobos.targets.ptx.assembler import assemble
from phobos.transforms import select_contraction
from phobos.transforms.pipeline_loops import PipelineLoopsPass
from phobos.transforms.select_contraction import SelectContractionPass
from tests.support.ptxas import needs_ptxas
from tests.unit.contraction.test_products import PATHS, check, multiply, source

CHIP = "sm_90a"
KERNEL = Path(phobos.__file__).parent / "kernels/gemm_tf32.ph"
SIZES = (1, 7, 17, 33, 64, 65, 100, 129)
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*is not applied to this loop:phobos.PhobosWarning"),
    pytest.mark.filterwarnings("ignore:.*keeps \\d+ registers:phobos.PhobosWarning"),
]


@pytest.fixture(autouse=True)
def without_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets products be made by `wgmma` whose operands come another way."""
    monkeypatch.setattr(select_contraction, "obstacle_to_operands", lambda *_: None)


@dataclass(frozen=True)
class _StartPass(ModulePass):
    """Only starts products, and waits for them right behind."""

    name = "start"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Marks all products."""
        for dot in list(op.walk()):
            if isinstance(dot, DotOp):
                dot.in_flight = UnitAttr()
                wait = AwaitProductsOp(dot.result, 0)
                dot.result.replace_uses_with_if(
                    wait.result, lambda use, wait=wait: use.operation is not wait
                )
                assert dot.parent is not None
                dot.parent.insert_op_after(wait, dot)


def turned(text: str, chip: str, multiple: int, *, in_flight: bool = False) -> Compilation:
    """A program whose products in tf32 are by `wgmma`, without tensor maps for their operands."""
    options = CompileOptions(chip=chip, extent_multiple=multiple)
    passes: list[ModulePass] = []
    for one in default_pipeline(options):
        chosen = one.name == SelectContractionPass.name
        passes.append(SelectContractionPass(chip=chip, tensor_maps=True) if chosen else one)
        if one.name == PipelineLoopsPass.name and in_flight:
            passes.append(_StartPass())
    compilation = compile_text(text, "product.ph", options, passes=tuple(passes))
    assert ".f32.tf32.tf32 {" in compilation.ptx
    assert "mma.sync" not in compilation.ptx
    return compilation


Case = tuple[tuple[int, int, int], tuple[int, int, int], int, int, str]


def random_cases(count: int, form: str) -> list[Case]:
    """Cases drawn once and for all: extents, tile, threads, stages."""
    rng = random.Random(17)
    cases: list[Case] = []
    for number in range(count):
        tile = (
            rng.choice((8, 16, 48, 64, 96, 128)),
            rng.choice((48, 64, 96, 128)),
            (8, 16, 24, 32, 48, 64)[number % 6],
        )
        sizes = rng.choice(SIZES), rng.choice(SIZES), SIZES[number % len(SIZES)]
        if form == "dot_t":
            tile = (tile[1], tile[0], tile[2])
        pieces = (min(tile[:2]) + 7) // 8
        threads = 128 * rng.choice([groups for groups in (1, 2, 4) if groups <= pieces])
        cases.append((sizes, tile, threads, rng.randint(1, 3), form))
    return cases


@pytest.mark.parametrize(
    "case",
    [*random_cases(20, "dot"), *random_cases(8, "dot_t")],
    ids=lambda case: "-".join(map(str, case)),
)
def test_products_are_exact(case: Case) -> None:
    """Extents below a tile, odd tiles, warpgroups side by side and one below the other."""
    sizes, tile, threads, stages, form = case
    check(
        CHIP, "tf32", sizes, tile,
        threads=threads, stages=stages, form=form, checks=("all",), build=turned,
    )  # fmt: skip


def test_fragments_take_turns_in_registers() -> None:
    """Of two pieces of 64 columns, four steps along K fill the 32 registers for fragments."""
    tile = (32, 128, 64)
    ptx = turned(source(PATHS["tf32"], tile, 128, 2, "dot"), CHIP, 1).ptx
    assert (
        ptx.count("wgmma.fence.sync.aligned") == ptx.count("wgmma.wait_group.sync.aligned 0") == 2
    )
    check(CHIP, "tf32", (33, 130, 100), tile, checks=("all",), build=turned)


@pytest.mark.parametrize("steps", range(4))
def test_products_in_flight_are_exact(steps: int) -> None:
    """They are waited for in the same iteration, as their fragments are in registers."""
    check(
        CHIP, "tf32", (70, 66, 64 * steps), (64, 64, 64),
        stages=2, checks=("all",), build=partial(turned, in_flight=True),
    )  # fmt: skip


def rounded(values: np.ndarray) -> np.ndarray:
    """The nearest numbers of tf32, ties to even."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.int64)
    bits += 0xFFF + (bits >> 13 & 1)
    return (bits & ~0x1FFF).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("limits", [(4096, 16), (16, 4096)])
def test_operands_are_rounded_and_not_cut(limits: tuple[int, int]) -> None:
    """Numbers of 12 bits, of which tf32 has 11: half of them are ties."""
    rng = np.random.default_rng(4)
    a, b = (
        rng.integers(-limit, limit, size).astype(np.float32)
        for limit, size in zip(limits, ((40, 32), (32, 72)), strict=True)
    )
    found = multiply(CHIP, PATHS["tf32"], a, b, (32, 64, 32), build=turned)
    wanted = rounded(a).astype(np.float64) @ rounded(b).astype(np.float64)
    assert (wanted != a.astype(np.float64) @ b.astype(np.float64)).any()
    np.testing.assert_array_equal(found.astype(np.float64), wanted)


def test_real_numbers() -> None:
    """Sums of 257 products of rounded operands are cut, but for little."""
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(size).astype(np.float32) for size in ((129, 257), (257, 100)))
    found = multiply(CHIP, PATHS["tf32"], a, b, (128, 128, 32), threads=256, build=turned)
    wanted = rounded(a).astype(np.float64) @ rounded(b).astype(np.float64)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=257 * 2.0**-22)


USED = """
@launch({threads})
@dynshared
@tensorcore(tf32)
kernel used(
  A: tensor<f32>[M, K], B: tensor<f32>[K, N], V: tensor<f32>[N, D], C: tensor<f32>[M, D],
  R: tensor<f32>[M], Q: tensor<f32>[N], T: tensor<f32>[N, M], H: tensor<f16>[M, N]
) {{
  var acc: tile<f32>[{rows}, 64] = 0.0
  for k in range(0, K, 32) {{
    acc += dot(A[0 :+ {rows}, k :+ 32], B[k :+ 32, 0 :+ 64])
  }}
  C[0 :+ {rows}, 0 :+ 32] = dot(acc, V[0 :+ 64, 0 :+ 32])
  R[0 :+ {rows}] = flat(sum<over 1>(acc))
  Q[0 :+ 64] = flat(sum<over 0>(acc))
  T[0 :+ 64, 0 :+ {rows}] = transpose(acc)
  H[0 :+ {rows}, 0 :+ 64] = f16(acc)
}}
"""


@pytest.mark.parametrize(("rows", "threads"), [(32, 128), (128, 256)])
def test_sums_are_used_in_any_way(rows: int, threads: int) -> None:
    """As an operand, folded along both axes, transposed, converted."""
    module = phobos.compile(USED.format(rows=rows, threads=threads), chip=CHIP, tensor_maps=True)
    assert "wgmma.mma_async" in module.ptx
    rng = np.random.default_rng(6)
    a, b, v = (
        rng.integers(-2, 3, size).astype(np.float32) for size in ((rows, 68), (68, 60), (60, 32))
    )
    product = a @ b
    wanted = (
        product @ v, product.sum(1), product.sum(0), product.T, product.astype(np.float16),
    )  # fmt: skip
    found = [np.full_like(one, np.nan, order="C") for one in wanted]
    module["used"](a, b, v, *found, device=EmulatorDevice(checks=("all",)), grid=1)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@needs_ptxas
@pytest.mark.parametrize(
    ("tile", "threads"), [((256, 128, 32), 256), ((128, 128, 32), 128), ((128, 128, 32), 256)]
)
def test_ptxas_neither_serializes_nor_spills(tile: tuple[int, int, int], threads: int) -> None:
    """Up to 128 sums, and fragments of 32 rows of K."""
    ptx = turned(source(PATHS["tf32"], tile, threads, 2, "dot"), CHIP, 4).ptx
    made = assemble(ptx, CHIP, ("-v",))
    assert made.warnings == ()
    assert " 0 bytes spill stores" in made.log


@needs_ptxas
@pytest.mark.parametrize("tile", [(256, 128, 32, 256), (128, 128, 32, 128), (128, 64, 32, 128)])
def test_the_shipped_kernel_is_not_spilled(tile: tuple[int, int, int, int]) -> None:
    """Its result is scaled and added to another: twice as many values as there are sums."""
    rows, columns, depth, threads = tile
    constants = {"TILE_M": rows, "TILE_N": columns, "TILE_K": depth, "THREADS": threads}
    module = phobos.compile(KERNEL, chip=CHIP, constants=constants, tensor_maps=True)
    assert "cp.async.bulk.tensor" in module.ptx
    made = assemble(module.ptx, CHIP, ("-v",))
    assert made.warnings == ()
    assert " 0 bytes spill stores" in made.log
