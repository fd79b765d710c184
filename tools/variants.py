"""Which variant of a program a launch asks for, before the program is compiled.

`phobos.compile` compiles for any extents that are multiples of 4, and a launch compiles again for
what its arrays allow. Who knows the extents from the start, as tests do, asks for that variant at
once and halves the work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from phobos.frontend import ast
from phobos.runtime.multiples import largest_multiples


class Variant(TypedDict):
    """Arguments of `phobos.compile`."""

    extent_multiple: int
    extent_multiples: dict[str, int]


def variant_for(
    program: ast.Program, extents: Mapping[str, int], name: str | None = None
) -> Variant:
    """The variant that a launch of a kernel, by default the only one, takes for these extents.

    `extents` has those of the dims that the launch decides; more are left out.
    """
    (kernel,) = (one for one in program.kernels if name in (None, one.name))
    shapes = [param.type.dims for param in kernel.params if isinstance(param.type, ast.ShapedType)]
    named = {dim.name for dims in shapes for dim in dims if isinstance(dim, ast.DimName)}
    last = {dims[-1].name for dims in shapes if dims and isinstance(dims[-1], ast.DimName)}
    found = largest_multiples(last, {name: extents[name] for name in extents if name in named})
    return {"extent_multiple": found.common, "extent_multiples": dict(found.named)}
