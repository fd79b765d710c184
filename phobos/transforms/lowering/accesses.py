"""Point and run accesses: what one thread reads and writes for itself."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import B32
from phobos.ir.locations import error_at
from phobos.transforms.analyze_extents import VECTOR
from phobos.transforms.lowering.addresses import Address, element_address
from phobos.transforms.lowering.registers import BOOL, I8, WORD_BITS, Kind, Share
from phobos.transforms.lowering.state import Handler, Lowering

MAX_BYTES = 16
_MAX_DISTANCE = 1 << 24
"""Elements; offsets of instructions have 32 bits."""


def move_type(kind: Kind) -> str:
    """The PTX type that moves one element between memory and its register."""
    return {1: "u8", 8: "u8", 16: "b16" if kind.is_float else "u16"}.get(kind.bits, f"b{kind.bits}")


def _suffix(address: Address, count: int, type_: str) -> str:
    vector_part = f".v{count}" if count > 1 else ""
    return f"{address.space}{vector_part}.{type_}"


def load(
    low: Lowering,
    address: Address,
    kind: Kind,
    count: int,
    guard: SSAValue | None = None,
    fill: int = 0,
) -> Share:
    """Loads `count` neighbouring elements by one instruction.

    Where the guard is false each gets the bits of `fill`. `count` elements are at most 16 bytes
    and the address is aligned to them all.
    """
    bits = kind.bits * count
    if kind is BOOL:
        return Share(_load_bools(low, address, count, guard, fill))
    if bits <= WORD_BITS or kind.bits >= WORD_BITS:
        return _load_plain(low, address, kind, count, guard, fill)
    word = _repeated(fill, kind.bits, WORD_BITS)
    words = _load_registers(low, address, "b32", bits // WORD_BITS, B32, guard, word)
    return Share(words=words)


def _repeated(bits: int, width: int, total: int) -> int:
    """`total` bits that repeat a pattern of `width` bits."""
    return sum(bits << shift for shift in range(0, total, width))


def _load_bools(
    low: Lowering, address: Address, count: int, guard: SSAValue | None, fill: int
) -> list[SSAValue]:
    """Bools are bytes in memory, of which anything but 0 is true."""
    share = load(low, address, I8, count, guard, fill)
    if share.words is None:
        return [low.build.emit(ptx.SetpOp, "ne.b32", byte, 0) for byte in _bytes(low, share)]
    return [
        low.build.emit(ptx.SetpOp, "ne.b32", low.build.emit(ptx.AndOp, "b32", word, mask), 0)
        for word in share.words
        for mask in (0xFF, 0xFF00, 0xFF0000, 0xFF000000)
    ]


def _bytes(low: Lowering, share: Share) -> list[SSAValue]:
    """The bytes of a share as registers with nothing above them."""
    assert share.elements is not None
    if len(share.elements) == 1:
        return list(share.elements)
    return [low.build.emit(ptx.AndOp, "b32", byte, 0xFF) for byte in share.elements]


def _load_plain(
    low: Lowering, address: Address, kind: Kind, count: int, guard: SSAValue | None, fill: int
) -> Share:
    """Elements that fill whole registers, or a few small ones that fit one word."""
    if count == 1 or kind.bits >= WORD_BITS:
        registers = _load_registers(
            low, address, move_type(kind), count, kind.register, guard, fill
        )
        return Share(registers)
    packed = _repeated(fill, kind.bits, kind.bits * count)
    if kind.bits * count == WORD_BITS:
        return Share(words=_load_registers(low, address, "b32", 1, B32, guard, packed))
    # Two bytes: a 16-bit load into a word, then its parts.
    word = _load_registers(low, address, "u16", 1, B32, guard, packed)[0]
    return Share([word, low.build.emit(ptx.ShrOp, "u32", word, 8)])


def _load_registers(
    low: Lowering,
    address: Address,
    type_: str,
    count: int,
    register: ptx.RegisterType,
    guard: SSAValue | None,
    fill: int,
) -> Sequence[SSAValue]:
    return low.build.emit_multi(
        ptx.LdOp,
        _suffix(address, count, type_),
        address.base,
        results=(register,) * count,
        offset=address.offset,
        guard=guard,
        otherwise=(fill,) * count if guard is not None else (),
    )


def store(
    low: Lowering, address: Address, kind: Kind, part: Share, guard: SSAValue | None = None
) -> None:
    """Stores neighbouring elements, at most 16 aligned bytes, by one instruction."""
    type_, values = _stored_registers(low, kind, part)
    low.build.emit_multi(
        ptx.StOp,
        _suffix(address, len(values), type_),
        address.base,
        *values,
        results=(),
        offset=address.offset,
        guard=guard,
    )


def _stored_registers(low: Lowering, kind: Kind, part: Share) -> tuple[str, Sequence[SSAValue]]:
    """The type and the registers of the one store that writes a part."""
    if part.words is not None:
        return "b32", part.words
    elements = part.elements
    assert elements is not None
    if kind is BOOL:
        ones = [low.build.emit(ptx.SelpOp, "b32", 1, 0, element) for element in elements]
        return _stored_registers(low, I8, Share(ones))
    if kind.bits < WORD_BITS and kind.bits * len(elements) >= WORD_BITS:
        return "b32", low.pack(elements, kind)
    if kind.bits == 8 and len(elements) == 2:
        return "u16", [low.build.emit(ptx.PrmtOp, "b32", *elements, 0x0040)]
    return move_type(kind), elements


def part_of(low: Lowering, value: SSAValue, kind: Kind, start: int, count: int) -> Share:
    """Some neighbouring registers of a value, as words if it is held so."""
    share = low.share(value)
    bits = kind.bits
    if share.words is not None and not (start * bits % WORD_BITS or count * bits % WORD_BITS):
        first = start * bits // WORD_BITS
        return Share(words=share.words[first : first + count * bits // WORD_BITS])
    return Share(low.elements(value)[start : start + count])


def _address(
    low: Lowering, mem: SSAValue, indices: Sequence[SSAValue], element_bytes: int
) -> Address:
    """Where the element at `indices` is; a constant in the last index becomes an offset.

    Accesses whose places differ by a constant then share one address.
    """
    nearby, distance = split_constant(indices[-1])
    registers = [low.scalar(index) for index in (*indices[:-1], nearby)]
    return _step(element_address(low, mem, registers, element_bytes), distance * element_bytes)


def split_constant(index: SSAValue) -> tuple[SSAValue, int]:
    """An index as a value and a constant from 0 on that is added to it.

    If the sum is an index inside a tensor it has not wrapped, since a positive number was
    added: the value can be widened alone. It could have if the constant were negative.
    """
    distance = 0
    while isinstance(index.owner, arith.AddiOp):
        added = index.owner.rhs.owner
        if not isinstance(added, arith.ConstantOp) or not isinstance(added.value, IntegerAttr):
            break
        step = added.value.value.data
        if not 0 <= step <= _MAX_DISTANCE - distance:
            break
        index, distance = index.owner.lhs, distance + step
    return index, distance


def _point_load(low: Lowering, op: Operation) -> None:
    assert isinstance(op, memref.LoadOp)
    kind = low.kind(op.res.type, op)
    address = _address(low, op.memref, op.indices, kind.bytes)
    low.set_share(op.res, load(low, address, kind, 1))


def _point_store(low: Lowering, op: Operation) -> None:
    assert isinstance(op, memref.StoreOp)
    kind = low.kind(op.value.type, op)
    address = _address(low, op.memref, op.indices, kind.bytes)
    store(low, address, kind, low.share(op.value))


def _vector_width(op: Operation, length: int) -> int:
    """Elements an access of the run may move: what `ph-analyze-extents` proved."""
    proven = op.attributes.get(VECTOR)
    width = proven.value.data if isinstance(proven, IntegerAttr) else 1
    while length % width:
        width //= 2
    return width


def _run_load(low: Lowering, op: Operation) -> None:
    assert isinstance(op, vector.LoadOp)
    kind = low.kind(op.result.type, op)
    length = low.share_size(op.result)
    width = _vector_width(op, length)
    address = _address(low, op.base, op.indices, kind.bytes)
    parts = [
        load(low, _step(address, start * kind.bytes), kind, width)
        for start in range(0, length, width)
    ]
    low.set_share(op.result, join(low, parts, kind))


def join(low: Lowering, parts: Sequence[Share], kind: Kind) -> Share:
    """Loaded parts side by side: words if all are, else elements."""
    if all(part.words is not None for part in parts):
        return Share(words=[word for part in parts for word in part.words or ()])
    return Share([element for part in parts for element in _part_elements(low, part, kind)])


def _part_elements(low: Lowering, part: Share, kind: Kind) -> tuple[SSAValue, ...]:
    if part.elements is None:
        assert part.words is not None
        part.elements = low.unpack(part.words, kind)
    return part.elements


def _step(address: Address, bytes_: int) -> Address:
    return Address(address.base, address.offset + bytes_, address.space)


def _run_store(low: Lowering, op: Operation) -> None:
    assert isinstance(op, vector.StoreOp)
    kind = low.kind(op.vector.type, op)
    length = low.share_size(op.vector)
    width = _vector_width(op, length)
    address = _address(low, op.base, op.indices, kind.bytes)
    for start in range(0, length, width):
        part = part_of(low, op.vector, kind, start, width)
        store(low, _step(address, start * kind.bytes), kind, part)


def _dim(low: Lowering, op: Operation) -> None:
    assert isinstance(op, memref.DimOp)
    axis_op = op.index.owner
    value = getattr(axis_op, "value", None)
    if not isinstance(value, IntegerAttr):
        raise error_at(op, "the axis of an extent must be a constant")
    axis = value.value.data
    assert isinstance(op.source.type, MemRefType)
    low.set(op.result, low.tensors[op.source].sizes[axis])


def _nothing(low: Lowering, op: Operation) -> None:
    """A shared buffer has its place already; accesses compute from it."""


HANDLERS: dict[type[Operation], Handler] = {
    memref.LoadOp: _point_load,
    memref.StoreOp: _point_store,
    memref.DimOp: _dim,
    memref.AllocaOp: _nothing,
    vector.LoadOp: _run_load,
    vector.StoreOp: _run_store,
}
