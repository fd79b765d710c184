"""Compile options: the one record that says how a source is compiled, and the cache's key."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict

from phobos.diagnostics import PhobosError
from phobos.driver.fingerprint import compiler_fingerprint
from phobos.record import Value, record
from phobos.targets.ptx.contract import ChipSource

EXTENT_MULTIPLES = (1, 2, 4, 8, 16)
INDEX_WIDTHS = (32, 64)
DEFAULT_CHIP = "sm_80"
CHIP_VARIABLE = "PHOBOS_CHIP"


@record
class CompileOptions(Value):
    """How to compile a source. `make_options` checks and fills in what callers leave out.

    Attributes:
        chip: the chip that the PTX is for, such as `sm_80`.
        chip_from: where that choice came from.
        constants: values for `@autotune` names, sorted by name.
        kernel: the one kernel to compile, or None for all.
        index_bits: 32 or 64, or None for what the source needs.
        extent_multiple: what divides every extent that a launch decides.
        extent_multiples: dims, sorted, with what divides their extents in place of that.
        check_bounds: whether an access outside its tensor traps.
        assertions: whether `assert` and `print` are kept.
        line_info: whether the PTX names source lines.
        tensor_maps: whether kernels may take tensor maps as further parameters of their entries,
            on chips that copy by them; see `TensorMap`.
    """

    chip: str = DEFAULT_CHIP
    chip_from: ChipSource = ChipSource.DEFAULT
    constants: tuple[tuple[str, int | float], ...] = ()
    kernel: str | None = None
    index_bits: int | None = None
    extent_multiple: int = 4
    extent_multiples: tuple[tuple[str, int], ...] = ()
    check_bounds: bool = False
    assertions: bool = False
    line_info: bool = False
    tensor_maps: bool = False

    def key(self, text: str, name: str) -> str:
        """A digest that differs whenever the compiled result may: 64 hexadecimal digits.

        `name` is the source's name, which stands in the contract and in line information.
        """
        parts = [compiler_fingerprint(), asdict(self), name, text]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def make_options(
    *,
    chip: str | None = None,
    constants: Mapping[str, int | float] | None = None,
    kernel: str | None = None,
    index_bits: int | None = None,
    extent_multiple: int = 4,
    extent_multiples: Mapping[str, int] | None = None,
    check_bounds: bool = False,
    assertions: bool = False,
    line_info: bool = False,
    tensor_maps: bool = False,
) -> CompileOptions:
    """Checked options; see `CompileOptions`. Without a chip the environment decides.

    Raises PhobosError if a value is none that the compiler takes.
    """
    name, source = resolve_chip(chip)
    named = tuple(sorted((extent_multiples or {}).items()))
    if extent_multiple not in EXTENT_MULTIPLES:
        raise _not_one_of("extent multiple", extent_multiple, EXTENT_MULTIPLES)
    for dim, multiple in named:
        if multiple not in EXTENT_MULTIPLES:
            raise _not_one_of(f"extent multiple of `{dim}`", multiple, EXTENT_MULTIPLES)
    if index_bits is not None and index_bits not in INDEX_WIDTHS:
        raise _not_one_of("index width", index_bits, INDEX_WIDTHS)
    return CompileOptions(
        chip=name,
        chip_from=source,
        constants=tuple(sorted(_checked_constants(constants or {}))),
        kernel=kernel,
        index_bits=index_bits,
        extent_multiple=extent_multiple,
        extent_multiples=named,
        check_bounds=check_bounds,
        assertions=assertions,
        line_info=line_info,
        tensor_maps=tensor_maps,
    )


def resolve_chip(option: str | None) -> tuple[str, ChipSource]:
    """The chip to compile for, and where it comes from.

    In this order: the option, the variable PHOBOS_CHIP, the newest supported chip that the
    machine's GPU runs, sm_80. Raises PhobosError if the option or the variable names no chip.
    """
    from phobos.targets.ptx.chips import chip, newest_chip_for

    if option is not None:
        return chip(option).name, ChipSource.OPTION
    variable = os.environ.get(CHIP_VARIABLE)
    if variable:
        try:
            return chip(variable).name, ChipSource.ENVIRONMENT
        except PhobosError as error:
            diagnostic = error.diagnostics[0]
            message = f"the environment variable {CHIP_VARIABLE}: {diagnostic.message}"
            raise PhobosError.at(None, message, help=diagnostic.help) from error
    from phobos.runtime.detect import gpu_capability

    capability = gpu_capability()
    newest = None if capability is None else newest_chip_for(capability)
    if newest is not None:
        return newest.name, ChipSource.GPU
    return DEFAULT_CHIP, ChipSource.DEFAULT


def _checked_constants(constants: Mapping[str, int | float]) -> list[tuple[str, int | float]]:
    pairs: list[tuple[str, int | float]] = []
    for name, value in constants.items():
        # NumPy's numbers are turned into Python's, which JSON and the IR know.
        number = value.item() if hasattr(value, "item") else value  # pyright: ignore[reportAttributeAccessIssue]
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise PhobosError.at(
                None, f"the constant `{name}` must be a number, not a {type(value).__name__}"
            )
        pairs.append((name, number))
    return pairs


def _not_one_of(what: str, value: object, known: tuple[int, ...]) -> PhobosError:
    return PhobosError.at(
        None, f"the {what} cannot be {value}", help=f"it is one of {', '.join(map(str, known))}"
    )
