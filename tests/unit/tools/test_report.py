"""Measurements as Markdown: the tables, and what becomes of a document."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.tools.sample_results import ALL, OLDER, PEER_FAILED, SAXPY, TORCH, WRONG, timed
from tools.bench import cli
from tools.bench.case import Rate
from tools.bench.entrants import Contender
from tools.bench.results import CsvFile, Result, failure
from tools.bench.worker import Job

PRODUCT = replace(
    SAXPY, case="gemm", dtype="f16", size="64x32x16", rate_kind=Rate.FLOPS, flops=4_000_000
)
OTHER = replace(SAXPY, dtype="f16")
DOCUMENT = """\
# Speed

| case | type | size | Phobos | PyTorch | Triton | GB/s | ratio |
| --- | --- | --- | --- | --- | --- | --- | --- |
| saxpy | f32 | 1000000 | 9.0 | 9.0 | 9.0 | 1 | 1.000* |
| saxpy | bf16 | 1000000 | 9.0 | 9.0 | 9.0 | 1 | 1.000* |

| case | type |
| --- | --- |
| saxpy | f32 |
"""


def csv_of(path: Path, *problems: list[Result]) -> str:
    with CsvFile(path) as file:
        for results in problems:
            file.add(results)
    return str(path)


def test_tables_by_what_limits_a_case_and_for_older_chips(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = timed(PRODUCT, Contender.TORCH, "mm", 3e-6)
    path = csv_of(tmp_path / "a.csv", [WRONG, *ALL, OLDER, PEER_FAILED], [PRODUCT, peer])
    assert cli.main(["report", path]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "| case | type | size | Phobos | PyTorch | Triton | GB/s | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| saxpy | f32 | 1000000 | 4.0 | 5.0 | 4.4 | 3000 | 1.100 |",
        "",
        "| case | type | size | Phobos | PyTorch | Triton | TFLOP/s | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| gemm | f16 | 64 x 32 x 16 | 4.0 | 3.0 |  | 1.0 | 0.750 |",
        "",
        "| case | type | size | sm_75 |",
        "| --- | --- | --- | --- |",
        "| saxpy | f32 | 1000000 | 0.800 |",
    ]


def test_the_last_file_with_a_time_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = timed(SAXPY, Contender.PHOBOS, "BLOCK=64", 8e-6)
    first = csv_of(tmp_path / "a.csv", ALL)
    second = csv_of(tmp_path / "b.csv", [slower, TORCH])
    lost = csv_of(tmp_path / "c.csv", [failure(Job("saxpy", "f32", (1000000,)).problem(), "lost")])
    assert cli.main(["report", first, second, lost]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "| saxpy | f32 | 1000000 | 8.0 | 5.0 |  | 1500 | 0.625 |"


def test_a_document_gets_what_it_has_a_table_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = csv_of(tmp_path / "a.csv", [*ALL, OLDER], [OTHER])
    document = tmp_path / "speed.md"
    document.write_text(DOCUMENT)
    assert cli.main(["report", path, "--into", str(document)]) == 0
    new = "| saxpy | f32 | 1000000 | 4.0 | 5.0 | 4.4 | 3000 | 1.100 |"
    old = "| saxpy | bf16 | 1000000 | 9.0 | 9.0 | 9.0 | 1 | 1.000* |"
    added = "| saxpy | f16 | 1000000 | 4.0 |  |  | 3000 |  |"
    lines = DOCUMENT.splitlines()
    assert document.read_text().splitlines() == [*lines[:4], new, old, added, *lines[6:]]
    assert "has no table | case | type | size | sm_75 |" in capsys.readouterr().out


def test_another_csv_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    assert cli.main(["report", str(path)]) == 1
    assert capsys.readouterr().err == f"error: {path} is no CSV file of these benchmarks\n"
