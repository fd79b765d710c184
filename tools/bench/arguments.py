"""The command line of `python -m tools.bench`."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path

from phobos.cli.tool import named_integer
from phobos.targets.ptx.chips import CHIPS
from phobos.targets.ptx.contract import TYPE_BYTES
from tools.bench.entrants import Contender

_DESCRIPTION = "Measure Phobos kernels against PyTorch and Triton on this machine's GPU."
_EPILOG = """\
Every contender runs on the same arrays in one process, in turns; results are checked first.
The ratio is the faster peer's time over Phobos': above 1, Phobos is the fastest.

  python -m tools.bench compile-time     measures compilation instead (see its --help)
  python -m tools.bench report           makes Markdown of CSV files (see its --help)

Exit codes: 0; 1 if something of Phobos failed or was wrong, or nothing can be measured here;
2 if the command line is wrong."""

COMPILE_TIME = "compile-time"
REPORT = "report"

ROUNDS, BRIEF_ROUNDS = 50, 20
SECONDS, BRIEF_SECONDS = 5, 2

_MAX_EXTENT = 1 << 40
_MAX_EXPONENT = 64


def size(text: str) -> tuple[int, ...]:
    """A size such as `8192x8192` or `2^28`."""
    return tuple(_extent(part, text) for part in text.split("x"))


def _extent(part: str, text: str) -> int:
    base, caret, exponent = part.partition("^")
    if not base.isdecimal() or (caret and not exponent.isdecimal()):
        message = f"`{part}` is not an extent such as 8192 or 2^28, in {text!r}"
        raise argparse.ArgumentTypeError(message)
    extent = int(base) ** min(int(exponent), _MAX_EXPONENT) if caret else int(base)
    if not 1 <= extent <= _MAX_EXTENT:
        raise argparse.ArgumentTypeError(f"an extent is from 1 to 2^40, and `{part}` is not")
    return extent


def sizes(text: str) -> list[tuple[int, ...]]:
    """Sizes, separated by commas."""
    return [size(part) for part in text.split(",")]


def dtypes(text: str) -> list[str]:
    """Types of the language, separated by commas."""
    return [_one_of(part, TYPE_BYTES, "type") for part in text.split(",")]


def chips(text: str) -> list[str]:
    """Chips that Phobos compiles for, separated by commas."""
    return [_one_of(part, CHIPS, "chip") for part in text.split(",")]


def contenders(text: str) -> list[Contender]:
    """Contenders, separated by commas."""
    return [Contender(_one_of(part, list(Contender), "contender")) for part in text.split(",")]


def _one_of(text: str, known: Collection[str], what: str) -> str:
    if text not in known:
        raise argparse.ArgumentTypeError(
            f"there is no {what} `{text}`; there are {', '.join(known)}"
        )
    return text


def positive(text: str) -> int:
    """An integer from 1 on."""
    return _integer_from(1, text)


def natural(text: str) -> int:
    """An integer from 0 on."""
    return _integer_from(0, text)


def _integer_from(least: int, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number from {least} on")
    return value


def make_parser() -> argparse.ArgumentParser:
    """The command line of the benchmarks of kernels."""
    parser = argparse.ArgumentParser(
        "python -m tools.bench",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "cases", nargs="*", metavar="CASE",
        help="what to measure; `memory` and `arithmetic` are all that these limit, `all` is both",
    )  # fmt: skip
    add("--list", action="store_true", help="show the cases, and do nothing else")
    add(
        "--size", dest="sizes", type=sizes, action="extend", default=[], metavar="SIZE[,SIZE...]",
        help="sizes in place of the case's own, such as 2^28 or 8192x8192",
    )  # fmt: skip
    add(
        "--dtype", dest="dtypes", type=dtypes, action="extend", default=[],
        metavar="TYPE[,TYPE...]", help="types in place of all that the case has",
    )  # fmt: skip
    add(
        "--contender", dest="contenders", type=contenders, action="extend", default=[],
        metavar="NAME[,NAME...]", help=f"who takes part: {', '.join(Contender)} (default all)",
    )  # fmt: skip
    add("--chip", metavar="CHIP", help="what Phobos compiles for (default: the GPU's chip)")
    add(
        "--older", type=chips, action="extend", default=[], metavar="CHIP[,CHIP...]",
        help="time Phobos' best candidate compiled for these chips too, against its own time",
    )  # fmt: skip
    add(
        "--no-tensor-maps", dest="tensor_maps", action="store_false",
        help="compile Phobos' kernels for copies without tensor maps, also where the chip has them",
    )  # fmt: skip
    add(
        "--set", dest="constants", type=named_integer, action="append", default=[],
        metavar="NAME=VALUE", help="a constant of Phobos' kernel in place of those tried",
    )  # fmt: skip
    add(
        "--rounds", type=positive,
        help=f"samples of each finalist (default {ROUNDS}, with --brief {BRIEF_ROUNDS})",
    )  # fmt: skip
    add(
        "--seconds", type=positive,
        help="how long the search for the best candidates of a problem may take, and as long the "
        f"contest between them (default {SECONDS}, with --brief {BRIEF_SECONDS})",
    )  # fmt: skip
    add("--brief", action="store_true", help="as few samples as still give a median and its spread")
    add("--seed", type=int, default=0, help="where the random data starts (default 0)")
    add(
        "--timeout", type=positive, default=180, metavar="SECONDS",
        help="give up on a case at one size and type after this long (default 180)",
    )  # fmt: skip
    add(
        "--within", type=positive, metavar="SECONDS",
        help="begin with no further case after this long, and say which were left out; cases are "
        "measured in the order in which they are named",
    )  # fmt: skip
    add(
        "--ahead", type=natural, metavar="PROCESSES",
        help="compile all candidates in this many processes before anything is measured "
        "(default: one for each core; 0: each one when its turn comes)",
    )  # fmt: skip
    add("--csv", type=Path, metavar="FILE", help="write every measurement to a CSV file")
    add("--plot", type=Path, metavar="FILE", help="draw a roofline to a .png or .svg file")
    add("--candidates", action="store_true", help="show all candidates, not the best alone")
    return parser


def make_compile_time_parser() -> argparse.ArgumentParser:
    """The command line of the benchmark of compile times."""
    parser = argparse.ArgumentParser(
        f"python -m tools.bench {COMPILE_TIME}",
        description=(
            "Measure how long compiling takes: in a warm process step by step, as a "
            "whole process, and in Triton for the kernels that it has. Needs no GPU."
        ),
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "programs", nargs="*", type=Path, metavar="FILE.ph",
        help="programs (default: all of examples/ and phobos/kernels/)",
    )  # fmt: skip
    add("--repeats", type=positive, default=11, help="compilations of each (default 11)")
    add("--chip", default="sm_80", help="the chip to compile for (default sm_80)")
    add("--csv", type=Path, metavar="FILE", help="write the medians to a CSV file")
    add("--steps", action="store_true", help="show the time of every step of Phobos' compiler")
    add(
        "--growth", action="store_true",
        help="show instead how the time grows when a kernel's body is repeated up to 16 times",
    )  # fmt: skip
    return parser


def make_report_parser() -> argparse.ArgumentParser:
    """The command line of the report."""
    parser = argparse.ArgumentParser(
        f"python -m tools.bench {REPORT}",
        description="Print the measurements of CSV files as Markdown tables, in microseconds.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "files", nargs="+", type=Path, metavar="FILE.csv",
        help="what --csv wrote; of a problem in several files, the last one counts",
    )  # fmt: skip
    add(
        "--into", type=Path, metavar="FILE.md",
        help="put the lines into the tables of this document that have the same head instead",
    )  # fmt: skip
    return parser
