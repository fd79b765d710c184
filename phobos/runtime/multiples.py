"""What a variant of a kernel may take for granted of the extents of a launch.

An extent that is a multiple of 16 lets a row be read 16 bytes at a time without a look at its
end. This depends on the last axis of a tensor alone, whose extent is also the distance of its
rows, so the extent of each such dim has a number of its own: an odd number of rows costs nothing.
The other dims share one, which is 16 or 1, so that few variants come of sizes that change from
launch to launch, such as a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from math import gcd

from phobos.record import Value, record
from phobos.targets.ptx.contract import KernelContract, TensorParameter

MAX_EXTENT_MULTIPLE = 16


@record
class Multiples(Value):
    """`common` divides every extent that a launch decides but those in `named`.

    `named` has pairs of a dim and what divides its extent, sorted; the numbers are powers of two
    up to 16.
    """

    common: int
    named: tuple[tuple[str, int], ...] = ()


def multiples_of(kernel: KernelContract, extents: Mapping[str, int]) -> Multiples:
    """The most that a variant for a launch with these extents may assume."""
    return largest_multiples(_last_dims(kernel), extents)


def largest_multiples(last: Set[str], extents: Mapping[str, int]) -> Multiples:
    """The most that these extents allow; `last` are the dims that are the last axis of a tensor."""
    own = {name: gcd(MAX_EXTENT_MULTIPLE, extents[name]) for name in sorted(last & extents.keys())}
    others = [extent for name, extent in extents.items() if name not in own]
    if others:
        common = (
            MAX_EXTENT_MULTIPLE if gcd(MAX_EXTENT_MULTIPLE, *others) == MAX_EXTENT_MULTIPLE else 1
        )
    else:
        common = min(own.values(), default=MAX_EXTENT_MULTIPLE)
    return Multiples(common, tuple((name, own[name]) for name in own if own[name] != common))


def _last_dims(kernel: KernelContract) -> set[str]:
    """The dims that are the last axis of a tensor."""
    names: set[str] = set()
    for parameter in kernel.parameters:
        if isinstance(parameter, TensorParameter) and parameter.dims:
            name = parameter.dims[-1].name
            if name is not None:
                names.add(name)
    return names
