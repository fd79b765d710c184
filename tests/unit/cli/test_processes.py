"""The installed commands, as processes: what only a real process shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(sys.executable).parent
EXAMPLE = str(Path(__file__).parents[3] / "examples/scale.ph")


def run(*command: str, data: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPTS / command[0], *command[1:]],
        input=data,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("tool", ["phobos-compile", "phobos-opt", "phobos-run"])
def test_each_tool_explains_itself(tool: str) -> None:
    finished = run(tool, "--help")
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.startswith(f"usage: {tool} ")


def test_phobos_opt_reads_standard_input() -> None:
    finished = run("phobos-opt", "-f", "ph", data=Path(EXAMPLE).read_text())
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "tile.load" in finished.stdout


def test_an_error_goes_to_stderr_with_code_1() -> None:
    finished = run("phobos-opt", "-", data="func.func @f() {")
    assert (finished.returncode, finished.stdout) == (1, "")
    assert finished.stderr.startswith("<stdin>:1:17: error: ")


def test_a_reader_that_leaves_early_causes_no_traceback() -> None:
    """The output is larger than a pipe holds, and nobody reads it."""
    source = "func.func @f() {\n" + "  arith.constant 1 : i32\n" * 2500 + "  func.return\n}\n"
    writer = subprocess.Popen(
        [SCRIPTS / "phobos-opt", "--verify", "none"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.close()
    with writer.stdin as stream:
        stream.write(source)
    assert writer.stderr.read() == ""
    assert writer.wait() == 1
    writer.stderr.close()
