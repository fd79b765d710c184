"""`phobos-run` from its command line, on the emulator."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from phobos.cli import compile as compile_tool
from phobos.cli.run import main
from tests.support.programs import SAXPY, TWO_KERNELS, UNKNOWN_NAME

Result = tuple[int, str, str]
Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PHOBOS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PHOBOS_CHIP", "sm_80")


@pytest.fixture
def saxpy(tmp_path: Path) -> Path:
    path = tmp_path / "saxpy.ph"
    path.write_text(SAXPY)
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*args: object, device: str = "emulator") -> Result:
        try:
            code = main([*map(str, args), "--device", device])
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_random_data_is_run_and_summarised(run: Run, saxpy: Path) -> None:
    code, out, err = run(saxpy, "--dim", "N=100", "--arg", "alpha=2.0")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"Kernel saxpy of {saxpy}, compiled for sm_80"
    assert "  alpha = 2.0 (given)" in lines
    assert "Running 7 x 1 x 1 CTAs of 256 threads on the emulator, on this computer's CPU" in lines
    assert lines[-1].startswith("out: f32[100]: min -")
    assert run(saxpy, "--dim", "N=100", "--arg", "alpha=2.0")[1] == out


@pytest.mark.parametrize("n", [1, 17, 100])
def test_loading_and_saving(run: Run, saxpy: Path, tmp_path: Path, n: int) -> None:
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    code, out, _ = run(
        saxpy, "--load", f"x={tmp_path / 'x.npy'}", "--load", f"y={tmp_path / 'y.npy'}",
        "--save", f"out={tmp_path / 'out.npy'}", "--arg", "alpha=3", "--set", "BLOCK=32",
    )  # fmt: skip
    assert code == 0
    assert f"  N = {n}" in out
    assert f"Running {-(-n // 32)} x 1 x 1 CTAs" in out
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), 3 * x + y)


def test_a_compiled_file_runs_from_its_contract(run: Run, saxpy: Path) -> None:
    assert compile_tool.main([str(saxpy)]) == 0
    ptx = saxpy.with_suffix(".ptx")
    saxpy.unlink()
    code, out, _ = run(ptx, "--dim", "N=100")
    assert code == 0
    assert "out: f32[100]: min -" in out
    code, _, err = run(ptx, "--dim", "N=17")
    assert code == 1
    assert "compiled for a `N` that is a multiple of 4" in err
    ptx.with_suffix(".json").unlink()
    code, _, err = run(ptx, "--dim", "N=100")
    assert code == 1
    assert "cannot read the launch contract" in err


def test_a_kernel_and_a_grid_can_be_chosen(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "two.ph"
    path.write_text(TWO_KERNELS)
    code, _, err = run(path, "--dim", "N=128")
    assert code == 1
    assert "name one of first, second" in err
    code, out, _ = run(path, "--dim", "N=128", "--kernel", "second", "--grid", "2,1")
    assert code == 0
    assert "Running 2 x 1 x 1 CTAs" in out
    assert "x: f32[128]: min 2, max 2, mean 2" in out


def test_timing_says_that_it_is_emulated(run: Run, saxpy: Path) -> None:
    code, out, _ = run(saxpy, "--dim", "N=16", "--time")
    assert code == 0
    assert "Time: median" in out
    assert "emulated time" in out


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "give --dim N=NUMBER"),
        (["--dim", "M=4"], "--dim M: `saxpy` has no extent of that name"),
        (["--dim", "N=4", "--arg", "beta=1"], "--arg beta"),
        (["--dim", "N=4", "--load", "x=missing.npy"], "No such file"),
        (["--dim", "N=4", "--set", "BLOK=3"], "did you mean `BLOCK`"),
        (["--dim", "N=4", "--kernel", "k"], "no kernel `k`"),
    ],
)
def test_wrong_values_exit_with_1(run: Run, saxpy: Path, arguments: list[str], part: str) -> None:
    code, out, err = run(saxpy, *arguments)
    assert (code, out) == (1, "")
    assert part in err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--dim", "N=x"], "`x` is not an integer"),
        (["--dim", "N=1.5"], "`1.5` is not an integer"),
        (["--grid", "0"], "positive integers"),
        (["--grid", "1,2,3,4"], "one to three positive integers"),
        (["--load", "x"], "write NAME=FILE"),
        (["--seed", "-1"], "cannot be negative"),
        (["--device", "tpu"], "invalid choice: 'tpu'"),
        (["--dim", "N=-4"], "an extent cannot be negative"),
        (["--dim", "N=4", "--chip", "sm_1"], "not a supported chip"),
        (["--dim", "N=4", "--check", "races"], "did you mean `race`?"),
    ],
)
def test_a_wrong_command_line_exits_with_2(
    run: Run, saxpy: Path, arguments: list[str], part: str
) -> None:
    code, _, err = run(saxpy, *arguments)
    assert code == 2
    assert part in err


@pytest.mark.parametrize("option", [("--set", "BLOCK=4"), ("--no-tensor-maps",)])
def test_compile_options_of_a_compiled_file_are_refused(run: Run, option: tuple[str, ...]) -> None:
    code, _, err = run("k.ptx", *option)
    assert code == 2
    assert "it is compiled already" in err or "is compiled already" in err


def test_a_wrong_program(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "k.ph"
    path.write_text(UNKNOWN_NAME)
    code, _, err = run(path, "--dim", "N=4", "--diagnostics", "json")
    assert code == 1
    assert json.loads(err)[0]["message"] == "`alpha` is not defined"


OUT_OF_BOUNDS = """\
kernel k(x: tensor<f32>[N]) {
  x[ctx.thread] = 1.0
}
"""


def test_a_finding_of_the_emulator_shows_the_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "k.ph"
    path.write_text(OUT_OF_BOUNDS)
    code, _, err = run(path, "--dim", "N=100", "--grid", "1")
    assert code == 1
    assert "out of bounds" in err.splitlines()[0]
    assert f"{path}:2:" in err.splitlines()[0]
    assert "x[ctx.thread] = 1.0" in err


def test_the_process_itself(saxpy: Path) -> None:
    command = [sys.executable, "-m", "phobos.cli.run", str(saxpy), "--dim", "N=20"]
    finished = subprocess.run(
        [*command, "--device", "emulator"], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert "out: f32[20]: min -" in finished.stdout
