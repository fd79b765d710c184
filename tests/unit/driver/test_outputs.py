"""Where the outputs of a compilation go, and how they are written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phobos.diagnostics import PhobosError
from phobos.driver.levels import Level
from phobos.driver.outputs import Output, place_outputs, write_outputs


def placed(source: str | None, output: str | None, level: Level) -> list[tuple[str, str | None]]:
    outputs = place_outputs(None if source is None else Path(source), output, level)
    return [(one.level.value, one.path and one.path.as_posix()) for one in outputs]


def test_ptx_and_contract_go_beside_the_source() -> None:
    assert placed("d/k.ph", None, Level.PTX) == [("ptx", "d/k.ptx"), ("contract", "d/k.json")]
    assert placed("k", None, Level.PTX) == [("ptx", "k.ptx"), ("contract", "k.json")]


def test_an_output_file_has_its_contract_beside_it() -> None:
    assert placed("k.ph", "o/a.ptx", Level.PTX) == [("ptx", "o/a.ptx"), ("contract", "o/a.json")]


@pytest.mark.parametrize("source", ["k.ph", None])
def test_standard_output(source: str | None) -> None:
    assert placed(source, "-", Level.PTX) == [("ptx", None)]
    assert placed(None, None, Level.PTX) == [("ptx", None)]
    assert placed(source, "-", Level.CUBIN) == [("cubin", None)]


def test_levels_of_the_ir_go_to_standard_output() -> None:
    for level in (Level.AST, Level.TILE, Level.DIST, Level.PTX_IR, Level.CONTRACT):
        assert placed("k.ph", None, level) == [(level.value, None)]
        assert placed("k.ph", "x.mlir", level) == [(level.value, "x.mlir")]
    assert placed("k.ph", None, Level.CUBIN) == [("cubin", "k.cubin")]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    with pytest.raises(PhobosError, match=r"the output would overwrite k\.ptx"):
        placed("k.ptx", None, Level.PTX)
    with pytest.raises(PhobosError, match="the output would overwrite"):
        placed("k.ph", "k.ph", Level.PTX)
    with pytest.raises(PhobosError, match=r"the launch contract goes to k\.json too"):
        placed("k.ph", "k.json", Level.PTX)
    source = tmp_path / "k.ph"
    source.write_text("")
    (tmp_path / "link.ptx").symlink_to(source)
    with pytest.raises(PhobosError, match="the output would overwrite"):
        place_outputs(source, str(tmp_path / "link.ptx"), Level.PTX)


def test_writing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = [
        Output(Level.PTX, tmp_path / "k.ptx"),
        Output(Level.CUBIN, tmp_path / "k.cubin"),
        Output(Level.CONTRACT, None),
    ]
    write_outputs(outputs, {Level.PTX: "text\n", Level.CUBIN: b"\x7fELF", Level.CONTRACT: "{}\n"})
    assert (tmp_path / "k.ptx").read_text() == "text\n"
    assert (tmp_path / "k.cubin").read_bytes() == b"\x7fELF"
    assert capsys.readouterr().out == "{}\n"
    assert len(list(tmp_path.iterdir())) == 2


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(PhobosError, match=r"cannot write .*: No such file or directory"):
        write_outputs([Output(Level.PTX, tmp_path / "no" / "k.ptx")], {Level.PTX: ""})


@pytest.mark.skipif(os.name != "posix", reason="/dev/null is POSIX's")
def test_a_device_is_written_into_and_not_replaced() -> None:
    write_outputs([Output(Level.PTX, Path(os.devnull))], {Level.PTX: "text"})
    assert not Path(os.devnull).is_file()
