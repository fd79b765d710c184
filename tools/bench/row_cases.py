"""Cases that normalise each row of a matrix: what the case files of one operation share.

An operation has a case for each shape: rows that a CTA holds in registers, short ones of which a
CTA takes several, and long ones that are walked in pieces, which reads them twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tools.bench.case import (
    Array,
    Case,
    Choices,
    Extents,
    PhobosKernel,
    TorchCall,
    TritonKernel,
    Values,
    choices,
    read,
    written,
)


@dataclass(frozen=True)
class Shape:
    """Extents of the matrix, and the constants that are tried for them.

    `phobos` binds ROWS (but for long rows), BLOCK, THREADS and CTAS, the least number of CTAs that
    a multiprocessor shall have room for; `triton` BLOCK and num_warps.
    """

    suffix: str
    size: tuple[int, int]
    phobos: tuple[Choices, ...]
    triton: tuple[Choices, ...]
    is_long: bool = False


SQUARE = Shape(
    "",
    (8192, 8192),
    tuple(
        {"ROWS": 1, "BLOCK": 8192, "THREADS": threads, "CTAS": ctas}
        for threads, ctas in (
            *((128, 2), (128, 3), (128, 4), (256, 2), (256, 3), (256, 4)),
            *((512, 1), (512, 2), (512, 3), (512, 4)),
        )
    ),
    choices(BLOCK=8192, num_warps=(4, 8, 16)),
)
SHORT = Shape(
    "_short",
    (131072, 1024),
    tuple(
        {"ROWS": rows, "BLOCK": 1024, "THREADS": threads, "CTAS": ctas}
        for rows, threads, ctas in (
            *((2, 64, 12), (2, 128, 6), (1, 128, 12), (1, 128, 16), (1, 64, 12), (1, 32, 24)),
        )
    ),
    choices(BLOCK=1024, num_warps=(1, 2, 4)),
)
LONG = Shape(
    "_long",
    (1024, 131072),
    tuple(
        {"BLOCK": block, "THREADS": threads, "CTAS": ctas}
        for block, threads, ctas in (
            *((4096, 512, 2), (4096, 1024, 2), (8192, 512, 2), (8192, 1024, 1), (16384, 1024, 1)),
        )
    ),
    choices(BLOCK=(4096, 8192), num_warps=(8, 16)),
    is_long=True,
)


@dataclass(frozen=True)
class RowOperation:
    """One operation on rows and who computes it.

    `tile` and `long` are programs with DTYPE for the type; in 16-bit types they are marked
    @fast_math if `is_fast`; `long_choices` are tried for `long` in place of the shape's own.
    `triton_tile` and `triton_long` take
    the arrays of the case, N and BLOCK.
    """

    name: str
    summary: str
    reference: Callable[[Values], Any]
    tile: str
    long: str
    torch: Mapping[str, TorchCall]
    triton_tile: Any
    triton_long: Any
    weights: tuple[str, ...] = ()
    scalars: tuple[tuple[str, float], ...] = ()
    is_fast: bool = False
    long_choices: tuple[Choices, ...] = ()
    operations: int = 5
    """Floating-point operations for each element, about."""

    def case(self, shape: Shape) -> Case:
        """The case for a shape."""
        text = self.long if shape.is_long else self.tile
        search = (self.long_choices if shape.is_long else ()) or shape.phobos
        weights: tuple[Array, ...] = tuple(read(name, "N") for name in self.weights)
        arguments = ("X", *self.weights, "Y", "N", *(name for name, _ in self.scalars))
        return Case(
            name=self.name + shape.suffix,
            summary=self.summary,
            dims=("M", "N"),
            sizes=(shape.size,),
            dtypes=("f32", "bf16"),
            arrays=(read("X", "M", "N"), *weights, written("Y", "M", "N")),
            scalars=dict(self.scalars),
            flops=lambda extents: self.operations * extents["M"] * extents["N"],
            reference=self.reference,
            phobos=PhobosKernel(lambda dtype: self._source(text, dtype), self.name, search),
            torch=self.torch,
            triton=TritonKernel(
                self.triton_long if shape.is_long else self.triton_tile,
                arguments,
                _a_program_a_row,
                shape.triton,
            ),
        )

    def _source(self, text: str, dtype: str) -> str:
        mark = "@fast_math\n" if self.is_fast and dtype != "f32" else ""
        return mark + text.replace("DTYPE", dtype)


def _a_program_a_row(extents: Extents, _: Choices) -> tuple[int, ...]:
    return (extents["M"],)
