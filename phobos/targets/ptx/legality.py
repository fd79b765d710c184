"""Which instructions a chip and a PTX version have."""

from __future__ import annotations

from collections.abc import Sequence

from phobos.dialects.ptx.attributes import Parameter
from phobos.dialects.ptx.forms import OLDEST, Form, Version
from phobos.dialects.ptx.matrix import MMA_SHAPES, MmaShape
from phobos.targets.ptx.chips import CHIPS, Chip

MORE_PARAMETERS: Version = (8, 1)
"""The first version that takes more than `MAX_OLD_PARAMETER_BYTES` of kernel parameters."""

MAX_CLUSTER = 8
"""Blocks of a cluster that every chip with clusters takes."""

MAX_OLD_PARAMETER_BYTES = 4352
MAX_PARAMETER_BYTES = 32764


def chips_with(form: Form) -> tuple[Chip, ...]:
    """The supported chips that have a form.

    What sm_90 has sm_90a has, too, and does not say so again.
    """
    owners = [chip for chip in CHIPS.values() if chip.has(form.needs)]
    plain = {chip.number for chip in owners if not chip.is_exact}
    return tuple(chip for chip in owners if not chip.is_exact or chip.number not in plain)


def mma_shapes(chip: Chip) -> tuple[MmaShape, ...]:
    """The rows of the mma table that a chip has."""
    return tuple(shape for shape in MMA_SHAPES if chip.has(shape.needs))


def version_for(chip: Chip, needed: Version = OLDEST) -> Version:
    """The PTX version to print: what the chip prints by default, or what is needed if more."""
    return max(chip.ptx_version, needed)


def format_version(version: Version) -> str:
    """Write a version as PTX does: ``7.4``."""
    return f"{version[0]}.{version[1]}"


def parameter_bytes(parameters: Sequence[Parameter]) -> int:
    """Bytes that the parameters of a kernel take, each at a multiple of its alignment."""
    end = 0
    for parameter in parameters:
        element = int(parameter.type.lstrip("busf")) // 8
        align = max(element, parameter.align or 1)
        end = -(-end // align) * align + element * (parameter.count or 1)
    return end
