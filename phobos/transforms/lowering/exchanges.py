"""Conversions of layouts within a thread or a warp: registers are renamed or shuffled.

A shuffle moves 32 bits, so elements of 8 or 16 bits that stay together go as words.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx, tile
from phobos.ir.locations import error_at
from phobos.layout import LinearLayout
from phobos.layout.convert import Movement, ShufflePlan, plan_conversion
from phobos.layout.words import WordConversion, plan_words
from phobos.transforms.lowering.collectives import member_mask, shuffle
from phobos.transforms.lowering.folds import choose
from phobos.transforms.lowering.registers import I32, WORD_BITS, Kind, Share
from phobos.transforms.lowering.state import Handler, Lowering

_Byte = tuple[SSAValue, int]
"""A register and which of its bytes, 0 the lowest."""


def _layout(value: SSAValue, op: Operation) -> LinearLayout:
    layout = tile.layout_of(value)
    if layout is None:
        raise error_at(op, f"`{op.name}` needs layouts: run ph-assign-layouts first")
    return layout


def _convert(low: Lowering, op: Operation) -> None:
    assert isinstance(op, tile.ConvertLayoutOp)
    source, target = _layout(op.value, op), _layout(op.result, op)
    plan = plan_conversion(source, target)
    if plan.movement is Movement.SHARED:
        raise error_at(op, "a conversion across warps is expanded by ph-expand-exchanges first")
    if plan.shuffle is None:
        elements = low.elements(op.value)
        low.set(op.result, *(elements[register] for register in plan.registers))
        return
    kind = low.kind(op.result.type, op)
    words = _plan_words(source, target, kind)
    if words is None:
        low.set(op.result, *_shuffled(low, kind, plan.shuffle, low.elements(op.value)))
        return
    assert words.conversion.shuffle is not None
    sent = _to_words(low, op.value, kind, words)
    received = _shuffled(low, I32, words.conversion.shuffle, sent)
    low.set_share(op.result, _from_words(low, kind, words, received))


def _plan_words(source: LinearLayout, target: LinearLayout, kind: Kind) -> WordConversion | None:
    """How to move elements of less than 32 bits in words; None if each goes alone."""
    per_word = WORD_BITS // kind.bits if kind.bits in (8, 16) else 1
    while per_word > 1:
        plan = plan_words(source, target, per_word)
        if plan.per_word > 1 and plan.conversion.shuffle is not None:
            return plan
        per_word //= 2
    return None


# ---- shuffles


def _shuffled(
    low: Lowering, kind: Kind, plan: ShufflePlan, registers: Sequence[SSAValue]
) -> list[SSAValue]:
    """Selects by the bits of the lane, a shuffle a register, and selects again."""
    values = list(registers)
    for source, masks in ((low.lane, plan.send_by_lane), (low.warp, plan.send_by_warp)):
        values = _select_stages(low, kind, values, source, masks)
    lane = _source_lane(low, plan)
    mask = member_mask(low)
    received: dict[int, SSAValue] = {}
    for step in plan.rounds:
        if plan.is_xor:
            moved = values[step.send]
            if step.source_lane:
                moved = shuffle(low, kind, "bfly", moved, step.source_lane, mask)
        else:
            source_lane = low.build.emit(ptx.XorOp, "b32", lane, step.source_lane)
            moved = shuffle(low, kind, "idx", values[step.send], source_lane, mask)
        received[step.receive] = moved
    # Numbers that are not received differ from one that is in bits that make copies only.
    used = reduce(or_, received)
    values = [received[number & used] for number in range(1 << used.bit_length())]
    values = _select_stages(low, kind, values, low.lane, plan.receive_by_lane)
    return [values[register] for register in plan.registers]


def _select_stages(
    low: Lowering, kind: Kind, values: list[SSAValue], source: SSAValue, masks: Sequence[int]
) -> list[SSAValue]:
    """For each bit i of `source` that is set, exchanges registers at distance masks[i]."""
    for bit, mask in enumerate(masks):
        if not mask:
            continue
        single = low.build.emit(ptx.AndOp, "b32", source, 1 << bit)
        is_set = low.build.emit(ptx.SetpOp, "ne.b32", single, 0)
        values = [
            choose(low, kind, is_set, values[register ^ mask], value)
            for register, value in enumerate(values)
        ]
    return values


def _source_lane(low: Lowering, plan: ShufflePlan) -> SSAValue:
    """The lane that a thread reads from in the round whose constant is 0."""
    total = low.build.imm(0, ptx.B32)
    for source, masks in ((low.lane, plan.source_by_lane), (low.warp, plan.source_by_warp)):
        for bit, mask in enumerate(masks):
            if mask:
                single = low.build.emit(ptx.BfeOp, "u32", source, bit, 1)
                part = low.build.emit(ptx.MulOp, "lo.u32", single, mask)
                total = low.build.emit(ptx.XorOp, "b32", total, part)
    return total


# ---- words


def _to_words(
    low: Lowering, value: SSAValue, kind: Kind, plan: WordConversion
) -> Sequence[SSAValue]:
    """The words that a conversion moves, from the registers of a tile."""
    if _are_packed(plan.source, kind):
        return low.words(value)
    if kind.bits == 8:
        held = _bytes_of(low.share(value))
        return [_word_of(low, [held[register] for register in word]) for word in plan.source]
    elements = low.elements(value)
    return low.pack([elements[register] for word in plan.source for register in word], kind)


def _from_words(
    low: Lowering, kind: Kind, plan: WordConversion, words: Sequence[SSAValue]
) -> Share:
    """The registers of a tile from the words that a conversion moved."""
    if _are_packed(plan.target, kind):
        return Share(words=words)
    if kind.bits != 8:
        elements = low.unpack(words, kind)
        order = [register for word in plan.target for register in word]
        by_register = dict(zip(order, elements, strict=True))
        return Share([by_register[register] for register in range(len(order))])
    held = {
        register: (words[number], byte)
        for number, word in enumerate(plan.target)
        for byte, register in enumerate(word)
    }
    places = [held[register] for register in range(len(held))]
    if len(places) < 4:
        return Share([_word_of(low, [place]) for place in places])
    return Share(words=[_word_of(low, places[i : i + 4]) for i in range(0, len(places), 4)])


def _are_packed(words: Sequence[tuple[int, ...]], kind: Kind) -> bool:
    """Whether words are those that a tile's registers are packed in anyway."""
    size = len(words[0])
    return size * kind.bits == WORD_BITS and all(
        word == tuple(range(size * number, size * (number + 1)))
        for number, word in enumerate(words)
    )


def _bytes_of(share: Share) -> list[_Byte]:
    """Where each element of a tile of bytes is."""
    if share.words is not None:
        return [(word, byte) for word in share.words for byte in range(4)]
    return [(element, 0) for element in share.elements or ()]


def _word_of(low: Lowering, places: Sequence[_Byte]) -> SSAValue:
    """A word of up to four bytes from anywhere, the first lowest."""
    registers = list(dict.fromkeys(register for register, _ in places))
    if len(registers) > 2:
        halves = (_word_of(low, places[:2]), _word_of(low, places[2:]))
        return low.build.emit(ptx.PrmtOp, "b32", *halves, 0x5410)
    selector = sum(
        (4 * registers.index(register) + byte) << 4 * i for i, (register, byte) in enumerate(places)
    )
    return low.build.emit(ptx.PrmtOp, "b32", registers[0], registers[-1], selector)


HANDLERS: dict[type[Operation], Handler] = {tile.ConvertLayoutOp: _convert}
