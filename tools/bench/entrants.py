"""Who takes part in a contest: every candidate of every contender, and how each is launched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from tools.bench.case import Choices, PhobosKernel, Problem, Values
from tools.bench.machine import Machine
from tools.variants import variant_for

_MAX_INDEX32 = 2**31 - 1


class Contender(StrEnum):
    """Who computes a case. All but Phobos are its peers."""

    PHOBOS = "phobos"
    TORCH = "torch"
    TRITON = "triton"


Run = Callable[[Values], object]
"""Queues one run on some values."""


@dataclass(frozen=True)
class Entrant:
    """One candidate of a contender.

    `prepare` compiles and gives what launches it; it raises if that cannot be done. `chip` is what
    it is compiled for, None for the machine's own; `for_chip` gives the same candidate compiled
    for another, which only Phobos has.
    """

    contender: Contender
    choices: str
    prepare: Callable[[], Run]
    chip: str | None = None
    for_chip: Callable[[str], Entrant] | None = None


@dataclass(frozen=True)
class Selection:
    """Which candidates take part.

    Attributes:
        contenders: the contenders.
        chip: the chip that Phobos compiles for; None for the machine's own.
        older: chips for which Phobos' candidates are compiled too; the best of each takes part.
        constants: values for Phobos' constants in place of those that the case tries.
        tensor_maps: whether Phobos' kernels may take tensor maps, on chips that have them.
    """

    contenders: tuple[Contender, ...] = tuple(Contender)
    chip: str | None = None
    older: tuple[str, ...] = ()
    constants: tuple[tuple[str, int], ...] = ()
    tensor_maps: bool = True


def entrants(problem: Problem, machine: Machine, selection: Selection) -> list[Entrant]:
    """The candidates for a problem, contender by contender."""
    makers = {
        Contender.PHOBOS: _phobos_entrants,
        Contender.TORCH: _torch_entrants,
        Contender.TRITON: _triton_entrants,
    }
    return [
        entrant
        for contender in selection.contenders
        for entrant in makers[contender](problem, machine, selection)
    ]


def _label(choices: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in choices.items())


# Phobos ------------------------------------------------------------------------------------------


def _phobos_entrants(problem: Problem, machine: Machine, selection: Selection) -> Iterator[Entrant]:
    first = problem.case.phobos
    for kernel in (first, *first.others):
        for constants in _candidates(kernel, dict(selection.constants)):
            for ctas in (None, *kernel.ctas_per_multiprocessor):
                grid = None if ctas is None else (ctas * machine.multiprocessors, 1, 1)
                shown = constants if ctas is None else {**constants, "CTAs/SM": ctas}
                yield _phobos_entrant(
                    " ".join(filter(None, (kernel.label, _label(shown)))),
                    partial(
                        _phobos_run,
                        problem,
                        machine,
                        kernel,
                        constants,
                        grid,
                        tensor_maps=selection.tensor_maps,
                    ),
                    selection.chip or kernel.chip,
                )


def _phobos_entrant(
    choices: str, run_for: Callable[[str | None], Run], chip: str | None
) -> Entrant:
    return Entrant(
        Contender.PHOBOS,
        choices,
        partial(run_for, chip),
        chip,
        partial(_phobos_entrant, choices, run_for),
    )


def _candidates(kernel: PhobosKernel, fixed: Choices) -> list[Choices]:
    """The case's candidates with some constants fixed, each once."""
    candidates: list[Choices] = []
    for candidate in kernel.search:
        candidate = {**candidate, **fixed}
        if candidate not in candidates:
            candidates.append(candidate)
    return candidates


def _phobos_run(
    problem: Problem,
    machine: Machine,
    kernel: PhobosKernel,
    constants: Choices,
    grid: tuple[int, int, int] | None,
    chip: str | None,
    *,
    tensor_maps: bool,
) -> Run:
    import phobos
    from phobos.driver.sources import read_source
    from phobos.frontend import parse

    source = kernel.source(problem.dtype)
    program = parse(read_source(source) if isinstance(source, Path) else source, "kernel")
    # Compiled as the launch wants it, so that it does not compile it again.
    extents = {name: size for name, size in problem.extents.items() if name not in constants}
    module = phobos.compile(
        source,
        chip,
        constants,
        tensor_maps=tensor_maps,
        **variant_for(program, extents, kernel.kernel),
    )
    launcher = module[kernel.kernel]
    names = [parameter.name for parameter in launcher.contract.parameters]

    def run(values: Values) -> object:
        return launcher(*(getattr(values, name) for name in names), grid=grid)

    return _from_zero(problem, machine, run)


def _from_zero(problem: Problem, machine: Machine, run: Run) -> Run:
    """The same run behind the clearing of what it adds to."""
    zeroed = problem.case.zeroed
    if not zeroed:
        return run

    def clear_and_run(values: Values) -> object:
        for name in zeroed:
            machine.clear(getattr(values, name))
        return run(values)

    return clear_and_run


# The peers ---------------------------------------------------------------------------------------


def _torch_entrants(problem: Problem, machine: Machine, _: Selection) -> Iterator[Entrant]:
    for label, call in problem.case.torch.items():

        def prepare(call: Callable[[Any, Values], object] = call) -> Run:
            return lambda values: call(machine.torch, values)

        yield Entrant(Contender.TORCH, label, prepare)


def _triton_entrants(problem: Problem, machine: Machine, selection: Selection) -> Iterator[Entrant]:
    from tools.bench.triton_language import is_installed

    kernel = problem.case.triton
    if kernel is None or not is_installed() or not _has_small_arrays(problem):
        return
    extents = problem.extents
    for choices in kernel.search:

        def prepare(choices: Choices = choices) -> Run:
            bound = kernel.function[kernel.grid(extents, choices)]

            def run(values: Values) -> object:
                known = {**extents, **vars(values)}
                return bound(*(known[name] for name in kernel.arguments), **choices)

            return _from_zero(problem, machine, run)

        yield Entrant(Contender.TRITON, _label(choices), prepare)


def _has_small_arrays(problem: Problem) -> bool:
    """Whether 32-bit offsets reach everything; the Triton kernels here use no others."""
    sizes = (math.prod(problem.shape(array)) for array in problem.case.arrays)
    return max(sizes) <= _MAX_INDEX32
