"""`phobos.compile`: modules, their variants, and the kernel cache behind them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import phobos
from phobos.driver import compilation
from tests.support.launching import NotingDevice
from tests.support.programs import SAXPY, TWO_KERNELS, UNKNOWN_NAME


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PHOBOS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PHOBOS_CACHE", raising=False)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The variants compiled, one entry each."""
    made: list[str] = []
    original = compilation.compile_text

    def noting(text, name, options, **rest):
        made.append(f"{options.extent_multiple} {options.index_bits} {options.line_info}")
        return original(text, name, options, **rest)

    monkeypatch.setattr(compilation, "compile_text", noting)
    return made


def launch(module: phobos.Module, n: int) -> NotingDevice:
    device = NotingDevice()
    x, y, out = (np.zeros(n, np.float32) for _ in range(3))
    module["saxpy"](x, y, out, 2.0, device=device)
    return device


def test_a_module_has_ptx_contract_and_kernels() -> None:
    module = phobos.compile(TWO_KERNELS, chip="sm_86", name="two.ph")
    assert ".target sm_86" in module.ptx
    assert module.contract.source == "two.ph"
    assert list(module) == ["first", "second"]
    assert repr(module) == "<module of first, second for sm_86>"
    assert module["second"].contract.grid == ("ceildiv(N, 64)", "1", "1")
    only = phobos.compile(TWO_KERNELS, kernel="second")
    assert list(only) == ["second"]


def test_a_source_can_be_a_path(tmp_path: Path) -> None:
    path = tmp_path / "saxpy.ph"
    path.write_text(SAXPY)
    assert phobos.compile(path).contract.source == str(path)
    assert phobos.compile(SAXPY).contract.source == "<string>"
    with pytest.raises(phobos.PhobosError, match="No such file"):
        phobos.compile(tmp_path / "missing.ph")


def test_a_wrong_source_raises_the_diagnostic() -> None:
    with pytest.raises(phobos.PhobosError) as caught:
        phobos.compile(UNKNOWN_NAME)
    assert "<string>:2:31: error: `alpha` is not defined" in str(caught.value)
    assert "^~~~~" in str(caught.value)


def test_what_is_no_source_is_refused() -> None:
    with pytest.raises(phobos.PhobosError, match=r"help: Path\('kernels/saxpy\.ph'\) has it read"):
        phobos.compile("kernels/saxpy.ph")
    with pytest.raises(phobos.PhobosError, match="a source is text or a Path, not an int"):
        phobos.compile(3)  # pyright: ignore[reportArgumentType]


def test_odd_extents_compile_another_variant(compilations: list[str]) -> None:
    module = phobos.compile(SAXPY, chip="sm_80")
    assert launch(module, 100).launches[0].program.ptx == module.ptx
    launch(module, 17)
    launch(module, 33)
    launch(module, 64)
    assert compilations == ["4 None False", "1 None False", "16 None False"]


def test_a_variant_has_a_grid_of_its_own_constants() -> None:
    module = phobos.compile(SAXPY, chip="sm_80", constants={"BLOCK": 64})
    assert launch(module, 130).launches[0].grid == (3, 1, 1)


def test_the_cache_serves_the_next_module(compilations: list[str]) -> None:
    first = phobos.compile(SAXPY, chip="sm_80")
    launch(first, 17)
    again = phobos.compile(SAXPY, chip="sm_80")
    launch(again, 17)
    assert len(compilations) == 2
    assert (again.ptx, again.contract) == (first.ptx, first.contract)
    phobos.compile(SAXPY, chip="sm_80", constants={"BLOCK": 64})
    phobos.compile(SAXPY + "\n", chip="sm_80")
    phobos.compile(SAXPY, chip="sm_80", cache=False)
    assert len(compilations) == 5


def test_a_failed_compilation_is_not_cached(tmp_path: Path) -> None:
    with pytest.raises(phobos.PhobosError):
        phobos.compile(UNKNOWN_NAME)
    assert list(tmp_path.rglob("*.json")) == []


def test_names_of_the_package_are_lazy() -> None:
    import subprocess
    import sys

    code = (
        "import sys, phobos; print([m for m in sys.modules if m.split('.')[0] in "
        "('xdsl', 'numpy', 'cuda')], sorted(set(phobos.__all__) - set(dir(phobos))))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert finished.stdout.strip() == "[] []"
    with pytest.raises(AttributeError, match="no attribute 'compil'"):
        phobos.compil  # noqa: B018
