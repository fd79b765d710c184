"""Compile times: what is measured, and its tables."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tools.bench import cli, triton_compile
from tools.bench.case import Problem, example
from tools.bench.compile_time import (
    PROCESS,
    PTXAS,
    TOTAL,
    Timing,
    compile_warm,
    default_programs,
    label,
    overview,
)
from tools.bench.registry import all_cases
from tools.bench.spread import Spread
from tools.bench.triton_language import is_installed

SAXPY = example("saxpy_fp32.ph")


def test_the_steps_of_a_warm_compilation_add_up() -> None:
    timings = {one.step: one.seconds for one in compile_warm(SAXPY, "sm_80", 1)}
    total = timings.pop(TOTAL)
    assert {"frontend", "ph-assign-layouts", "ph-lower-to-ptx", "print"} <= timings.keys()
    assert sum(one.median for one in timings.values()) == pytest.approx(total.median)
    assert total.count == 1


def test_everything_is_measured_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triton_compile, "is_installed", lambda: False)
    path = tmp_path / "times.csv"
    arguments = ["compile-time", str(SAXPY), "--repeats", "2", "--chip", "sm_75", "--steps"]
    assert cli.main([*arguments, "--csv", str(path)]) == 0
    out = capsys.readouterr().out
    assert "Compile times for sm_75" in out
    assert "ph-lower-to-ptx" in out
    with open(path, newline="") as text:
        rows = {row["step"]: row for row in csv.DictReader(text)}
    assert rows[TOTAL]["samples"] == "2"
    assert float(rows[PROCESS]["median_s"]) > float(rows[TOTAL]["median_s"])


def test_compilers_stand_side_by_side() -> None:
    def timing(compiler: str, step: str, median: float) -> Timing:
        return Timing("a.ph", compiler, step, Spread(median, median, median, 1))

    table = overview(
        [
            timing("phobos", TOTAL, 0.02),
            timing("triton", TOTAL, 0.06),
            timing("triton", PTXAS, 0.03),
        ],
        [],
        "sm_80",
    )
    cells = [list(column.cells) for column in table.columns]
    assert cells == [["a.ph"], ["20.00 ms"], ["-"], ["60.00 ms"], ["30.00 ms"]]


def test_a_kernel_that_a_peer_cannot_compile_does_not_end_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class CompilationError(Exception):
        pass

    def compile_in_triton(problem: Problem, chip: str, repeats: int) -> dict[str, list[float]]:
        if problem.case.name == "copy":
            raise CompilationError("at 1:0:\ndef kernel(\n^\nno fp8 on this chip\n")
        return {TOTAL: [0.5] * repeats, PTXAS: [0.25] * repeats}

    copy = example("copy2d.ph")
    problems = {
        path.resolve(): Problem(all_cases()[name], "f32", (64,))
        for path, name in ((copy, "copy"), (SAXPY, "saxpy"))
    }
    monkeypatch.setattr(triton_compile, "kernels_by_example", lambda: problems)
    monkeypatch.setattr(triton_compile, "compile_in_triton", compile_in_triton)
    path = tmp_path / "times.csv"
    arguments = ["compile-time", str(copy), str(SAXPY), "--repeats", "1", "--csv", str(path)]
    assert cli.main(arguments) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    (failed,) = [line for line in lines if line.startswith("copy2d.ph")]
    assert failed.endswith("failed: CompilationError -")
    (other,) = [line for line in lines if line.startswith("saxpy_fp32.ph")]
    assert other.endswith("500.0 ms 250.0 ms")
    assert "triton on copy2d.ph: CompilationError: no fp8 on this chip" in lines
    with open(path, newline="") as text:
        notes = {row["program"]: row["note"] for row in csv.DictReader(text) if row["note"]}
    assert notes == {"copy2d.ph": "failed: CompilationError: no fp8 on this chip"}


def test_a_missing_program_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compile-time", "nowhere.ph"]) == 1
    assert capsys.readouterr().err == "error: there is no file nowhere.ph\n"


def test_a_wrong_program_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.ph"
    path.write_text("kernel k(x: tensor<f32>[N]) { x[0] = y }")
    assert cli.main(["compile-time", str(path)]) == 1
    error = capsys.readouterr().err
    assert "`y`" in error
    assert "Traceback" not in error


def test_the_shipped_kernels_are_measured_too() -> None:
    examples = default_programs(with_kernels=False)
    programs = default_programs(with_kernels=True)
    assert set(examples) < set(programs)
    labels = [label(path) for path in programs]
    assert len(set(labels)) == len(labels)
    assert {"softmax.ph", "gemm_fp32.ph", "kernels/gemm_fp32.ph"} <= set(labels)


def test_without_triton_there_are_no_equivalents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_compile, "is_installed", lambda: False)
    assert triton_compile.kernels_by_example() == {}


@pytest.mark.skipif(not is_installed(), reason="Triton is not installed")
def test_triton_is_timed_without_a_gpu() -> None:
    problem = triton_compile.kernels_by_example()[SAXPY]
    samples = triton_compile.compile_in_triton(problem, "sm_80", 2)
    assert len(samples[TOTAL]) == len(samples[PTXAS]) == 2
    assert min(samples[TOTAL] + samples[PTXAS]) > 0
