"""`phobos-compile`: compiles a `.ph` program to PTX and its launch contract."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import phobos
from phobos.cli.tool import (
    ALL_GROUPS,
    STANDARD,
    Reporter,
    fatal_group,
    hidden_group,
    leave,
    named_number,
    of_command_line,
    read_text,
)
from phobos.diagnostics import WARNING_GROUPS
from phobos.driver.levels import CACHED_LEVELS, EXPLAINED_LEVELS, Level
from phobos.driver.options import EXTENT_MULTIPLES, INDEX_WIDTHS

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from phobos.driver.options import CompileOptions

_DESCRIPTION = "Compile a .ph program to PTX, with a launch contract (JSON) beside it."
_EPILOG = """\
Without -o the PTX goes to FILE.ptx and the contract to FILE.json; levels of the IR go to
standard output. The chip is --chip, else $PHOBOS_CHIP, else the newest supported one that the
machine's GPU runs, else sm_80; the contract says which it was.
Exit codes: 0; 1 if the program is wrong; 2 if the command line is."""


def make_parser() -> argparse.ArgumentParser:
    """The command line of `phobos-compile`."""
    parser = argparse.ArgumentParser(
        "phobos-compile",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE", help="the program; - reads standard input")
    add("-o", dest="output", metavar="OUT", help="where to write; - is standard output")
    add("--chip", metavar="CHIP", help="the chip to compile for, such as sm_80; `list` shows all")
    add("--index-bits", type=int, choices=INDEX_WIDTHS, help="width of index arithmetic")
    add(
        "--set", dest="constants", action="append", default=[], type=named_number,
        metavar="NAME=VALUE", help="the value of an @autotune constant; may be repeated",
    )  # fmt: skip
    add("--kernel", metavar="NAME", help="compile this kernel alone")
    add(
        "--extent-multiple", dest="multiples", action="append", default=[], type=_multiple,
        metavar="[DIM=]NUMBER",
        help="what divides every extent read from the launch (default 4), or, by its name, that of "
        f"a dim: {', '.join(map(str, EXTENT_MULTIPLES))}; may be repeated",
    )  # fmt: skip
    add("--check-bounds", action="store_true", help="trap on an access outside its tensor")
    add("--assertions", action="store_true", help="keep `assert` and `print`")
    add("--line-info", action="store_true", help="name source lines in the PTX")
    add(
        "--tensor-maps", action="store_true",
        help="let kernels for sm_90 and newer take tensor maps, which the contract lists",
    )  # fmt: skip
    add(
        "--emit", choices=[level.value for level in Level], default=Level.PTX, metavar="LEVEL",
        help=f"what to write: {', '.join(Level)} (default ptx)",
    )  # fmt: skip
    add(
        "--explain", action="store_true",
        help="print what became of each kernel and why, with --emit cubin of its machine code too;"
        " files are written with -o alone",
    )  # fmt: skip
    add("--passes", metavar="PIPELINE", help="passes in place of the default ones")
    add("--print-pipeline", action="store_true", help="print the passes, as --passes takes them")
    add("--timing", action="store_true", help="print what each step took, to stderr")
    add("--verify-each", action="store_true", help="verify the module after every pass")
    add(
        "-W", dest="hidden", action="append", default=[], type=hidden_group, metavar="no-GROUP",
        help=f"do not show the warnings of a group ({', '.join(WARNING_GROUPS)}), which each names"
        " in [ ]; may be repeated",
    )  # fmt: skip
    add(
        "--werror", action="append", default=[], type=fatal_group, metavar="GROUP",
        help=f"make the warnings of a group errors, or `{ALL_GROUPS}`; may be repeated",
    )  # fmt: skip
    add("--diagnostics", choices=("text", "json"), default="text", help="the form of diagnostics")
    add("--debug", action="store_true", help="show the Python traceback of an error")
    add("--version", action="version", version=f"%(prog)s {phobos.__version__}")
    return parser


def main(args: Sequence[str] | None = None) -> int:
    """Run `phobos-compile` with `args`, or the process's own; returns the exit code.

    A wrong command line ends with SystemExit(2), as argparse has it.
    """
    parser = make_parser()
    given = parser.parse_args(args)
    is_complete = given.file is not None or given.print_pipeline or given.chip == "list"
    if not is_complete:
        parser.error("the following arguments are required: FILE")
    if given.explain and Level(given.emit) not in EXPLAINED_LEVELS:
        parser.error(f"--explain goes with --emit {' or '.join(EXPLAINED_LEVELS)}")
    if given.explain and given.output == STANDARD:
        parser.error("--explain prints to standard output; name a file with -o")
    reporter = Reporter(
        as_json=given.diagnostics == "json",
        debug=given.debug,
        hidden=given.hidden,
        fatal=given.werror,
    )
    if args is not None:
        return reporter.guard(lambda: _run(given, reporter))
    # A process that ends soon has no use for garbage collection.
    gc.disable()
    leave(reporter.guard(lambda: _run(given, reporter)))


def _run(given: argparse.Namespace, reporter: Reporter) -> None:
    if given.chip == "list":
        from phobos.driver.listing import chip_table

        print(chip_table())
        return
    options = _options(given)
    if given.print_pipeline:
        from phobos.driver.listing import pipeline_text

        print(pipeline_text(options))
        return
    if given.explain:
        _explain(given, options, reporter)
    else:
        _compile(given, options, reporter)


def _multiple(text: str) -> tuple[str | None, int]:
    """An extent multiple: for a dim, or for all others."""
    name, equals, number = text.rpartition("=")
    if number not in map(str, EXTENT_MULTIPLES) or (equals and not name.isidentifier()):
        known = ", ".join(map(str, EXTENT_MULTIPLES))
        raise argparse.ArgumentTypeError(
            f"invalid choice: {text} (choose from {known}, or one of them for a dim, as in N=16)"
        )
    return name or None, int(number)


def _options(given: argparse.Namespace) -> CompileOptions:
    from phobos.driver.options import make_options

    multiples = dict(given.multiples)
    with of_command_line():
        return make_options(
            chip=given.chip,
            constants=dict(given.constants),
            kernel=given.kernel,
            index_bits=given.index_bits,
            extent_multiple=multiples.pop(None, 4),
            extent_multiples=multiples,
            check_bounds=given.check_bounds,
            assertions=given.assertions,
            line_info=given.line_info,
            tensor_maps=given.tensor_maps,
        )


def _explain(given: argparse.Namespace, options: CompileOptions, reporter: Reporter) -> None:
    from phobos.driver.compilation import DEFAULT_LEVELS, compile_text
    from phobos.driver.outputs import place_outputs, write_outputs

    text, name = read_text(given.file)
    source = None if given.file == STANDARD else Path(given.file)
    level = Level(given.emit)
    outputs = () if given.output is None else place_outputs(source, given.output, level)
    passes = None if given.passes is None else _passes(given.passes)
    compilation = compile_text(
        text, name, options, levels={*DEFAULT_LEVELS, level}, passes=passes,
        verify_each=given.verify_each, explain=True,
    )  # fmt: skip
    reporter.refuse_warnings()
    write_outputs(outputs, compilation.levels)
    assert compilation.explanation is not None
    if given.diagnostics == "json":
        from phobos.explain.data import explanation_json

        print(explanation_json(compilation.explanation))
    else:
        from phobos.explain.text import explanation_text

        print(explanation_text(compilation.explanation), end="")
    if given.timing:
        print(compilation.timing_table(), file=sys.stderr)


def _compile(given: argparse.Namespace, options: CompileOptions, reporter: Reporter) -> None:
    from phobos.driver.outputs import place_outputs, write_outputs

    text, name = read_text(given.file)
    source = None if given.file == STANDARD else Path(given.file)
    outputs = place_outputs(source, given.output, Level(given.emit))
    levels = {output.level for output in outputs}
    is_watched = given.passes is not None or given.timing or given.verify_each or given.debug
    if not is_watched and levels <= CACHED_LEVELS:
        from phobos.driver.cached import compile_cached

        ptx, contract = compile_cached(text, name, options)
        reporter.refuse_warnings()
        write_outputs(outputs, {Level.PTX: ptx, Level.CONTRACT: contract.dumps()})
        return
    from phobos.driver.compilation import compile_text

    compilation = compile_text(
        text,
        name,
        options,
        levels=levels,
        passes=None if given.passes is None else _passes(given.passes),
        verify_each=given.verify_each,
    )
    reporter.refuse_warnings()
    write_outputs(outputs, compilation.levels)
    if given.timing:
        print(compilation.timing_table(), file=sys.stderr)


def _passes(text: str) -> tuple[ModulePass, ...]:
    from xdsl.universe import Universe

    from phobos.cli.pass_list import parse_passes

    with of_command_line():
        return parse_passes(text, Universe.get_multiverse().all_passes)


if __name__ == "__main__":
    sys.exit(main())
