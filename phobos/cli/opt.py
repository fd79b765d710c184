"""`phobos-opt`: runs passes on IR or on a `.ph` program and prints what they leave.

It is xDSL's optimiser driver with our manners: errors go to stderr under the text they are
about and end with exit code 1, timings and the modules between passes go to stderr too, and
stdout holds the result alone.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from io import BytesIO
from typing import IO, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass, PassPipeline
from xdsl.printer import Printer
from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.exceptions import (
    ArgSpecParseError,
    DiagnosticException,
    ParseError,
    ShrinkException,
)
from xdsl.utils.target import Target
from xdsl.xdsl_opt_main import xDSLOptMain  # noqa: TID251

from phobos.cli.pass_list import from_spec, full_name, parse_passes
from phobos.cli.tool import CommandLineError, Reporter, of_command_line
from phobos.diagnostics import PhobosError, SourceMap, did_you_mean, listening, render_all
from phobos.faults import diagnose, verify_located
from phobos.plugin import PhFrontend

_SPLIT_MARK = b"// -----"


class PhobosOptMain(xDSLOptMain):
    """The driver; after `run`, `exit_code` says how it went."""

    version_format = "phobos-opt, built on xDSL {xdsl_version}"

    def __init__(self, args: Sequence[str] | None = None) -> None:
        self.sources = SourceMap()
        self.stage = ""
        self.started = 0.0
        self.exit_code = 0
        self.shown: set[str] = set()
        self.timings: list[tuple[str, float]] = []
        super().__init__("Run passes on IR or on a .ph program and print the result.", args)

    # What the command line offers ----------------------------------------------------------------

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        """xDSL's arguments and ours."""
        super().register_all_arguments(arg_parser)
        arg_parser.add_argument(
            "--print-after",
            action="append",
            default=[],
            metavar="PASS",
            help="print the IR after this pass to stderr; may be given several times",
        )
        arg_parser.add_argument(
            "--verify",
            choices=("each", "ends", "none"),
            default="each",
            help="verify the module around each pass (default), at both ends only, or never",
        )
        arg_parser.add_argument(
            "--debug", action="store_true", help="show the Python traceback of an error"
        )

    def register_all_targets(self) -> None:
        """The targets of all packages, and `ptx` short for `ph-ptx`."""
        super().register_all_targets()
        self.available_targets["ptx"] = _short_ptx_target

    # Input ---------------------------------------------------------------------------------------

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        """The input and the name of the front end that reads it; `-` is standard input."""
        path = self.args.input_file
        if path in (None, "-"):
            return sys.stdin.buffer, self.args.frontend or "mlir"
        suffix = path.rpartition(".")[2] if "." in path else ""
        language = parse_spec(self.args.frontend).name if self.args.frontend else suffix
        if language not in self.available_frontends:
            known = ", ".join(f".{name}" for name in sorted(self.available_frontends))
            raise CommandLineError.at(
                None,
                f"cannot tell from its name what `{path}` is written in",
                help=f"known endings are {known}; -f NAME names the language",
            )
        return open(path, "rb"), language

    def get_input_name(self) -> str:
        """The name of the input in diagnostics."""
        return "<stdin>" if self.args.input_file in (None, "-") else self.args.input_file

    def read_chunks(self) -> tuple[list[tuple[bytes, int]], str]:
        """The pieces of the input, each with the number of lines before it, and the language."""
        stream, language = self.get_input_stream()
        with stream:
            data = stream.read()
        self.sources.add(self.get_input_name(), data.decode("utf-8", "replace"))
        if not self.args.split_input_file:
            return [(data, 0)], language
        chunks: list[tuple[bytes, int]] = []
        line = 0
        for chunk in data.split(_SPLIT_MARK):
            chunks.append((chunk, line))
            line += chunk.count(b"\n")
        return chunks, language

    def parse_chunk(
        self, chunk: IO[bytes], file_extension: str, start_offset: int = 0
    ) -> ModuleOp | None:
        """The module of one piece of the input; our own front end also records its spans."""
        spec = parse_spec(self.args.frontend or file_extension)
        if spec.name != PhFrontend.name:
            return super().parse_chunk(chunk, file_extension, start_offset)
        # Empty lines in front keep the line numbers of a later piece right.
        text = "\n" * start_offset + chunk.read().decode()
        with of_command_line():
            frontend = from_spec(PhFrontend, spec, "front end")
            frontend.check()
        return frontend.translate(text, self.get_input_name(), self.sources)

    # Passes --------------------------------------------------------------------------------------

    def setup_pipeline(self) -> None:
        """Make the passes of `-p`, with checks, printing and timing around each."""
        with of_command_line():
            passes = parse_passes(self.args.passes, self.available_passes)
        names = {one.name for one in passes}
        self.shown = {full_name(name, self.available_passes) for name in self.args.print_after}
        for name in sorted(self.shown - names):
            raise CommandLineError.at(
                None,
                f"--print-after: pass `{name}` is not run",
                help=did_you_mean(name, names),
            )
        self.pipeline = PassPipeline(passes, self.between_passes)
        self.check_target()

    def check_target(self) -> None:
        """Refuse wrong options of `-t` before any work is done."""
        spec = parse_spec(self.args.target)
        entry = self.available_targets[spec.name]
        if not signature(entry).parameters:  # else it is one of xDSL's that takes no options
            factory = cast(Callable[[], type[Target]], entry)
            with of_command_line():
                from_spec(factory(), spec, "target")

    def between_passes(
        self, previous: ModulePass | None, module: ModuleOp, following: ModulePass | None
    ) -> None:
        """Time, verify and print the module before the first, between and after the passes."""
        now = time.perf_counter()
        if previous is not None:
            self.timings.append((previous.name, now - self.started))
        self.stage = f"after pass `{previous.name}`" if previous else "in the input"
        at_end = previous is None or following is None
        policy = "none" if self.args.disable_verify else self.args.verify
        if policy == "each" or (policy == "ends" and at_end):
            verify_located(module)
        if previous is not None and self.is_printed_after(previous, is_last=following is None):
            print(f"// IR after {previous.name}:", file=sys.stderr)
            self.print_module(module, sys.stderr)
        if following is not None:
            self.stage = f"in pass `{following.name}`"
        self.started = time.perf_counter()

    def is_printed_after(self, one: ModulePass, *, is_last: bool) -> bool:
        """Whether the module is shown after a pass; the last one's is the result anyway."""
        return one.name in self.shown or (self.args.print_between_passes and not is_last)

    def print_module(self, module: ModuleOp, stream: IO[str]) -> None:
        """Print IR in the form that the `--print-...` options ask for."""
        Printer(
            stream=stream,
            print_generic_format=self.args.print_op_generic,
            print_debuginfo=self.args.print_debuginfo,
        ).print_op(module)
        print(file=stream)

    # The run -------------------------------------------------------------------------------------

    def run(self) -> None:
        """Process the input and write the result; `exit_code` is 1 if there was an error.

        The result is written once everything has succeeded, so a failed run leaves no half file.
        """
        chunks, language = self.read_chunks()
        results: list[str] = []
        for chunk, offset in chunks:
            try:
                with listening() as listener:
                    results.append(self.process(chunk, language, offset))
                if listener.diagnostics:
                    print(render_all(listener.diagnostics, self.sources), file=sys.stderr)
            except ShrinkException:
                if not self.args.shrink:
                    raise
                print("Success, can shrink")
                return
            except (Exception, ArgSpecParseError) as fault:
                text, is_wanted = self.describe(fault, offset)
                if is_wanted:
                    results.append(text + "\n")
                else:
                    self.exit_code = 2 if isinstance(fault, CommandLineError) else 1
                    print(text, file=sys.stderr)
        if self.exit_code == 0:
            self.write("// -----\n".join(results))
        self.report_timings()
        if self.args.shrink:
            print("Failure, can't shrink")
            self.exit_code = 1

    def process(self, chunk: bytes, language: str, offset: int) -> str:
        """The output for one piece of the input."""
        self.stage = "while reading the input"
        self.started = time.perf_counter()
        module = self.parse_chunk(BytesIO(chunk), language, offset)
        if module is None:
            return ""
        self.apply_passes(module)
        self.stage = f"while writing `{self.args.target}`"
        return self.output_resulting_program(module)

    def describe(self, fault: BaseException, offset: int) -> tuple[str, bool]:
        """The text of an error, and whether a `--...-diagnostics` option asked for it."""
        if self.args.debug:
            traceback.print_exception(fault)
        if isinstance(fault, ParseError):
            fault.span = replace(fault.span, line_offset=offset)
        is_reading = self.stage == "while reading the input"
        is_expected = isinstance(fault, PhobosError | DiagnosticException | ParseError)
        is_wanted = self.args.parsing_diagnostics if is_reading else self.args.verify_diagnostics
        error = diagnose(fault, self.stage)
        return str(error.with_sources(self.sources)), is_wanted and is_expected

    def write(self, text: str) -> None:
        """Write the result to the file that `-o` names, or to stdout."""
        if self.args.output_file in (None, "-"):
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        with open(self.args.output_file, "w", encoding="utf-8") as stream:
            stream.write(text)

    def report_timings(self) -> None:
        """Print what each pass took to stderr if that was asked for."""
        if not self.args.time_passes:
            return
        total = ("total", sum(seconds for _, seconds in self.timings))
        for name, seconds in (*self.timings, total):
            print(f"{1000 * seconds:9.2f} ms  {name}", file=sys.stderr)


def _short_ptx_target() -> type[Target]:
    from phobos.plugin import PtxTarget

    class ShortPtxTarget(PtxTarget):
        """The target `ph-ptx` under the name that needs no prefix here."""

        name = "ptx"

    return ShortPtxTarget


def main(args: Sequence[str] | None = None) -> int:
    """Run `phobos-opt` with `args`, or the process's own; returns the exit code.

    Wrong arguments end with SystemExit(2), as argparse has it.
    """
    reporter = Reporter(debug="--debug" in (sys.argv if args is None else args))
    exit_code = 0

    def body() -> None:
        nonlocal exit_code
        try:
            tool = PhobosOptMain(args)
            tool.run()
        except ArgSpecParseError as fault:  # not an Exception, so that nobody else would catch it
            raise CommandLineError(diagnose(fault).diagnostics) from None
        exit_code = tool.exit_code

    checked_construction = Attribute.__post_init__
    try:
        return reporter.guard(body) or exit_code
    finally:
        # xDSL's --disable-verify replaces this for the whole process.
        Attribute.__post_init__ = checked_construction
