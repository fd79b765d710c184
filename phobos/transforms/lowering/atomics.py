"""Atomic updates, acquire and release, and the barrier of the whole grid.

An update that the chip has no instruction for is a loop that computes the new value and writes
it if the element is still what it was computed from.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx
from phobos.dialects.atomics import (
    AtomicKind,
    AtomicOp,
    CompareExchangeOp,
    GridBarrierOp,
    LoadAcquireOp,
    StoreReleaseOp,
)
from phobos.dialects.ptx import B32
from phobos.transforms.lowering.accesses import move_type
from phobos.transforms.lowering.addresses import Address, element_address
from phobos.transforms.lowering.collectives import combine
from phobos.transforms.lowering.control import move_behind
from phobos.transforms.lowering.registers import BF16, BOOL, F16, F32, F64, I32, Kind
from phobos.transforms.lowering.state import Handler, Lowering

_HALF_RANGE = -(2**31)
"""Half the range of a grid barrier's count, as a number of 32 bits."""
_INTEGERS = {
    AtomicKind.MAX: "max.s{bits}",
    AtomicKind.MIN: "min.s{bits}",
    AtomicKind.UMAX: "max.u{bits}",
    AtomicKind.UMIN: "min.u{bits}",
    AtomicKind.AND: "and.b{bits}",
    AtomicKind.OR: "or.b{bits}",
    AtomicKind.XOR: "xor.b{bits}",
    AtomicKind.EXCHANGE: "exch.b{bits}",
}
_FLOAT_SUMS = {F32: "add.f32", F64: "add.f64", F16: "add.noftz.f16"}


def _address(low: Lowering, mem: SSAValue, indices: Sequence[SSAValue], kind: Kind) -> Address:
    return element_address(low, mem, [low.scalar(index) for index in indices], kind.bytes)


def _instruction(low: Lowering, kind: AtomicKind, element: Kind) -> str | None:
    """The suffix of the update in one instruction, or None if the chip has none."""
    if kind is AtomicKind.ADD:
        if element is BF16 and low.chip.has_bf16_arithmetic:
            return "add.noftz.bf16"
        return _FLOAT_SUMS.get(element) if element.is_float else f"add.u{element.bits}"
    if element.is_half or (element.is_float and kind is not AtomicKind.EXCHANGE):
        return None
    return _INTEGERS[kind].format(bits=element.bits)


def _atomic(low: Lowering, op: Operation) -> None:
    assert isinstance(op, AtomicOp)
    element = low.kind(op.value.type, op)
    address, value = _address(low, op.mem, op.indices, element), low.scalar(op.value)
    suffix = _instruction(low, op.kind.data, element)
    if suffix is None:
        low.set(op.result, _by_comparison(low, op, element, address, value))
        return
    low.set(
        op.result,
        low.build.emit(
            ptx.AtomOp, f"{address.space}.{suffix}", address.base, value, offset=address.offset
        ),
    )


def _by_comparison(
    low: Lowering, op: AtomicOp, element: Kind, address: Address, value: SSAValue
) -> SSAValue:
    """Reads, computes, and writes if nothing came between; else again with what is there."""
    build = low.build
    loop = build.block((element.register,), "update")
    done = build.block((element.register,), "updated")
    scope = "gpu" if address.space == "global" else "cta"
    first = build.emit(
        ptx.LdOp,
        f"relaxed.{scope}.{address.space}.b{element.bits}",
        address.base,
        offset=address.offset,
        result=element.register,
    )
    build.bra(loop, first)
    build.at(loop)
    (seen,) = loop.args
    new = value
    if op.kind.data is not AtomicKind.EXCHANGE:
        new = combine(low, op, op.kind.data.value, element, seen, value)
    found = _compare_exchange(low, address, element, seen, new)
    is_written = build.emit(ptx.SetpOp, f"eq.b{element.bits}", found, seen)
    build.cond_bra(is_written, done, loop, [found], [found])
    build.at(done)
    move_behind(done, low)
    return done.args[0]


def _compare_exchange(
    low: Lowering, address: Address, element: Kind, expected: SSAValue, desired: SSAValue
) -> SSAValue:
    return low.build.emit(
        ptx.AtomOp,
        f"{address.space}.cas.b{element.bits}",
        address.base,
        expected,
        desired,
        offset=address.offset,
    )


def _cas(low: Lowering, op: Operation) -> None:
    assert isinstance(op, CompareExchangeOp)
    element = low.kind(op.expected.type, op)
    address = _address(low, op.mem, op.indices, element)
    expected, desired = low.scalar(op.expected), low.scalar(op.desired)
    low.set(op.result, _compare_exchange(low, address, element, expected, desired))


# ---- order


def _load_acquire(low: Lowering, op: Operation) -> None:
    assert isinstance(op, LoadAcquireOp)
    element = low.kind(op.result.type, op)
    address = _address(low, op.mem, op.indices, element)
    register = B32 if element is BOOL else element.register
    value = low.build.emit(
        ptx.LdOp,
        f"acquire.sys.{address.space}.{move_type(element)}",
        address.base,
        offset=address.offset,
        result=register,
    )
    if element is BOOL:
        value = low.build.emit(ptx.SetpOp, "ne.b32", value, 0)
    low.set(op.result, value)


def _store_release(low: Lowering, op: Operation) -> None:
    assert isinstance(op, StoreReleaseOp)
    element = low.kind(op.value.type, op)
    address, value = _address(low, op.mem, op.indices, element), low.scalar(op.value)
    if element is BOOL:
        value = low.build.emit(ptx.SelpOp, "b32", 1, 0, value)
    low.build.emit_multi(
        ptx.StOp,
        f"release.sys.{address.space}.{move_type(element)}",
        address.base,
        value,
        results=(),
        offset=address.offset,
    )


def _grid_barrier(low: Lowering, op: Operation) -> None:
    """One thread of each CTA counts it in and waits until the count's sign changes.

    The first CTA adds what the others, who add 1 each, lack of half the range: so the sign changes
    when the last comes, and the other bits are 0 again, for a grid of any size. The sign that it
    changes from can be read at any time before. The barriers of the CTA on both sides carry its
    other threads' writes to and from that thread, whose release and acquire carry them between
    CTAs.
    """
    assert isinstance(op, GridBarrierOp)
    build = low.build
    zero = build.imm(0, low.index_kind.register)
    state = element_address(low, op.state, [zero], I32.bytes)
    count, wait, done = (build.block((), name) for name in ("arrive", "wait", "together"))
    build.emit_multi(ptx.BarOp, "sync", imm=0, results=())
    is_first = build.emit(ptx.SetpOp, "eq.b32", low.thread, 0)
    build.cond_bra(is_first, count, done)
    build.at(count)
    before = build.emit(ptx.LdOp, "relaxed.gpu.global.b32", state.base, result=B32)
    ctas = reduce(
        lambda a, b: build.emit(ptx.MulOp, "lo.s32", a, b),
        (build.sreg(f"nctaid.{axis}") for axis in "xyz"),
    )
    cta = reduce(
        lambda a, b: build.emit(ptx.OrOp, "b32", a, b),
        (build.sreg(f"ctaid.{axis}") for axis in "xyz"),
    )
    rest = build.emit(ptx.SubOp, "s32", _HALF_RANGE + 1, ctas)
    is_first = build.emit(ptx.SetpOp, "eq.b32", cta, 0)
    share = build.emit(ptx.SelpOp, "b32", rest, 1, is_first)
    build.emit_multi(ptx.RedOp, "release.gpu.global.add.u32", state.base, share, results=())
    build.bra(wait)
    build.at(wait)
    now = build.emit(ptx.LdOp, "acquire.gpu.global.b32", state.base, result=B32)
    changed = build.emit(ptx.XorOp, "b32", now, before)
    has_turned = build.emit(ptx.SetpOp, "lt.s32", changed, 0)
    build.cond_bra(has_turned, done, wait)
    build.at(done)
    move_behind(done, low)
    build.emit_multi(ptx.BarOp, "sync", imm=0, results=())


HANDLERS: dict[type[Operation], Handler] = {
    AtomicOp: _atomic,
    CompareExchangeOp: _cas,
    LoadAcquireOp: _load_acquire,
    StoreReleaseOp: _store_release,
    GridBarrierOp: _grid_barrier,
}
