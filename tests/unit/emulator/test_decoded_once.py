"""A kernel is decoded once for launches alike, and again for what decoding depends on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from phobos.diagnostics import SourceMap
from phobos.emulator import EmulatorError, emulate, launch

SUM = """\
.version 8.0
.target sm_90
.address_size 64
.file 1 "k.ph"
.global .u32 seen[4];
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n)
{
  .reg .b32 %r<8>; .reg .b64 %d<8>;
  .loc 1 2 3
  ld.param.u64 %d0,[x]; ld.param.u64 %d1,[y]; ld.param.u32 %r0,[n];
  mul.wide.u32 %d2,%r0,4; add.u64 %d3,%d0,%d2;
  ld.global.u32 %r1,[%d3];
  mov.u64 %d4,seen; st.global.u32 [%d4],%r1; ld.global.u32 %r2,[%d4];
  ld.global.u32 %r3,[%d1]; add.u32 %r4,%r2,%r3; st.global.u32 [%d1],%r4;
  ret;
}
"""


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was decoded, a kernel an entry; nothing is known from other tests."""
    found: list[Any] = []
    build_program = launch.build_program

    def counting(environment: Any, functions: Any) -> Any:
        found.append(environment)
        return build_program(environment, functions)

    monkeypatch.setattr(launch, "build_program", counting)
    launch._loaded.cache_clear()
    return found


def run(x: np.ndarray, y: np.ndarray, n: int = 1, **options: Any) -> int:
    emulate(SUM, "k", 1, 1, [x, y, n], **options)
    return int(y[0])


def test_arrays_of_any_size_share_a_program(decoded: list[Any]) -> None:
    for size in (2, 3000):
        x, y = np.full(size, 7, np.uint32), np.full(size, 5, np.uint32)
        assert run(x, y) == 12
    assert len(decoded) == 1


def test_another_place_of_the_parameters_is_decoded_anew(decoded: list[Any]) -> None:
    """Two arrays that share memory are one buffer, so that what follows lies elsewhere."""
    x, y = np.full(4, 7, np.uint32), np.full(4, 5, np.uint32)
    assert run(x, y) == 12
    assert run(x, x) == 14
    assert run(x, y) == 19
    assert len(decoded) == 2


def test_other_checks_are_decoded_anew(decoded: list[Any]) -> None:
    x, y = np.full(4, 7, np.uint32), np.full(4, 5, np.uint32)
    assert run(x, y, checks=()) == 12
    assert run(x, y, checks="all") == 19
    with pytest.raises(EmulatorError, match="uninitialised"):
        run(x, y, checks="all", uninitialised=(1,))
    assert len(decoded) == 2


def test_a_report_shows_the_source_of_its_own_launch(decoded: list[Any]) -> None:
    x, y = np.zeros(4, np.uint32), np.zeros(4, np.uint32)
    for text in ("first text", "second text"):
        sources = SourceMap()
        sources.add("k.ph", f"kernel k\n  {text}\n")
        with pytest.raises(EmulatorError) as caught:
            run(x, y, 4, sources=sources)
        assert f"2 |   {text}" in str(caught.value)
    assert len(decoded) == 1


def test_few_programs_of_a_module_are_kept(decoded: list[Any]) -> None:
    x, y = np.full(4, 7, np.uint32), np.full(4, 5, np.uint32)
    for shared in range(3 * launch._MOST_PROGRAMS):
        run(x, y, shared=shared)
    kept = launch._loaded(SUM, "<ptx>").programs
    assert 1 <= len(kept) <= launch._MOST_PROGRAMS
