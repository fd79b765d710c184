"""`tools/gpu.py`, which runs tests and benchmarks in one go."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import gpu
from tools.bench.arguments import make_compile_time_parser, make_parser
from tools.gpu import BENCH, COMPILE_TIME, TESTS, Step, all_steps

PRINTS = "print('one'); print('two')"


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine where every package can be imported."""
    monkeypatch.setattr(gpu, "find_spec", lambda _: object())
    return monkeypatch


def python(name: str, code: str) -> Step:
    return Step(name, (sys.executable, "-c", code))


def test_the_benchmarks_take_the_arguments_of_the_steps(
    complete: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tests, compile_time, bench = all_steps(["-k", "saxpy"], ["saxpy", "--rounds", "9"], tmp_path)
    assert tests.command[-3:] == ("tests/gpu", "-k", "saxpy")
    assert compile_time.command[1:4] == ("-m", "tools.bench", "compile-time")
    options = make_compile_time_parser().parse_args(compile_time.command[4:])
    assert options.csv == tmp_path / "compile-time.csv"
    options = make_parser().parse_args(bench.command[3:])
    assert (options.cases, options.rounds) == (["saxpy"], 9)
    assert options.csv == tmp_path / "bench.csv"
    assert options.plot == tmp_path / "roofline.svg"


def test_there_is_no_plot_without_matplotlib(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gpu, "find_spec", lambda _: None)
    assert "--plot" not in all_steps([], ["all"], tmp_path)[-1].command


def test_a_step_is_shown_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.run(python("two lines", PRINTS), tmp_path) == 0
    assert (tmp_path / "two lines.log").read_text() == "one\ntwo\n"
    assert "\none\ntwo\n== two lines: exit code 0 after " in capsys.readouterr().out


def test_a_step_that_fails_does_not_stop_the_others(
    complete: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [python(TESTS, "raise SystemExit(3)"), python(COMPILE_TIME, PRINTS)]
    complete.setattr(gpu, "all_steps", lambda *_: [*steps, python(BENCH, PRINTS)])
    assert gpu.main(["--out", str(tmp_path / "logs")]) == 1
    assert capsys.readouterr().out.endswith("2 of 3 steps passed; failed: tests\n")
    assert {path.name for path in (tmp_path / "logs").iterdir()} == {
        "tests.log", "compile-time.log", "bench.log",
    }  # fmt: skip


def test_some_steps_can_be_run_alone(complete: pytest.MonkeyPatch, tmp_path: Path) -> None:
    steps = [python(name, PRINTS) for name in (TESTS, COMPILE_TIME, BENCH)]
    complete.setattr(gpu, "all_steps", lambda *_: steps)
    assert gpu.main(["--out", str(tmp_path), "--only", "bench", "--only", "tests"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"tests.log", "bench.log"}


def test_the_folder_is_the_one_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OUT", str(tmp_path))
    assert gpu.make_parser().parse_args([]).out == tmp_path
    monkeypatch.delenv("OUT")
    assert gpu.make_parser().parse_args([]).out == gpu.ROOT / "build/gpu"


def test_missing_packages_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "find_spec", lambda name: None if name in ("xdsl", "rich") else name)
    assert gpu.main(["--out", str(tmp_path)]) == 1
    assert capsys.readouterr().out == (
        "error: cannot import xdsl, rich; install them or set PYTHONPATH\n"
    )
