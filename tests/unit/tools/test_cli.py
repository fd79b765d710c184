"""The command line of the benchmarks."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tools.sample_results import ALL, WRONG
from tools.bench import cli
from tools.bench.ahead import Ahead
from tools.bench.arguments import dtypes, make_parser, size, sizes
from tools.bench.entrants import Contender, Selection
from tools.bench.errors import BenchError
from tools.bench.measure import Settings
from tools.bench.registry import all_cases
from tools.bench.results import Result
from tools.bench.worker import Job, Roofs, Spent


@pytest.mark.parametrize(
    ("text", "expected"),
    [("8192x8192", (8192, 8192)), ("2^28", (1 << 28,)), ("2^3x5", (8, 5)), ("7", (7,))],
)
def test_sizes(text: str, expected: tuple[int, ...]) -> None:
    assert size(text) == expected


def test_several_sizes_and_types() -> None:
    assert sizes("2^10,3x4") == [(1024,), (3, 4)]
    assert dtypes("f16,bf16") == ["f16", "bf16"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["saxpy", "--size", "big"], "`big` is not an extent such as 8192 or 2^28"),
        (["saxpy", "--size", "2^-3"], "`2^-3` is not an extent"),
        (["saxpy", "--size", "0"], "an extent is from 1 to 2^40, and `0` is not"),
        (["saxpy", "--size", "2^999999999"], "an extent is from 1 to 2^40"),
        (["saxpy", "--dtype", "f33"], "there is no type `f33`"),
        (["saxpy", "--contender", "cuda"], "there is no contender `cuda`; there are phobos, torch"),
        (["saxpy", "--older", "sm_81"], "there is no chip `sm_81`; there are sm_75, sm_80"),
        (["saxpy", "--rounds", "0"], "`0` is not a number from 1 on"),
        (["saxpy", "--ahead", "-1"], "`-1` is not a number from 0 on"),
        (["saxpy", "--set", "BLOCK"], "BLOCK"),
        ([], "the following arguments are required: CASE (--list shows them)"),
        (["sapxy"], "there is no case `sapxy`; did you mean `saxpy`?"),
        (["saxpy", "--size", "4x4"], "the size of saxpy is N, and 4x4 was given"),
        (["saxpy", "--dtype", "i8"], "there is no i8 version of saxpy"),
    ],
)
def test_a_wrong_command_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_without_pytorch_a_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tools.bench.torch_machine.find_spec", lambda _: None)
    assert cli.main(["saxpy"]) == 1
    assert capsys.readouterr().err == (
        "error: the benchmarks need PyTorch, which is not installed (pip install torch)\n"
    )


def test_a_plot_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["saxpy", "--plot", "out.pdf"]) == 1
    assert capsys.readouterr().err == "error: a plot is written as .png or .svg, not out.pdf\n"
    monkeypatch.setattr("tools.bench.roofline.find_spec", lambda _: None)
    assert cli.main(["saxpy", "--plot", "out.svg"]) == 1
    assert "plots need matplotlib" in capsys.readouterr().err


def test_an_unknown_chip_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["saxpy", "--chip", "sm_81"]) == 1
    assert "sm_81" in capsys.readouterr().err


def test_what_there_was_no_time_for_is_named(
    measured: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured.setattr(cli, "run_jobs", FakeRun(ALL))
    seconds = iter((0.0, 10.5))
    measured.setattr(cli.time, "monotonic", lambda: next(seconds))
    assert cli.main(["saxpy", "--dtype", "f32,f16", "--within", "10"]) == 0
    assert "Left out for lack of time: saxpy f16 268435456\n" in capsys.readouterr().out


def test_the_list_needs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in all_cases())


def test_jobs_are_all_sizes_and_types_that_a_case_has() -> None:
    cases = [all_cases()["copy"], all_cases()["saxpy"]]
    jobs = cli.make_jobs(cases, [(8,), (16,)], ["bf16", "f32"])
    assert jobs[:4] == [
        Job("copy", "f32", (8,)), Job("copy", "bf16", (8,)),
        Job("copy", "f32", (16,)), Job("copy", "bf16", (16,)),
    ]  # fmt: skip
    assert len(jobs) == 8
    assert cli.make_jobs(cases[1:], [], []) == [
        Job("saxpy", dtype, (1 << 28,)) for dtype in ("f32", "f16", "bf16")
    ]


class FakeRun:
    """Stands for the other process: gives these results, and notes what it was asked for."""

    def __init__(self, *results: list[Result], refusal: str = "") -> None:
        self.results = results
        self.refusal = refusal
        self.jobs: Sequence[Job] = ()
        self.settings = Settings()
        self.options: dict[str, Any] = {}

    def __call__(
        self, jobs: Sequence[Job], settings: Settings, **options: Any
    ) -> Iterator[Roofs | list[Result]]:
        self.jobs, self.settings, self.options = jobs, settings, options
        if self.refusal:
            raise BenchError(self.refusal)
        if options["roofs_for"]:
            yield Roofs("Test GPU", 4e12, dict.fromkeys(options["roofs_for"], 1e14))
        yield from self.results


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Lets runs go through without PyTorch; `setattr(cli, "run_jobs", ...)` says what they give."""
    monkeypatch.setattr(cli, "require_torch", lambda: None)
    monkeypatch.setattr(cli, "compile_ahead", lambda jobs, selection, **options: "not compiled")
    return monkeypatch


def test_results_become_tables_and_csv(
    measured: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = FakeRun(ALL)
    measured.setattr(cli, "run_jobs", fake)
    path = tmp_path / "out.csv"
    arguments = ["saxpy", "--dtype", "f32", "--contender", "phobos,torch", "--set", "BLOCK=64"]
    arguments += [
        "--chip",
        "sm_80",
        "--older",
        "sm_75",
        "--no-tensor-maps",
        "--rounds",
        "7",
        "--timeout",
        "9",
        "--csv",
        str(path),
    ]
    assert cli.main(arguments) == 0
    assert list(fake.jobs) == [Job("saxpy", "f32", (1 << 28,))]
    selection = fake.settings.selection
    assert selection.contenders == (Contender.PHOBOS, Contender.TORCH)
    assert (selection.chip, selection.constants) == ("sm_80", (("BLOCK", 64),))
    assert selection.older == ("sm_75",)
    assert not selection.tensor_maps
    assert (fake.settings.rounds, fake.options["timeout"]) == (7, 9)
    assert fake.options["roofs_for"] == ()
    out = capsys.readouterr().out
    assert "saxpy f32 1000000 on Test GPU" in out
    assert "Summary" in out
    with open(path, newline="") as text:
        assert len(list(csv.DictReader(text))) == len(ALL)


@pytest.mark.parametrize(
    ("arguments", "rounds", "seconds"),
    [
        ([], 50, 5),
        (["--brief"], 20, 2),
        (["--brief", "--rounds", "30"], 30, 2),
        (["--seconds", "3"], 50, 3),
    ],
)
def test_how_long_is_measured(
    arguments: list[str], rounds: int, seconds: int, measured: pytest.MonkeyPatch
) -> None:
    fake = FakeRun(ALL)
    measured.setattr(cli, "run_jobs", fake)
    assert cli.main(["saxpy", *arguments]) == 0
    assert (fake.settings.rounds, fake.settings.seconds) == (rounds, seconds)


def test_everything_is_compiled_before_it_is_measured(
    measured: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[int, float, int]] = []

    def compile_ahead(
        jobs: Sequence[Job], selection: Selection, *, processes: int, timeout: float
    ) -> Ahead:
        asked.append((processes, timeout, len(jobs)))
        return Ahead(12, processes, 3.0, is_complete=False)

    measured.setattr(cli, "compile_ahead", compile_ahead)
    measured.setattr(cli, "core_count", lambda: 7)
    measured.setattr(cli, "run_jobs", FakeRun(ALL))
    for more in (["--within", "90"], ["--ahead", "3"], ["--ahead", "0"]):
        assert cli.main(["saxpy", "--dtype", "f32", *more]) == 0
    assert asked == [(7, 45.0, 1), (3, 600.0, 1)]
    out = capsys.readouterr().out
    assert "Compiled ahead: 12 builds in 3.0 s by 7 processes; the others are compiled" in out


def test_it_is_said_where_the_time_went(
    measured: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_jobs(*_: Any, **__: Any) -> Iterator[Spent | list[Result]]:
        yield Spent("1.5 s: search 1.5")
        yield ALL

    measured.setattr(cli, "run_jobs", run_jobs)
    assert cli.main(["saxpy"]) == 0
    assert "took 1.5 s: search 1.5\n" in capsys.readouterr().out


def test_cases_are_measured_in_the_order_in_which_they_are_named(
    measured: pytest.MonkeyPatch,
) -> None:
    fake = FakeRun(ALL)
    measured.setattr(cli, "run_jobs", fake)
    assert cli.main(["saxpy", "copy", "all", "--dtype", "f32"]) == 0
    names = [job.case for job in fake.jobs]
    assert names[:3] == ["saxpy", "copy", "add_broadcast"]
    assert len(set(names)) == len(names)


def test_a_wrong_result_fails_the_run(
    measured: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured.setattr(cli, "run_jobs", FakeRun([WRONG]))
    assert cli.main(["saxpy"]) == 1
    assert "wrong: BLOCK=16 out[3] is nan" in capsys.readouterr().out


def test_a_machine_without_a_gpu_is_one_sentence(
    measured: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured.setattr(cli, "run_jobs", FakeRun(refusal="there is no GPU"))
    assert cli.main(["saxpy"]) == 1
    assert capsys.readouterr().err == "error: there is no GPU\n"


def test_a_plot_gets_the_roofs_that_were_measured(
    measured: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drawn: list[tuple[Path, int, Roofs]] = []
    measured.setattr(cli, "check_plotting", lambda path: None)
    measured.setattr(cli, "run_jobs", FakeRun(ALL))
    measured.setattr(
        cli, "write_plot", lambda path, results, roofs: drawn.append((path, len(results), roofs))
    )
    assert cli.main(["saxpy", "--plot", str(tmp_path / "roofline.svg")]) == 0
    ((path, count, roofs),) = drawn
    assert (path.name, count, roofs.bytes_per_second) == ("roofline.svg", len(ALL), 4e12)


def test_a_csv_file_that_cannot_be_written_is_one_sentence(
    measured: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured.setattr(cli, "run_jobs", FakeRun(ALL))
    assert cli.main(["saxpy", "--csv", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path}: Is a directory\n"


def test_help_says_what_the_ratio_is() -> None:
    assert "above 1, Phobos is the fastest" in make_parser().format_help()
