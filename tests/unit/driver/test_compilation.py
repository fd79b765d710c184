"""The compile driver: levels, timing, verification, and errors of every kind."""

from __future__ import annotations

import gc
import re
from dataclasses import dataclass, replace

import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import ArgSpecParseError, VerifyException

from phobos.diagnostics import PhobosError, Severity
from phobos.driver.compilation import compile_text
from phobos.driver.levels import Level
from phobos.driver.options import CompileOptions
from phobos.pipeline import default_pipeline
from phobos.targets.ptx.assembler import Assembled
from tests.support.programs import SAXPY, UNKNOWN_NAME
from tests.support.ptxas import needs_ptxas

OPTIONS = CompileOptions()


def test_all_levels_in_one_run() -> None:
    levels = set(Level) - {Level.CUBIN}
    result = compile_text(SAXPY, "saxpy.ph", OPTIONS, levels=levels, verify_each=True)
    texts = {level: str(text) for level, text in result.levels.items()}
    assert texts.keys() == levels
    assert texts[Level.AST] == SAXPY
    assert "tile.load" in texts[Level.TILE]
    assert "#tile.layout" in texts[Level.DIST]
    assert "#tile.layout" not in texts[Level.TILE]
    assert "ptx.entry @saxpy" in texts[Level.PTX_IR]
    assert ".visible .entry saxpy(" in texts[Level.PTX]
    assert '"ceildiv(N, 16)"' in texts[Level.CONTRACT]


@pytest.mark.parametrize("level", [Level.AST, Level.TILE, Level.DIST, Level.PTX_IR])
def test_a_compilation_stops_at_the_last_level_asked_for(level: Level) -> None:
    result = compile_text(SAXPY, "saxpy.ph", OPTIONS, levels={level})
    assert set(result.levels) == {level}
    assert result.contract is None
    steps = [time.name for time in result.times]
    assert ("ph-lower-to-ptx" in steps) == (level is Level.PTX_IR)


@needs_ptxas
def test_machine_code() -> None:
    result = compile_text(SAXPY, "saxpy.ph", OPTIONS, levels={Level.CUBIN})
    cubin = result.levels[Level.CUBIN]
    assert isinstance(cubin, bytes)
    assert cubin.startswith(b"\x7fELF")


@needs_ptxas
def test_what_ptxas_spills_is_told() -> None:
    source = """\
@launch(32, 1, 32)
kernel k(x: tensor<f32>[N], out: tensor<f32>[N]) {
  let t = x[0 :+ 1024]
  out[0 :+ 1024] = t / sum<over 0>(t)
}
"""
    result = compile_text(source, "k.ph", OPTIONS, levels={Level.CUBIN})
    assert any(
        re.search(r"ptxas spills \d+ bytes of each thread of `k` to memory", one.message)
        for one in result.diagnostics
    )


def test_what_ptxas_remarks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    log = "ptxas info    : (C7511) Potential Performance Loss: serialized in the function 'k'\n"
    monkeypatch.setattr(
        "phobos.targets.ptx.assembler.assemble", lambda *_: Assembled(b"machine code", 2 * log)
    )
    result = compile_text(SAXPY, "saxpy.ph", OPTIONS, levels={Level.CUBIN})
    (told,) = result.diagnostics
    assert told.message.startswith("ptxas says: (C7511) Potential Performance Loss: serialized in")
    assert (told.severity, told.group) == (Severity.WARNING, "fallback")


def test_every_pass_is_timed() -> None:
    result = compile_text(SAXPY, "saxpy.ph", OPTIONS)
    steps = [time.name for time in result.times]
    assert [one.name for one in default_pipeline(OPTIONS)] == steps[3:-1]
    assert steps[-1] == "print"
    assert all(time.seconds >= 0 for time in result.times)
    assert result.timing_table().splitlines()[-1].endswith(" ms  total")


def test_compiling_twice_gives_the_same_bytes() -> None:
    levels = set(Level) - {Level.CUBIN}
    first = compile_text(SAXPY, "saxpy.ph", OPTIONS, levels=levels)
    assert compile_text(SAXPY, "saxpy.ph", OPTIONS, levels=levels).levels == first.levels


def test_constants_chip_and_width_reach_the_ptx() -> None:
    options = replace(OPTIONS, chip="sm_90", constants=(("BLOCK", 1024),), index_bits=64)
    result = compile_text(SAXPY, "saxpy.ph", options)
    assert ".target sm_90" in result.ptx
    assert ".param .u64 x_offset" in result.ptx
    assert result.contract is not None
    kernel = result.contract.kernel("saxpy")
    assert kernel.constants == {"BLOCK": 1024}
    assert kernel.grid == ("ceildiv(N, 1024)", "1", "1")
    assert result.contract.index_bits == 64


def test_an_error_has_its_excerpt() -> None:
    with pytest.raises(PhobosError) as caught:
        compile_text(UNKNOWN_NAME, "k.ph", OPTIONS)
    text = str(caught.value)
    assert "k.ph:2:31: error: `alpha` is not defined" in text
    assert "x[ctx.block.x * 16 :+ 16] = alpha" in text


@dataclass(frozen=True)
class Failing(ModulePass):
    """Raises a fault that a pass may raise."""

    name = "test-failing"

    fault: BaseException = RuntimeError("oh")  # noqa: RUF009

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise self.fault


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        (VerifyException("it is not valid"), "it is not valid"),
        (ArgSpecParseError.__new__(ArgSpecParseError), "cannot read the list of passes"),
        (RuntimeError("a fault"), "internal error: RuntimeError: a fault"),
        (RecursionError(), "nested too deeply"),
        (PhobosError.at(None, "as it is"), "as it is"),
    ],
)
def test_whatever_a_pass_raises_becomes_a_phobos_error(fault: BaseException, part: str) -> None:
    with pytest.raises(PhobosError) as caught:
        compile_text(SAXPY, "saxpy.ph", OPTIONS, passes=(Failing(fault),))
    assert part in str(caught.value)
    assert caught.value.sources is not None
    assert caught.value.sources.text("saxpy.ph") == SAXPY


def test_an_interrupt_is_passed_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        compile_text(SAXPY, "saxpy.ph", OPTIONS, passes=(Failing(KeyboardInterrupt()),))


@dataclass(frozen=True)
class Breaking(ModulePass):
    """Leaves an addition of unlike types behind."""

    name = "test-breaking"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        product = next(inner for inner in op.walk() if isinstance(inner, arith.MulfOp))
        product.operands[0] = next(
            inner.results[0] for inner in op.walk() if isinstance(inner, arith.ConstantOp)
        )


def test_verify_each_names_the_pass_that_broke_the_module() -> None:
    passes = (Breaking(),)
    with pytest.raises(PhobosError, match=r"`arith.mulf` is not valid"):
        compile_text(SAXPY, "saxpy.ph", OPTIONS, passes=passes, verify_each=True)


def test_the_garbage_collector_is_as_it_was() -> None:
    assert gc.isenabled()
    compile_text(SAXPY, "saxpy.ph", OPTIONS)
    assert gc.isenabled()
    with pytest.raises(PhobosError):
        compile_text(UNKNOWN_NAME, "k.ph", OPTIONS)
    assert gc.isenabled()


def test_saxpy_stays_small_on_its_way() -> None:
    """What compile time is made of, in a measure that no busy machine changes: instructions."""
    ptx = compile_text(SAXPY, "saxpy.ph", OPTIONS).ptx
    assert sum(line.endswith(";") for line in ptx.splitlines()) < 60


def test_the_driver_loads_no_package_of_the_run_extra() -> None:
    import subprocess
    import sys

    code = (
        "import sys, phobos.driver.compilation as c; from phobos.driver.options import *;"
        f"c.compile_text({SAXPY!r}, 'k.ph', CompileOptions());"
        "print([m for m in ('numpy', 'cuda', 'ml_dtypes', 'rich') if m in sys.modules])"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert finished.stdout.strip() == "[]"
