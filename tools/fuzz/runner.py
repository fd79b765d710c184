"""Runs a generated program three ways and says where they differ."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

import phobos
from phobos.diagnostics import PhobosError
from phobos.emulator import DEFAULT_CHECKS
from phobos.emulator.errors import EmulatorError
from phobos.frontend import ast, parse
from phobos.runtime.device import Device
from phobos.runtime.emulator_device import EmulatorDevice
from tools.fuzz.evaluator import evaluate
from tools.fuzz.generator import Case
from tools.fuzz.memory import Memory
from tools.fuzz.scalars import Array
from tools.fuzz.values import Misuse, Undecided
from tools.variants import variant_for

Arguments = Mapping[str, Array | int | float | bool]
MOST_SHOWN = 6
_TENSOR_COPY = "cp.async.bulk.tensor"


class _Emulator(EmulatorDevice):
    """The emulator on programs without source lines, which are quicker to read."""

    wants_line_info: ClassVar[bool] = False


class Verdict(StrEnum):
    """What became of a program."""

    AGREED = "agreed"
    UNDECIDED = "undecided"
    DIFFERENT = "different"
    REFUSED = "refused"
    FAULTY = "faulty"
    MISUSED = "misused"
    CRASHED = "crashed"

    @property
    def is_good(self) -> bool:
        """Whether there is nothing to look into."""
        return self in (Verdict.AGREED, Verdict.UNDECIDED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict with what there is to say about it."""

    verdict: Verdict
    detail: str = ""
    by_tensor_copies: bool = False
    """Whether tensor copies brought tiles. Known of programs that agreed."""


def judge(case: Case, device: str = "emulator") -> Outcome:
    """Evaluates, compiles and launches a program and compares what the tensors hold.

    Verdicts: AGREED; UNDECIDED where the language leaves open what the program does; DIFFERENT;
    REFUSED by the compiler; FAULTY in the eyes of the emulator's checks; MISUSED where the
    evaluator finds a rule broken; CRASHED with a Python exception anywhere.
    """
    try:
        return _judge(case, device)
    except Undecided as reason:
        return Outcome(Verdict.UNDECIDED, str(reason))
    except Misuse as reason:
        return Outcome(Verdict.MISUSED, str(reason))
    except EmulatorError as error:
        return Outcome(Verdict.FAULTY, str(error))
    except PhobosError as error:
        return Outcome(Verdict.REFUSED, str(error))
    except Exception:
        return Outcome(Verdict.CRASHED, traceback.format_exc())


def _judge(case: Case, device: str) -> Outcome:
    program = parse(case.source, "fuzz.ph")
    arguments = used(program, case.arguments)
    with np.errstate(all="ignore"):
        expected = evaluate(program, arguments, case.grid, is_contracted=device == "cuda")
    written, ptx = launched(case, program, arguments, device)
    for name, memory in expected.items():
        found = written[name]
        assert isinstance(found, np.ndarray)
        difference = compare(name, memory, found)
        if difference:
            return Outcome(Verdict.DIFFERENT, difference)
    return Outcome(Verdict.AGREED, by_tensor_copies=_TENSOR_COPY in ptx)


def used(program: ast.Program, arguments: Arguments) -> Arguments:
    """The arguments that the kernel has a parameter for."""
    (kernel,) = program.kernels
    return {param.name: arguments[param.name] for param in kernel.params}


def launched(
    case: Case, program: ast.Program, arguments: Arguments, device: str
) -> tuple[Arguments, str]:
    """Copies of the arguments after a launch, and the PTX that was launched."""
    given = {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", phobos.PhobosWarning)
        # The variant that the launch will ask for, so that no other is compiled.
        module = phobos.compile(
            case.source,
            chip=case.chip if device == "emulator" else None,
            index_bits=case.index_bits,
            check_bounds=case.check_bounds,
            tensor_maps=case.tensor_maps,
            name="fuzz.ph",
            cache=False,
            **variant_for(program, _named_extents(program, arguments)),
        )
        (kernel,) = module.contract.kernels
        where: str | Device = device
        if device == "emulator":
            # Looking for races takes a while: in every other program.
            checks = "all" if case.seed % 2 else DEFAULT_CHECKS
            where = _Emulator(seed=case.seed % 3, checks=checks)
        module[kernel.name](**given, grid=case.grid, device=where)
    return given, module.ptx


def _named_extents(program: ast.Program, arguments: Arguments) -> dict[str, int]:
    """The extents that only a launch knows."""
    (kernel,) = program.kernels
    return {
        dim.name: extent
        for param in kernel.params
        if isinstance(param.type, ast.ShapedType)
        for dim, extent in zip(param.type.dims, np.shape(arguments[param.name]), strict=True)
        if isinstance(dim, ast.DimName)
    }


def compare(name: str, expected: Memory, found: Array) -> str:
    """What differs between two contents of a tensor; nothing if they agree."""
    got = Memory.of(expected.type, found).data
    is_equal = got == expected.data
    if got.dtype.kind == "f":
        is_equal |= np.isnan(got) & np.isnan(expected.data)
        with np.errstate(all="ignore"):
            is_equal |= np.abs(got - expected.data) <= expected.error
    is_equal |= np.isinf(expected.error)
    if np.all(is_equal):
        return ""
    places = np.argwhere(~is_equal)
    lines = [f"{name}: {len(places)} of {got.size} elements differ"]
    for place in places[:MOST_SHOWN]:
        at = tuple(place)
        bound = f" (at most {expected.error[at]:g} off)" if expected.error[at] else ""
        where = ", ".join(map(str, at))
        lines.append(f"  [{where}] is {got[at]!s}, expected {expected.data[at]!s}{bound}")
    return "\n".join(lines)
