"""`phobos-run`: runs a kernel once and says what it wrote."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import phobos
from phobos.cli.tool import (
    Reporter,
    grid,
    named_extent,
    named_number,
    named_path,
    of_command_line,
    read_text,
)

if TYPE_CHECKING:
    from phobos.runtime.module import Module

_DESCRIPTION = "Run a kernel on a GPU, or on the emulator, and say what it wrote."
_EPILOG = """\
FILE is a .ph program, which is compiled for the run, or a .ptx file with its launch contract
beside it (FILE.json). Extents come from loaded arrays and --dim; tensors that are not loaded
hold random numbers, the same for the same --seed.
Exit codes: 0; 1 if the program or the launch is wrong; 2 if the command line is."""


def make_parser() -> argparse.ArgumentParser:
    """The command line of `phobos-run`."""
    parser = argparse.ArgumentParser(
        "phobos-run",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="a .ph program (- reads standard input) or a .ptx file")
    add("--kernel", metavar="NAME", help="the kernel, if the file has several")
    _add_repeated(parser, "--dim", "dims", named_extent, "NAME=N", "an extent, as in N=10000")
    _add_repeated(parser, "--set", "constants", named_number, "NAME=VALUE", "an @autotune constant")
    _add_repeated(parser, "--arg", "scalars", named_number, "NAME=VALUE", "a scalar argument")
    _add_repeated(parser, "--load", "loads", named_path, "NAME=FILE", "a tensor from a .npy file")
    _add_repeated(parser, "--save", "saves", named_path, "NAME=FILE", "a tensor to a .npy file")
    add("--grid", type=grid, metavar="X[,Y[,Z]]", help="the grid, if not the kernel's own")
    add(
        "--device", choices=("auto", "cuda", "emulator"), default="auto",
        help="where to run; auto is the GPU if there is one",
    )  # fmt: skip
    add("--chip", metavar="CHIP", help="the chip to compile for, such as sm_80")
    add("--assertions", action="store_true", help="keep the program's `assert` and `print`")
    add(
        "--no-tensor-maps", action="store_true",
        help="compile for copies without tensor maps, which kernels take where the chip has them",
    )  # fmt: skip
    add("--seed", type=int, default=0, help="of the random numbers (default 0)")
    add(
        "--check", type=_checks, metavar="CHECK[,...]",
        help="emulate, and look for bounds, align, init, divergence, async, race, overflow; "
        "all is all of them but overflow",
    )  # fmt: skip
    add("--schedule-seed", type=int, metavar="N", help="emulate with this order of CTAs and warps")
    add("--seeds", type=int, metavar="N", help="emulate N schedules and compare their results")
    add("--profile", action="store_true", help="emulate, and count what each line does")
    add("--time", action="store_true", help="time many launches and report the median")
    add("--diagnostics", choices=("text", "json"), default="text", help="the form of diagnostics")
    add("--debug", action="store_true", help="show the Python traceback of an error")
    add("--version", action="version", version=f"%(prog)s {phobos.__version__}")
    return parser


def _add_repeated(
    parser: argparse.ArgumentParser, flag: str, dest: str, type_: object, form: str, help: str
) -> None:
    parser.add_argument(
        flag,
        dest=dest,
        action="append",
        default=[],
        type=type_,  # pyright: ignore[reportArgumentType]
        metavar=form,
        help=f"{help}; may be repeated",
    )


def main(args: Sequence[str] | None = None) -> int:
    """Run `phobos-run` with `args`, or the process's own; returns the exit code.

    A wrong command line ends with SystemExit(2), as argparse has it.
    """
    parser = make_parser()
    given = parser.parse_args(args)
    if given.seed < 0:
        parser.error("argument --seed: it cannot be negative")
    if given.file.endswith(".ptx") and _compiles(given):
        parser.error(
            "--set, --chip, --assertions and --no-tensor-maps need the .ph program; "
            "the .ptx file is compiled already"
        )
    _check_emulation(parser, given)
    reporter = Reporter(as_json=given.diagnostics == "json", debug=given.debug)
    return reporter.guard(lambda: _run(given))


def _compiles(given: argparse.Namespace) -> bool:
    """Whether an option says how to compile."""
    return bool(given.constants or given.chip or given.assertions or given.no_tensor_maps)


def _checks(text: str) -> tuple[str, ...]:
    """The checks of a list with commas; which there are is the emulator's to say."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _check_emulation(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Refuse options of the emulator that are out of range or have no emulator to go to."""
    if given.schedule_seed is not None and given.schedule_seed < 0:
        parser.error("argument --schedule-seed: it cannot be negative")
    if given.seeds is not None and given.seeds < 1:
        parser.error("argument --seeds: at least 1 schedule is needed")
    if _emulates(given) and given.device == "cuda":
        parser.error(
            "--check, --schedule-seed, --seeds and --profile are the emulator's; "
            "leave --device cuda out"
        )


def _emulates(given: argparse.Namespace) -> bool:
    """Whether an option asks for the emulator, whatever devices there are."""
    numbers = (given.check, given.schedule_seed, given.seeds)
    return given.profile or any(number is not None for number in numbers)


def _run(given: argparse.Namespace) -> None:
    from phobos.runtime.extras import require_packages

    require_packages()
    if given.check is not None:
        from phobos.emulator import known_checks

        with of_command_line():
            known_checks(given.check)
    module = _module(given)
    from phobos.runtime.schedules import Emulation
    from phobos.runtime.trial import Trial, run_trial

    is_emulated = _emulates(given) or given.device == "emulator"
    emulation = Emulation(
        checks=given.check,
        seed=given.schedule_seed or 0,
        schedules=given.seeds or 1,
        profiles=given.profile,
    )

    trial = Trial(
        kernel=given.kernel,
        dims=dict(given.dims),
        scalars=dict(given.scalars),
        loads=dict(given.loads),
        saves=dict(given.saves),
        grid=given.grid,
        device=given.device,
        seed=given.seed,
        is_timed=given.time,
        emulation=emulation if is_emulated else None,
    )
    run_trial(module, trial, print)


def _module(given: argparse.Namespace) -> Module:
    if given.file.endswith(".ptx"):
        from phobos.runtime.module import Module

        return Module.from_files(Path(given.file))
    from phobos.driver.modules import compile_module
    from phobos.driver.options import make_options

    text, name = read_text(given.file)
    with of_command_line():
        options = make_options(
            chip=given.chip,
            constants=dict(given.constants),
            kernel=given.kernel,
            assertions=given.assertions,
        )
    return compile_module(text, name, options, tensor_maps=False if given.no_tensor_maps else None)


if __name__ == "__main__":
    sys.exit(main())
