"""Bodies that are repeated: they compile, and no copy is merged with another."""

from __future__ import annotations

from pathlib import Path

import pytest

import phobos
from tools.bench import cli
from tools.bench.case import example
from tools.bench.errors import BenchError
from tools.bench.growth import COPIES, Growth, growth_table, repeated
from tools.bench.spread import Spread

SOFTMAX = example("softmax.ph")


def test_every_copy_is_compiled() -> None:
    text = SOFTMAX.read_text()
    assert repeated(text, 1) == text
    stores = [
        phobos.compile(repeated(text, copies), cache=False).ptx.count("st.global")
        for copies in (1, 2, 4)
    ]
    assert stores == [stores[0], 2 * stores[0], 4 * stores[0]]


def test_a_program_without_one_kernel_is_refused() -> None:
    with pytest.raises(BenchError, match="one kernel"):
        repeated("fn f(x: f32) -> f32 { return x }", 2)


def test_the_table_tells_growth_from_more_than_growth() -> None:
    seconds = {copies: Spread(copies * 2e-3, 0, 0, 1) for copies in COPIES}
    seconds[16] = Spread(48e-3, 0, 0, 1)
    table = growth_table([Growth("a.ph", seconds)], "sm_80")
    cells = [next(iter(column.cells)) for column in table.columns]
    assert cells[0] == "a.ph"
    assert cells[-1] == "1.50"


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    program = str(Path(SOFTMAX))
    assert cli.main(["compile-time", "--growth", "--repeats", "1", program]) == 0
    out = capsys.readouterr().out
    assert "x16" in out
    assert "softmax.ph" in out
