"""Memory accesses as PTX has them: so wide, so many, so guarded, for each place of the source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import Operation

from phobos.dialects import ptx
from phobos.dialects.ptx.instruction import Instruction
from phobos.explain.banks import BufferCost
from phobos.explain.coalescing import Facts, Key, key_of
from phobos.explain.places import Places, order_of
from phobos.explain.records import Access, Banks

_VERBS: dict[type[Operation], str] = {
    ptx.LdOp: "load",
    ptx.StOp: "store",
    ptx.CpAsyncOp: "copy",
    ptx.CpAsyncBulkTensorOp: "tensor copy",
    ptx.LdmatrixOp: "load",
    ptx.StmatrixOp: "store",
    ptx.WmmaLoadOp: "load",
    ptx.WmmaStoreOp: "store",
    ptx.AtomOp: "atomic",
    ptx.RedOp: "atomic",
}
_WRITES = (ptx.StOp, ptx.StmatrixOp, ptx.WmmaStoreOp, ptx.AtomOp, ptx.RedOp)
_VECTOR = re.compile(r"\.[vx](\d)(?=\.|$)")
_BITS = re.compile(r"[a-z]+(\d+)(x2)?$")


@dataclass
class _Group:
    """The instructions of one kind at one place."""

    first: Instruction
    count: int = 0
    guarded: int = 0


def accesses(entry: ptx.EntryOp, facts: Mapping[Key, Facts], places: Places) -> tuple[Access, ...]:
    """The accesses of a kernel to global and shared memory, in the order of the source."""
    groups: dict[tuple[object, ...], _Group] = {}
    for block in entry.body.blocks:
        for op in block.ops:
            if type(op) not in _VERBS:
                continue
            assert isinstance(op, Instruction)
            key = (_key(op), _mnemonic(op), _bytes(op))
            group = groups.setdefault(key, _Group(op))
            group.count += 1
            # A copy that has a predicate is one of an iteration that may not exist.
            is_copy = isinstance(op, ptx.CpAsyncOp)
            group.guarded += _fills(op) if is_copy else op.guard is not None
    found = [_access(group, facts, places) for group in groups.values()]
    return tuple(sorted(found, key=lambda one: (order_of(one.place), one.space, one.instruction)))


def _access(group: _Group, facts: Mapping[Key, Facts], places: Places) -> Access:
    op = group.first
    space = _space(op)
    key = _key(op)
    known = facts.get(key) if key is not None else None
    boxes = known.boxes if known is not None and isinstance(op, ptx.CpAsyncBulkTensorOp) else None
    if boxes is not None:
        size = boxes.bytes // boxes.count
        text, verb = _mnemonic(op), _VERBS[type(op)]
        count = group.count
        return Access(places.of(op), space, verb, text, size, count, 0, boxes=boxes)
    size = _bytes(op)
    return Access(
        places.of_target(op) if isinstance(op, ptx.StOp) else places.of(op),
        space,
        _VERBS[type(op)],
        _mnemonic(op),
        size,
        group.count,
        group.guarded,
        None if known is None else known.coalesced,
        None if known is None else _banks(op, known.banks),
        None if known is None or size >= 16 else known.narrow,
    )


def _banks(op: Instruction, cost: BufferCost | None) -> Banks | None:
    if cost is None:
        return None
    return cost.matrix if isinstance(op, ptx.LdmatrixOp) else cost.plain


def _fills(op: Instruction) -> bool:
    """Whether a copy is told how many bytes exist, and puts zeros for the others."""
    return op.own_count > 2


def _key(op: Instruction) -> Key | None:
    return key_of(op, writes=isinstance(op, _WRITES), is_shared=_space(op) == "shared")


def _mnemonic(op: Instruction) -> str:
    return op.spelling(op.suffix).mnemonic


def _space(op: Instruction) -> str:
    parts = op.suffix.split(".")
    if isinstance(op, ptx.CpAsyncOp | ptx.CpAsyncBulkTensorOp):
        return "global to shared"
    if "shared::cluster" in parts:
        return "shared, of the cluster's CTAs"
    return "shared" if "shared" in parts else "local" if "local" in parts else "global"


def _bytes(op: Instruction) -> int:
    """What one thread moves with an instruction."""
    if isinstance(op, ptx.CpAsyncBulkTensorOp):
        return 0
    if isinstance(op, ptx.CpAsyncOp):
        return op.immediates[0]
    if isinstance(op, ptx.WmmaLoadOp | ptx.WmmaStoreOp):
        # All of the registers, of which a store has an address and a stride beside them.
        held = op.results if isinstance(op, ptx.WmmaLoadOp) else op.own_operands[1:-1]
        return sum(one.type.bits for one in held if isinstance(one.type, ptx.RegisterType)) // 8
    found = _VECTOR.search(f".{op.suffix}")
    vector = int(found[1]) if found is not None else 1
    if isinstance(op, ptx.LdmatrixOp | ptx.StmatrixOp):
        return 4 * vector
    bits = _BITS.search(op.suffix.split(".")[-1])
    assert bits is not None
    return vector * int(bits[1]) * (2 if bits[2] else 1) // 8
