"""`phobos-run` on the emulator: checks, schedules, counts, and what it says of faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from phobos.cli.run import main

RACE = """\
@launch(64)
kernel last(O: tensor<f32>[N]) {
  O[0] = f32(ctx.thread)
}
"""
PAST = RACE.replace("O[0]", "O[ctx.thread + 1]")
CLEAN = RACE.replace("O[0]", "O[ctx.thread]")


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def run_text(text: str, *options: str) -> tuple[int, str, str]:
        path = tmp_path / "k.ph"
        path.write_text(text)
        code = main([str(path), "--dim", "N=64", "--grid", "1", *options])
        out, err = capsys.readouterr()
        return code, out, err

    return run_text


def test_a_race_exits_1_and_points_at_the_line(run) -> None:
    code, _, err = run(RACE, "--check", "race")
    assert code == 1
    first, second, *_ = err.splitlines()
    assert "k.ph:3:8: error: race: kernel `last`" in first
    assert "O[0] = f32(ctx.thread)" in second


def test_an_access_past_the_end_exits_1(run) -> None:
    code, _, err = run(PAST, "--check", "bounds,align")
    assert code == 1
    assert "k.ph:3:21: error: out of bounds" in err.splitlines()[0]
    assert "thread (63, 0, 0) writes" in err.splitlines()[0]


def test_schedules_that_differ_are_told_with_the_element(run) -> None:
    code, _, err = run(RACE, "--seeds", "8")
    assert code == 1
    assert "race: the result depends on the schedule: 1 of 64 elements of `O`" in err
    assert "O[0] is " in err


@pytest.mark.parametrize("checks", ["all", "race,bounds, init", "overflow"])
def test_a_clean_kernel_passes_under_many_schedules(run, checks: str) -> None:
    code, out, err = run(CLEAN, "--check", checks, "--seeds", "5", "--schedule-seed", "3")
    assert (code, err) == (0, "")
    assert "5 schedules gave the same results" in out
    assert "min 0, max 63" in out


def test_the_profile_counts_each_line_of_the_source(run) -> None:
    code, out, _ = run(CLEAN, "--profile")
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("k.ph:3 ")]
    assert line.endswith("O[ctx.thread] = f32(ctx.thread)")
    assert line.split()[-5:-3] == ["100", "%"]
    assert any(line.startswith("total") for line in out.splitlines())


def test_an_unknown_check_is_told_with_the_nearest(run) -> None:
    code, _, err = run(CLEAN, "--check", "rcae")
    assert code == 2
    assert "there is no check `rcae`" in err
    assert "did you mean `race`?" in err


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--seeds", "0"], "at least 1 schedule"),
        (["--schedule-seed", "-1"], "cannot be negative"),
        (["--profile", "--device", "cuda"], "leave --device cuda out"),
    ],
)
def test_wrong_options_exit_2(
    run, capsys: pytest.CaptureFixture[str], options: list[str], part: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        run(CLEAN, *options)
    assert caught.value.code == 2
    assert part in capsys.readouterr().err
