"""phobos-opt: what goes where, and how wrong input ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.ir import Attribute

from tests.support.run_lines import Outcome, call_tool

ADD_ZERO = """\
func.func @add_zero(%x: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %sum = arith.addi %x, %zero : i32
  func.return %sum : i32
}
"""

NOT_VALID = """\
func.func @f(%x: i32) {
  %y = "arith.addi"(%x, %x) : (i32, i32) -> i64
  func.return
}
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "add_zero.mlir"
    path.write_text(ADD_ZERO)
    return str(path)


def opt(*arguments: str, data: str = "") -> Outcome:
    return call_tool("phobos-opt", arguments, data.encode())


def failure(*arguments: str, data: str | bytes = "", code: int = 1) -> str:
    """The message of a run that must fail as a user's mistake does."""
    raw = data if isinstance(data, bytes) else data.encode()
    outcome = call_tool("phobos-opt", arguments, raw)
    text = outcome.stderr.decode()
    assert outcome.code == code, text
    assert outcome.stdout == b""
    assert "Traceback" not in text
    assert "internal error" not in text
    assert "error: " in text
    return text


def test_stdout_holds_the_result_alone(source: str) -> None:
    outcome = opt(source, "-p", "canonicalize,cse", "--time-passes", "--print-between-passes")
    assert outcome.code == 0
    assert outcome.stdout.decode().startswith("builtin.module {")
    assert b"arith" not in outcome.stdout
    messages = outcome.stderr.decode()
    assert messages.count("// IR after") == 1
    assert messages.count(" ms  ") == 3
    assert messages.splitlines()[-1].endswith("total")


def test_reads_standard_input() -> None:
    assert opt(data=ADD_ZERO).stdout == opt("-", data=ADD_ZERO).stdout
    assert b"@add_zero" in opt(data=ADD_ZERO).stdout


def test_writes_a_file(source: str, tmp_path: Path) -> None:
    result = tmp_path / "result.mlir"
    assert opt(source, "-o", str(result)) == Outcome(0, b"", b"")
    assert "@add_zero" in result.read_text()


def test_a_failed_run_leaves_no_file(tmp_path: Path) -> None:
    result = tmp_path / "result.mlir"
    failure("-o", str(result), data=NOT_VALID)
    assert not result.exists()


def test_a_pass_may_be_named_without_our_prefix(source: str) -> None:
    assert opt(source, "-p", "infer-uniformity").code == 0
    assert opt(source, "-p", "ph-infer-uniformity").code == 0


def test_every_piece_of_a_split_input_is_checked() -> None:
    pieces = f"{NOT_VALID}// -----\n{ADD_ZERO}// -----\nfunc.func @g() {{"
    text = failure("--split-input-file", data=pieces)
    assert text.count("error: ") == 2
    assert "<stdin>:12:17:" in text
    assert (
        opt("--split-input-file", data=f"{ADD_ZERO}// -----\n{ADD_ZERO}").stdout.count(b"// -----")
        == 1
    )


def test_diagnostics_options_print_to_stdout_and_succeed() -> None:
    outcome = opt("--verify-diagnostics", data=NOT_VALID)
    assert (outcome.code, outcome.stderr) == (0, b"")
    assert b"error: `arith.addi` is not valid" in outcome.stdout
    outcome = opt("--parsing-diagnostics", data="func.func")
    assert (outcome.code, outcome.stderr) == (0, b"")
    assert b"<stdin>:1:10: error:" in outcome.stdout


def test_diagnostics_options_do_not_cover_each_other() -> None:
    assert "not valid" in failure("--parsing-diagnostics", data=NOT_VALID)
    assert "error:" in failure("--verify-diagnostics", data="func.func")


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        ("canonicalise", "did you mean `canonicalize`?"),
        ("canonicalize{", "cannot read the list of passes"),
        ("canonicalize cse", "cannot read the list of passes"),
        ("canonicalize{depth=3}", "wrong options for pass `ph-canonicalize`"),
        ("convert-memref-to-ptr{lower-func=maybe}", "its options are lower_func: bool"),
        ("canonicalize,,cse", "cannot read the list of passes"),
        ("$", "cannot read the list of passes"),
    ],
)
def test_wrong_pass_lists(source: str, passes: str, expected: str) -> None:
    assert expected in failure(source, "-p", passes, code=2)


def test_a_flag_option_needs_no_value() -> None:
    assert opt("-p", "convert-memref-to-ptr{lower-func}", data=ADD_ZERO).code == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["missing.mlir"], "cannot open `missing.mlir`: No such file or directory"),
        ([".", "-f", "mlir"], "cannot open `.`: Is a directory"),
        (["-", "-o", "/missing/result.mlir"], "cannot open `/missing/result.mlir`"),
        (["-", "-t", "ptx"], "error: "),
    ],
)
def test_wrong_files(arguments: list[str], expected: str) -> None:
    assert expected in failure(*arguments, data=ADD_ZERO)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["kernel.txt"], "cannot tell from its name what `kernel.txt` is written in"),
        (["kernel"], "cannot tell from its name"),
        (["-", "-t", "mlir{"], "cannot read the list of passes"),
        (["-", "-p", "cse", "--print-after", "csee"], "did you mean `cse`?"),
        (["-", "-t", "ptx{lines=true}"], "wrong options for target `ptx`"),
        (["-", "-f", "ph{chip=sm_80}"], "wrong options for front end `ph`"),
        (["-", "-f", "ph{extent-multiple=0}"], "error: "),
        (["-", "-f", "ph{set=BLOCK}"], "`BLOCK` does not set a constant"),
    ],
)
def test_wrong_arguments(arguments: list[str], expected: str) -> None:
    assert expected in failure(*arguments, data=ADD_ZERO, code=2)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("func.func @f( {", "<stdin>:1:15: error:"),
        ("x" * 500, "<stdin>:1:1: error:"),
        ('"unregistered.op"() : () -> ()', "is not registered"),
        ("func.func @f() {\n  %x = arith.addi %y, %y : i32\n  func.return\n}", "not defined: [%y"),
        ("func.func @f(%m: memref<2xf32>) {\n  %v = memref.load %m[] : memref<2xf32>\n"
         "  func.return\n}", "`memref.load` is not valid"),
        (NOT_VALID, "`arith.addi` is not valid"),
        ("func.func @f() {\n  %y = arith.addi %x, %x : i32\n  %x = arith.constant 1 : i32\n"
         "  func.return\n}", "which does not come before it on every path"),
        (b"\xff\xfe\x00module", "the input is not UTF-8 text: byte 0xff at offset 0"),
        ("func.func @f() {" + "scf.execute_region {" * 3000, "error: "),
        ("builtin.module attributes {a = " + "[" * 3000, "error: "),
    ],
)  # fmt: skip
def test_wrong_ir(data: str | bytes, expected: str) -> None:
    assert expected in failure(data=data)


def test_wrong_options_end_with_code_2() -> None:
    assert opt("--no-such-option").code == 2
    assert opt("-t", "no-such-target").code == 2
    assert opt("-p", "ph-lower-to-ptx{chip=sm_1}").code == 2


def test_debug_shows_the_traceback() -> None:
    outcome = opt("--debug", data=NOT_VALID)
    assert outcome.code == 1
    assert b"Traceback" in outcome.stderr


def test_verification_can_be_limited_to_the_ends(source: str) -> None:
    assert opt(source, "-p", "canonicalize,cse", "--verify", "ends").code == 0
    assert opt("--verify", "none", data=NOT_VALID).code == 0


def test_unchecked_construction_ends_with_the_run() -> None:
    before = Attribute.__post_init__
    assert opt("--disable-verify", data=NOT_VALID).code == 0
    assert Attribute.__post_init__ is before


def test_version_names_both_packages() -> None:
    outcome = opt("--version")
    assert outcome.code == 0
    assert outcome.stdout.decode().startswith("phobos-opt")


def test_the_front_end_takes_what_phobos_compile_takes() -> None:
    """Both drivers make the same PTX of the same program and options."""
    source = (
        "@autotune(B in [64, 256]) kernel twice(x: tensor<f32>[N], y: tensor<f32>[N]) "
        "{ y[ctx.block.x * B :+ B] = 2.0 * x[ctx.block.x * B :+ B] }"
    )
    options = 'ph{set="B=256" index-bits=64 extent-multiple=1}'
    ours = opt("-f", options, "-p", "default", "-t", "ptx", data=source)
    assert ours.code == 0, ours.stderr.decode()
    words = "- --chip sm_80 --set B=256 --index-bits 64 --extent-multiple 1 -o -".split()
    theirs = call_tool("phobos-compile", words, source.encode())
    assert ours.stdout == theirs.stdout
    assert b"v4" not in ours.stdout
