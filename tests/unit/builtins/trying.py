"""Compile a kernel, run it on the emulator with all checks, and compare it with NumPy.

The tests of the built-ins say nothing of the device: tests/gpu runs them on a GPU.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import phobos
from phobos.diagnostics import PhobosError
from phobos.frontend import FrontendOptions, parse, to_ir
from phobos.runtime.emulator_device import EmulatorDevice
from phobos.runtime.module import Module
from phobos.targets.ptx.assembler import assemble, find_ptxas
from tests.support.cases import Arrays, Case, Reference, run_case
from tools.variants import Variant, variant_for

CHIPS = ("sm_75", "sm_90")
"""The poorest chip and a rich one; what differs between those in between has tests of its own."""

_gpu: ContextVar[bool] = ContextVar("gpu", default=False)


@contextmanager
def on_gpu() -> Iterator[None]:
    """Lets `check` run kernels on the GPU while the context lasts."""
    token = _gpu.set(True)
    try:
        yield
    finally:
        _gpu.reset(token)


_HEADER = re.compile(r"^\.(version|target).*\n", re.MULTILINE)


def compiled(
    source: str, chip: str = "sm_80", index_bits: int = 32, extents: Mapping[str, int] | None = None
) -> Module:
    """A program as a module of the runtime; what is doubtful about it is meant.

    With `extents`, as a launch with these has it on the emulator.
    """
    variant: Variant = {"extent_multiple": 4, "extent_multiples": {}}
    if extents is not None:
        variant = variant_for(parse(source, "test.ph"), extents)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", phobos.PhobosWarning)
        return phobos.compile(
            source,
            chip=chip,
            index_bits=index_bits,
            name="test.ph",
            cache=False,
            line_info=extents is not None,
            tensor_maps=None if extents is None else True,
            **variant,
        )


def check(
    source: str,
    reference: Reference,
    dims: Iterable[Mapping[str, int]],
    *,
    scalars: Mapping[str, float] | None = None,
    grid: tuple[int, ...] = (1,),
    chips: Sequence[str] = CHIPS,
    widths: Sequence[int] = (32,),
    relative: float = 1e-6,
    absolute: float = 1e-6,
    prepare: Callable[[Arrays], None] | None = None,
) -> None:
    """The kernel of `source` must write what the reference says, for all extents in `dims`.

    Texts of two chips that differ in the header alone are run once.
    """
    seen: set[str] = set()
    cases = [
        Case(reference, extents, scalars or {}, grid, relative, absolute, seed, prepare)
        for seed, extents in enumerate(dims)
    ]
    for chip in chips:
        for width in widths:
            module = compiled(source, chip, width, cases[0].dims)
            text = _HEADER.sub("", module.ptx)
            if text in seen:
                continue
            seen.add(text)
            assembles(module.ptx, chip)
            (kernel,) = module.contract.kernels
            for case in cases:
                emulator = EmulatorDevice(seed=case.seed, checks="all")
                run_case(module, kernel.name, case, "cuda" if _gpu.get() else emulator)


def assembles(ptx: str, chip: str) -> None:
    """ptxas, where there is one, takes the text without a warning."""
    try:
        find_ptxas()
    except PhobosError:
        return
    assert assemble(ptx, chip).warnings == ()


def message(source: str) -> str:
    """The first line of what the front end says to a wrong program."""
    try:
        to_ir(source, "test.ph", FrontendOptions())
    except PhobosError as error:
        return str(error).splitlines()[0]
    raise AssertionError("the program is not refused")
