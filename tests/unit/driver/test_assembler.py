"""ptxas: found, run, and its complaints passed on."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from phobos.diagnostics import PhobosError
from phobos.targets.ptx import cuda_tools
from phobos.targets.ptx.assembler import Assembled, assemble, find_ptxas
from phobos.targets.ptx.cuda_tools import find_cuda_tool
from tests.support.launching import SAXPY_PTX


@pytest.fixture(autouse=True)
def _forget_where_ptxas_is() -> Iterator[None]:
    find_cuda_tool.cache_clear()
    yield
    find_cuda_tool.cache_clear()


def fake_ptxas(folder: Path, script: str) -> None:
    path = folder / "ptxas"
    path.write_text(f"#!{sys.executable}\nimport sys\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_ptxas_on_the_path_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_ptxas(tmp_path, "open(sys.argv[sys.argv.index('-o') + 1], 'wb').write(b'code')")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_ptxas() == str(tmp_path / "ptxas")
    assert assemble("text", "sm_80") == Assembled(b"code", "")


def test_ptxas_of_the_pip_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "nvidia" / "cu13" / "bin"
    folder.mkdir(parents=True)
    fake_ptxas(folder, "")
    monkeypatch.setenv("PATH", str(tmp_path))

    class Spec:
        submodule_search_locations = (str(tmp_path / "nvidia"),)

    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr(cuda_tools, "find_spec", lambda _: Spec)
    assert find_ptxas() == str(folder / "ptxas")


@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
def test_ptxas_of_a_toolkit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str) -> None:
    folder = tmp_path / "cuda" / "bin"
    folder.mkdir(parents=True)
    fake_ptxas(folder, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "cuda"))
    assert find_ptxas() == str(folder / "ptxas")


def test_without_ptxas(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr(cuda_tools, "find_spec", lambda _: None)
    with pytest.raises(PhobosError, match="ptxas is needed") as caught:
        find_ptxas()
    assert "pip install nvidia-cuda-nvcc" in str(caught.value)


def test_a_refusal_shows_what_ptxas_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_ptxas(tmp_path, "print('error at', sys.argv[2], file=sys.stderr); sys.exit(255)")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PhobosError, match="ptxas refuses the PTX for sm_80") as caught:
        assemble("text", "sm_80")
    text = str(caught.value)
    assert "error at kernel.ptx" in text
    assert "ptxas -arch=sm_80 kernel.ptx -o kernel.cubin" in text


def test_statistics_are_no_warnings() -> None:
    log = (
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
        "ptxas info    : Function properties for k\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 10 registers, used 0 barriers\n"
        "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored\n"
        "ptxas kernel.ptx, line 7; warning : something\n"
    )
    assert [line[-9:] for line in Assembled(b"", log).warnings] == ["' ignored", "something"]
    assert Assembled(b"", log).remarks == (
        "(C7508) Potential Performance Loss: 'setmaxnreg' ignored",
        "something",
    )


def test_a_remark_on_many_lines_is_one() -> None:
    lines = "".join(
        f"ptxas info    : (C7517) warpgroup.wait is injected in around line {line} by compiler\n"
        for line in (7, 12)
    )
    log = f"{lines}ptxas warning : Too many\n"
    assert Assembled(b"", log).remarks == (
        "(C7517) warpgroup.wait is injected by compiler",
        "Too many",
    )


def test_spills_are_found_in_the_statistics() -> None:
    lines = "".join(
        f"ptxas info    : Function properties for {name}\n"
        f"    {stores} bytes stack frame, {stores} bytes spill stores, 12 bytes spill loads\n"
        for name, stores in (("one", 0), ("two", 8))
    )
    assert Assembled(b"", lines).spills == {"two": 8}
    assert Assembled(b"", "").spills == {}


def test_real_ptxas_assembles(request: pytest.FixtureRequest) -> None:
    try:
        find_ptxas()
    except PhobosError:
        pytest.skip("needs ptxas")
    assembled = assemble(SAXPY_PTX, "sm_80", ("-v",))
    assert assembled.cubin.startswith(b"\x7fELF")
    assert assembled.warnings == ()
    assert "Used" in assembled.log
    with pytest.raises(PhobosError, match="ptxas refuses"):
        assemble(SAXPY_PTX.replace("fma.rn", "fma"), "sm_80")
