"""Contractions: multiply-adds of registers, or `mma` on fragments.

The steps along K are outermost, and an operand in a shared buffer is loaded where its first
element is needed, so that loads of the next step can overlap the products of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx, tile
from phobos.dialects.contraction import OPERAND_FORMS, DotOp, Instruction
from phobos.dialects.ptx import B32, B64
from phobos.ir.locations import error_at
from phobos.layout import LinearLayout
from phobos.layout.contraction import Contraction
from phobos.transforms.assign_layouts import contraction_of, operand_packing
from phobos.transforms.lowering.conversions import round_to_tf32
from phobos.transforms.lowering.fragments import fragment_products
from phobos.transforms.lowering.multiply_adds import multiply_adds
from phobos.transforms.lowering.operands import Coordinate, kind_of, places, words_of
from phobos.transforms.lowering.registers import Share
from phobos.transforms.lowering.state import Handler, Lowering
from phobos.transforms.lowering.warpgroups import warpgroup_products


def _dot(low: Lowering, op: Operation) -> None:
    assert isinstance(op, DotOp)
    layouts = contraction_of(op, low.threads)
    assert op.instruction is not None
    instruction = op.instruction.data
    held = tile.layout_of(op.c)
    if held is not None and held != layouts.c:
        raise error_at(op, f"a sum of `{instruction}` lies in registers as {layouts.c}, not {held}")
    lower = _BY_NAME[instruction.name]
    low.set_share(op.result, lower(low, op, instruction, layouts))
    low.lower_waiting()


def _matrix_products(
    low: Lowering,
    op: DotOp,
    instruction: Instruction,
    layouts: Contraction,
) -> Share:
    a_layout, b_layout, c_layout = layouts.a, layouts.b, layouts.c
    packed = operand_packing(instruction)
    in_words = instruction.accumulator == "f16"
    c_packed = 2 if in_words else 1
    k = instruction.shape[-1]
    a_count, b_count, c_count = _fragment_sizes(instruction, packed, c_packed)
    a = words_of(low, op.a, a_layout, kind_of(low, op, op.a), packed)
    b = words_of(low, op.b, b_layout, kind_of(low, op, op.b), packed)
    a_at = _fragments_at(a_layout, a_count * packed)
    b_at = _fragments_at(b_layout, b_count * packed)
    c_at = _fragments_at(c_layout, c_count * c_packed)
    suffix = _mma_suffix(instruction)
    register = B64 if instruction.accumulator == "f64" else B32
    totals = list(low.words(op.c) if in_words else low.elements(op.c))
    ready = _Parts(low, instruction.a)

    def product(left: Sequence[SSAValue], right: Sequence[SSAValue], total: Sequence[SSAValue]):
        kinds = (register,) * c_count
        return low.build.emit_multi(ptx.MmaOp, suffix, *left, *right, *total, results=kinds)

    for step in range(0, a_layout.shape[-1], k):
        for number, ((*stack, row, column), element) in enumerate(c_at.items()):
            if step == 0 and number == len(c_at) // 2:
                low.lower_waiting()
                low.build.location = op.location
            first = element // c_packed
            left = ready.of(a.fragment(a_at[(*stack, row, step)] // packed, a_count))
            right = ready.of(b.fragment(b_at[(*stack, step, column)] // packed, b_count))
            total = totals[first : first + c_count]
            if len(left) == 1:
                totals[first : first + c_count] = product(left[0], right[0], total)
            else:
                totals[first : first + c_count] = _add_parts(low, left, right, total, product)
    totals = _with_copies(totals, places(c_layout)[::c_packed])
    return Share(words=totals) if in_words else Share(totals)


def _add_parts(
    low: Lowering,
    left: Sequence[Sequence[SSAValue]],
    right: Sequence[Sequence[SSAValue]],
    total: Sequence[SSAValue],
    product: Callable[..., Sequence[SSAValue]],
) -> list[SSAValue]:
    """The product of operands in a large and a small part, the small terms first.

    Small by small is left out: it is below 2^-22 of the product. An `mma` cuts its sum where an
    addition rounds it, so the step is summed from zero and added to the total as f32.
    """
    (large_a, small_a), (large_b, small_b) = left, right
    part: Sequence[SSAValue] = [low.build.imm_f32(0.0)] * len(total)
    for one, other in ((small_a, large_b), (large_a, small_b), (large_a, large_b)):
        part = product(one, other, part)
    return [
        low.build.emit(ptx.AddOp, "rn.f32", old, new) for old, new in zip(total, part, strict=True)
    ]


class _Parts:
    """The words that an instruction takes for the words of a fragment, each made once."""

    def __init__(self, low: Lowering, operand: str):
        self._low, self._form = low, OPERAND_FORMS[operand]
        self._made: dict[SSAValue, tuple[SSAValue, ...]] = {}

    def of(self, words: Sequence[SSAValue]) -> list[list[SSAValue]]:
        """The fragment's words for each part."""
        if self._form.ptx != "tf32":
            return [list(words)]
        for word in words:
            if word not in self._made:
                self._made[word] = self._split(word)
        return [[self._made[word][part] for word in words] for part in range(self._form.parts)]

    def _split(self, word: SSAValue) -> tuple[SSAValue, ...]:
        large = round_to_tf32(self._low, word)
        if self._form.parts == 1:
            return (large,)
        rest = self._low.build.emit(ptx.SubOp, "rn.f32", word, large)
        return large, round_to_tf32(self._low, rest)


def _with_copies(totals: list[SSAValue], places: Sequence[Coordinate]) -> list[SSAValue]:
    """Registers that hold copies get the one result that was computed."""
    first_at: dict[Coordinate, SSAValue] = {}
    for total, place in zip(totals, places, strict=True):
        first_at.setdefault(place, total)
    return [first_at[place] for place in places]


def _fragment_sizes(instruction: Instruction, packed: int, c_packed: int) -> tuple[int, int, int]:
    """Registers of one lane for A, B and the accumulator."""
    m, n, k = instruction.shape
    return m * k // 32 // packed, n * k // 32 // packed, m * n // 32 // c_packed


def _fragments_at(layout: LinearLayout, size: int) -> dict[Coordinate, int]:
    """The first register of each fragment, by the coordinate that it starts at."""
    starts = places(layout)[::size]
    result: dict[Coordinate, int] = {}
    for number, start in enumerate(starts):
        result.setdefault(start, number * size)
    return result


def _mma_suffix(instruction: Instruction) -> str:
    m, n, k = instruction.shape
    a, b = OPERAND_FORMS[instruction.a].ptx, OPERAND_FORMS[instruction.b].ptx
    total = instruction.accumulator
    return f"sync.aligned.m{m}n{n}k{k}.row.col.{total}.{a}.{b}.{total}"


_BY_NAME = {
    "fma": multiply_adds,
    "mma": _matrix_products,
    "wgmma": warpgroup_products,
    "wmma": fragment_products,
}
"""The name of an instruction -> what lowers a contraction that is made of it."""

HANDLERS: dict[type[Operation], Handler] = {DotOp: _dot}
