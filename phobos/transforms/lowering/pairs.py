"""Arithmetic on 16-bit floats two at a time, where they are held as words: f16x2 and bf16x2.

Each half of a word is computed as it would be alone, so that no result depends on it. Loads give
words and stores take them: what lies between needs no element of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import Instruction
from phobos.transforms.lowering.registers import BF16, Kind, Share
from phobos.transforms.lowering.state import Lowering


class _Paired(NamedTuple):
    """An instruction, how its suffix begins, and what f16 and bf16 ask of the chip for it."""

    cls: type[Instruction]
    start: str
    f16_needs: str | None
    bf16_needs: str


def _extremum(cls: type[Instruction], start: str) -> _Paired:
    return _Paired(cls, start, "has_half_minmax", "has_bf16")


_PAIRED: dict[type[Operation], _Paired] = {
    arith.AddfOp: _Paired(ptx.AddOp, "rn.", None, "has_bf16_arithmetic"),
    arith.SubfOp: _Paired(ptx.SubOp, "rn.", None, "has_bf16_arithmetic"),
    arith.MulfOp: _Paired(ptx.MulOp, "rn.", None, "has_bf16_arithmetic"),
    math.FmaOp: _Paired(ptx.FmaOp, "rn.", None, "has_bf16"),
    arith.MaxnumfOp: _extremum(ptx.MaxOp, ""),
    arith.MinnumfOp: _extremum(ptx.MinOp, ""),
    arith.MaximumfOp: _extremum(ptx.MaxOp, "NaN."),
    arith.MinimumfOp: _extremum(ptx.MinOp, "NaN."),
    arith.NegfOp: _Paired(ptx.NegOp, "", None, "has_bf16"),
    math.AbsFOp: _Paired(ptx.AbsOp, "", None, "has_bf16"),
}


def in_pairs(low: Lowering, op: Operation, kind: Kind) -> Share | None:
    """The words of an op's result; None if it is not computed two elements at a time.

    It is if an operand is held as words, and the others are too or are the same everywhere.
    """
    paired = _PAIRED.get(type(op))
    if paired is None or not kind.is_half:
        return None
    if not low.chip.has(paired.bf16_needs if kind is BF16 else paired.f16_needs):
        return None
    counts = {len(words) for operand in op.operands if (words := low.share(operand).words)}
    if len(counts) != 1:
        return None
    (count,) = counts
    columns: list[tuple[SSAValue, ...]] = []
    for operand in op.operands:
        words = _words(low, operand, kind, count)
        if words is None:
            return None
        columns.append(words)
    done: dict[tuple[SSAValue, ...], SSAValue] = {}
    results: list[SSAValue] = []
    for row in zip(*columns, strict=True):
        if row not in done:
            done[row] = low.build.emit(paired.cls, f"{paired.start}{kind.name}x2", *row)
        results.append(done[row])
    return Share(words=results)


def _words(low: Lowering, value: SSAValue, kind: Kind, count: int) -> tuple[SSAValue, ...] | None:
    share = low.share(value)
    if share.words is not None:
        return share.words
    elements = share.elements
    assert elements is not None
    if any(element is not elements[0] for element in elements):
        return None
    return low.pack((elements[0], elements[0]), kind) * count
