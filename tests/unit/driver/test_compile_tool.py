"""`phobos-compile` from its command line: outputs, exit codes and diagnostics."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from phobos.cli.compile import main
from phobos.driver.options import CompileOptions
from phobos.pipeline import default_pipeline
from phobos.targets.ptx.contract import load
from tests.support.programs import SAXPY, TWO_KERNELS, UNKNOWN_NAME

Result = tuple[int, str, str]
Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("PHOBOS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("PHOBOS_CACHE", raising=False)
    monkeypatch.delenv("PHOBOS_CHIP", raising=False)
    monkeypatch.setattr("phobos.runtime.detect.gpu_capability", lambda: None)


@pytest.fixture
def saxpy(tmp_path: Path) -> Path:
    path = tmp_path / "saxpy.ph"
    path.write_text(SAXPY)
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*args: object) -> Result:
        try:
            code = main([str(arg) for arg in args])
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_ptx_and_contract_are_written_beside_the_source(run: Run, saxpy: Path) -> None:
    assert run(saxpy) == (0, "", "")
    assert ".visible .entry saxpy(" in saxpy.with_suffix(".ptx").read_text()
    contract = load(saxpy.with_suffix(".json"))
    assert contract.source == str(saxpy)
    assert (contract.chip, contract.chip_from.value) == ("sm_80", "default")


def test_an_output_can_be_named(run: Run, saxpy: Path, tmp_path: Path) -> None:
    assert run(saxpy, "-o", tmp_path / "other.ptx", "--chip", "sm_90")[0] == 0
    assert load(tmp_path / "other.json").chip_from.value == "option"
    assert not saxpy.with_suffix(".ptx").exists()


def test_standard_input_and_output(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = SimpleNamespace(buffer=io.BytesIO(SAXPY.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    code, out, err = run("-")
    assert (code, err) == (0, "")
    assert ".visible .entry saxpy(" in out
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(UNKNOWN_NAME.encode())))
    code, out, err = run("-")
    assert (code, out) == (1, "")
    assert "<stdin>:2:31: error: `alpha` is not defined" in err


@pytest.mark.parametrize("index_bits", [32, 64])
def test_options_reach_the_compiler(run: Run, saxpy: Path, index_bits: int) -> None:
    code, out, _ = run(
        saxpy, "--chip", "sm_75", "--index-bits", index_bits, "--set", "BLOCK=0x40",
        "--extent-multiple", 16, "--extent-multiple", "N=8", "--emit", "contract",
    )  # fmt: skip
    contract = json.loads(out)
    assert code == 0
    assert contract["chip"] == "sm_75"
    assert contract["index_bits"] == index_bits
    assert contract["extent_multiple"] == 16
    assert contract["extent_multiples"] == {"N": 8}
    assert contract["kernels"][0]["constants"] == {"BLOCK": 64}


def test_one_kernel_of_several(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "two.ph"
    path.write_text(TWO_KERNELS)
    code, out, _ = run(path, "--kernel", "second", "-o", "-")
    assert code == 0
    assert ".entry second(" in out
    assert "first" not in out


@pytest.mark.parametrize(
    ("level", "part"),
    [("ast", "kernel s"), ("tile", "tile.load"), ("dist", "#tile.layout"), ("ptx-ir", "ptx.entry"),
     ("contract", '"kernels"')],
)  # fmt: skip
def test_levels_are_printed(run: Run, saxpy: Path, level: str, part: str) -> None:
    code, out, err = run(saxpy, "--emit", level)
    assert (code, err) == (0, "")
    assert part in out
    assert list(saxpy.parent.iterdir()) == [saxpy]


def test_the_level_of_other_passes_is_what_they_leave(run: Run, saxpy: Path) -> None:
    code, out, err = run(saxpy, "--passes", "ph-assign-layouts", "--emit", "dist")
    assert (code, err) == (0, "")
    assert "#tile.layout" in out
    assert "in_bounds" not in out, "the extents were not analyzed"


def test_line_info_names_the_source(run: Run, saxpy: Path) -> None:
    assert ".loc" not in run(saxpy, "-o", "-")[1]
    out = run(saxpy, "-o", "-", "--line-info")[1]
    assert ".loc 1 4 " in out
    assert "saxpy.ph" in out


def test_a_wrong_program_exits_with_1_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "k.ph"
    path.write_text(UNKNOWN_NAME)
    code, out, err = run(path)
    assert (code, out) == (1, "")
    assert f"{path}:2:31: error: `alpha` is not defined" in err
    assert "^~~~~" in err
    assert list(tmp_path.iterdir()) == [path]


def test_diagnostics_as_json(run: Run, saxpy: Path, tmp_path: Path) -> None:
    path = tmp_path / "k.ph"
    path.write_text(UNKNOWN_NAME)
    code, _, err = run(path, "--diagnostics", "json")
    assert code == 1
    (diagnostic,) = json.loads(err)
    assert diagnostic["severity"] == "error"
    assert diagnostic["location"] == {
        "file": str(path), "line": 2, "column": 31, "end_line": 2, "end_column": 36
    }  # fmt: skip
    code, _, err = run(saxpy, "--diagnostics", "json")
    assert (code, json.loads(err)) == (0, [])


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--set", "BLOK=64"], "did you mean `BLOCK`?"),
        (["--kernel", "saxp"], "did you mean `saxpy`?"),
        (["--passes", "canonicalize"], "no `ptx.module` to print"),
        (["-o", "/no/such/folder/k.ptx"], "No such file or directory"),
        (["--extent-multiple", "M=4"], "no dim of a tensor"),
        (["-o", "{saxpy}"], "would overwrite"),
        (["-o", "."], "error: . is a folder"),
    ],
)
def test_wrong_values_exit_with_1(run: Run, saxpy: Path, arguments: list[str], part: str) -> None:
    code, _, err = run(saxpy, *(argument.format(saxpy=saxpy) for argument in arguments))
    assert code == 1
    assert part in err
    assert "Traceback" not in err
    assert saxpy.read_text() == SAXPY


@pytest.mark.parametrize(
    ("content", "part"),
    [(b"\xff\xfe\x00", "not UTF-8"), (None, "No such file"), ("folder", "s a directory")],
)
def test_files_that_cannot_be_read(
    run: Run, tmp_path: Path, content: bytes | str | None, part: str
) -> None:
    path = tmp_path / "k.ph"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.mkdir()
    code, _, err = run(path)
    assert code == 1
    assert part in err


def test_a_folder_is_no_program(run: Run) -> None:
    code, _, err = run(".")
    assert code == 1
    assert "cannot read .: Is a directory" in err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "required: FILE"),
        (["k.ph", "--set", "BLOCK"], "write NAME=NUMBER, not 'BLOCK'"),
        (["k.ph", "--set", "BLOCK=x"], "`x` is not a number"),
        (["k.ph", "--set", "1=2"], "write NAME=NUMBER"),
        (["k.ph", "--extent-multiple", "3"], "invalid choice: 3"),
        (["k.ph", "--extent-multiple", "N=12"], "invalid choice: N=12"),
        (["k.ph", "--extent-multiple", "=4"], "invalid choice: =4"),
        (["k.ph", "--index-bits", "16"], "invalid choice: 16"),
        (["k.ph", "--emit", "llvm"], "--emit: invalid choice: 'llvm' (choose from 'ast', 'tile'"),
        (["k.ph", "--unknown"], "unrecognized arguments: --unknown"),
        (["k.ph", "--diag", "json"], "unrecognized arguments"),
    ],
)
def test_a_wrong_command_line_exits_with_2(run: Run, arguments: list[str], part: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert part in err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--chip", "sm_99"], "did you mean `sm_90`?"),
        (["--passes", "canonicaliz"], "did you mean `canonicalize`?"),
        (["--passes", "cse,,"], "cannot read the list of passes"),
        (["--passes", "ph-lower-to-ptx{chip=sm_1}"], "`sm_1` is not a supported chip"),
        (["--passes", "ph-lower-to-ptx{size=1}"], "size"),
        (["-W", "no-slow"], "there is no group of warnings `slow`; there are fallback, masked-"),
        (["-W", "fallback"], "expected no-GROUP"),
        (["--werror", "slow"], "there is no group of warnings `slow`"),
    ],
)
def test_values_that_no_program_makes_right_exit_with_2(
    run: Run, saxpy: Path, arguments: list[str], part: str
) -> None:
    code, out, err = run(saxpy, *arguments)
    assert (code, out) == (2, "")
    assert part in err


def test_a_variable_that_names_no_chip_exits_with_2(
    run: Run, saxpy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHOBOS_CHIP", "sm_1")
    code, _, err = run(saxpy)
    assert code == 2
    assert "the environment variable PHOBOS_CHIP: `sm_1` is not" in err


def test_listings_need_no_file(run: Run) -> None:
    code, out, _ = run("--chip", "list")
    assert code == 0
    assert "sm_120" in out
    code, out, _ = run("--print-pipeline")
    assert code == 0
    names = [one.name for one in default_pipeline(CompileOptions())]
    assert [part.split("{")[0] for part in out.strip().split(",")] == names
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("phobos-compile ")


def test_the_printed_pipeline_can_be_given_back(run: Run, saxpy: Path) -> None:
    passes = run("--print-pipeline", "--chip", "sm_90")[1].strip()
    default = run(saxpy, "-o", "-", "--chip", "sm_90")
    assert run(saxpy, "-o", "-", "--chip", "sm_90", "--passes", passes) == default
    assert default[0] == 0


def test_a_second_compilation_comes_from_the_cache(
    run: Run, saxpy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(saxpy, "-o", "-")
    contract = run(saxpy, "--emit", "contract")

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr("phobos.driver.compilation.compile_text", fail)
    assert run(saxpy, "-o", "-") == first
    assert run(saxpy, "--emit", "contract") == contract
    assert run(saxpy, "-o", "-", "--chip", "sm_90")[0] == 1, "another chip is another entry"


def test_timing_goes_to_stderr(run: Run, saxpy: Path) -> None:
    code, out, err = run(saxpy, "-o", "-", "--timing", "--verify-each")
    assert code == 0
    assert " ms  ph-assign-layouts" in err
    assert err.rstrip().endswith(" ms  total")
    assert "total" not in out


def test_debug_shows_the_traceback(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "k.ph"
    path.write_text(UNKNOWN_NAME)
    assert "Traceback" in run(path, "--debug")[2]


def test_the_process_itself(saxpy: Path) -> None:
    command = [sys.executable, "-m", "phobos.cli.compile", str(saxpy), "-o", "-"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0
    assert finished.stdout.endswith("}\n")
    command[3] = str(saxpy.with_suffix(".missing"))
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 1
    assert "No such file" in finished.stderr


def test_a_reader_that_leaves_early_is_no_fault(saxpy: Path) -> None:
    command = f"{sys.executable} -m phobos.cli.compile {saxpy} -o - | true"
    finished = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert finished.stderr == ""


DOUBTFUL = """\
kernel k(X: tensor<f32>[N], Y: tensor<f32>[1]) {
  Y[:] = max<over 0>(X[0 :+ 64])
}
"""


def test_a_warning_is_shown_each_time_and_can_be_hidden(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "k.ph"
    path.write_text(DOUBTFUL)
    for _ in range(2):
        code, out, err = run(path)
        assert (code, out) == (0, "")
        assert f"{path}:2:10: warning: `max` may take in" in err
        assert err.count("[-W masked-fold]") == 1
    assert run(path, "-W", "no-masked-fold") == (0, "", "")
    code, _, err = run(path, "--diagnostics", "json")
    assert [(one["severity"], one["group"]) for one in json.loads(err)] == [
        ("warning", "masked-fold")
    ]


@pytest.mark.parametrize("group", ["all", "masked-fold"])
def test_a_warning_can_be_an_error(run: Run, tmp_path: Path, group: str) -> None:
    path = tmp_path / "k.ph"
    path.write_text(DOUBTFUL)
    code, out, err = run(path, "--werror", group)
    assert (code, out) == (1, "")
    assert ": error: `max` may take in" in err
    assert not path.with_suffix(".ptx").exists()
    assert run(path, "--werror", "fallback")[0] == 0


def test_w_hides_and_nothing_else(run: Run, saxpy: Path) -> None:
    code, _, err = run(saxpy, "-W", "masked-fold")
    assert code == 2
    assert "expected no-GROUP" in err
