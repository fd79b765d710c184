"""Integer arithmetic as PTX defines it, on NumPy arrays or scalars of one integer type.

Results have the operands' type and wrap at its width unless a function says otherwise.
"""

from __future__ import annotations

import numpy as np

from phobos.emulator.types import SIGNED, UNSIGNED, Value

_WIDER = {8: 16, 16: 32, 32: 64}
_LOW_HALF = np.uint64(0xFFFF_FFFF)
_HALF = np.uint64(32)


def bits_of(value: Value) -> int:
    """Width of the values' type."""
    return value.dtype.itemsize * 8


def as_unsigned(value: Value) -> Value:
    """The same bits as unsigned integers."""
    return value.view(UNSIGNED[bits_of(value)])


def as_signed(value: Value) -> Value:
    """The same bits as signed integers."""
    return value.view(SIGNED[bits_of(value)])


def widen(value: Value) -> Value:
    """The same numbers in the type of twice the width and the same signedness."""
    table = SIGNED if value.dtype.kind == "i" else UNSIGNED
    return value.astype(table[_WIDER[bits_of(value)]])


def multiply_high(a: Value, b: Value) -> Value:
    """The upper half of the double-width product."""
    bits = bits_of(a)
    if bits < 64:
        return (widen(a) * widen(b) >> bits).astype(a.dtype)
    high = _unsigned_high(a.view(np.uint64), b.view(np.uint64))
    if a.dtype.kind == "i":
        zero = np.uint64(0)
        high = high - np.where(a < 0, b.view(np.uint64), zero)
        high = high - np.where(b < 0, a.view(np.uint64), zero)
    return high.view(a.dtype)


def _unsigned_high(a: Value, b: Value) -> Value:
    a_low, a_high = a & _LOW_HALF, a >> _HALF
    b_low, b_high = b & _LOW_HALF, b >> _HALF
    middle = a_high * b_low + (a_low * b_low >> _HALF)
    other = a_low * b_high + (middle & _LOW_HALF)
    return a_high * b_high + (middle >> _HALF) + (other >> _HALF)


def remainder(a: Value, b: Value) -> Value:
    """The remainder with the sign of the dividend; `a` where the divisor is 0."""
    one = b.dtype.type(1)
    divisor = np.where((b == 0) | (b == b.dtype.type(0) - one), one, b)
    found = np.fmod(a, divisor)
    if a.dtype.kind == "u":
        # All ones is a real divisor here, and no -1.
        found = np.where(b == b.dtype.type(0) - one, np.where(a == b, a.dtype.type(0), a), found)
    return np.where(b == 0, a, found)


def divide(a: Value, b: Value) -> Value:
    """The quotient, truncated toward zero; all ones where the divisor is 0.

    The most negative number divided by -1 is itself.
    """
    zero, one = b.dtype.type(0), b.dtype.type(1)
    minus_one = zero - one
    is_special = (b == 0) | (b == minus_one)
    divisor = np.where(is_special, one, b)
    quotient = (a - np.fmod(a, divisor)) // divisor
    negated = zero - a if a.dtype.kind == "i" else (a == minus_one).astype(a.dtype)
    quotient = np.where(b == minus_one, negated, quotient)
    return np.where(b == 0, minus_one, quotient)


def absolute(a: Value) -> Value:
    """The absolute value; the most negative number stays."""
    return np.abs(a)


def add_saturating(a: Value, b: Value) -> Value:
    """The sum clamped to the range of the signed 32-bit type."""
    return saturate(a.astype(np.int64) + b.astype(np.int64), a.dtype)


def subtract_saturating(a: Value, b: Value) -> Value:
    """The difference clamped to the range of the signed 32-bit type."""
    return saturate(a.astype(np.int64) - b.astype(np.int64), a.dtype)


def saturate(value: Value, dtype: np.dtype) -> Value:
    """Integers clamped into the range of another integer type."""
    info, own = np.iinfo(dtype), np.iinfo(value.dtype)
    low, high = max(info.min, own.min), min(info.max, own.max)
    return np.clip(value, value.dtype.type(low), value.dtype.type(high)).astype(dtype)


def shift_left(a: Value, amount: Value) -> Value:
    """`a << amount`; amounts of the width or more give 0."""
    bits = bits_of(a)
    limit = np.uint32(bits - 1)
    shifted = a << np.minimum(amount, limit).astype(a.dtype)
    return np.where(amount > limit, a.dtype.type(0), shifted)


def shift_right(a: Value, amount: Value) -> Value:
    """`a >> amount`, arithmetic for signed types; amounts are clamped to the width."""
    bits = bits_of(a)
    limit = np.uint32(bits - 1)
    shifted = a >> np.minimum(amount, limit).astype(a.dtype)
    if a.dtype.kind == "i":
        return shifted
    return np.where(amount > limit, a.dtype.type(0), shifted)


def population_count(a: Value) -> Value:
    """The number of one bits, as uint32."""
    return np.bitwise_count(a).astype(np.uint32)


def leading_zeros(a: Value) -> Value:
    """The number of leading zero bits, as uint32; the width for 0."""
    filled, bits = a, bits_of(a)
    step = 1
    while step < bits:
        filled = filled | (filled >> a.dtype.type(step))
        step *= 2
    return np.uint32(bits) - population_count(filled)


def reverse_bits(a: Value) -> Value:
    """The bits in reverse order."""
    dtype, bits = a.dtype, bits_of(a)
    ones = (1 << bits) - 1
    result, half = a, bits // 2
    while half:
        mask = ones // ((1 << half) + 1)
        low, shift = dtype.type(mask), dtype.type(half)
        result = ((result >> shift) & low) | ((result & low) << shift)
        half //= 2
    return result


def find_leading(a: Value, *, shift_amount: bool) -> Value:
    """`bfind`: the place of the highest bit that is no sign bit; all ones if there is none.

    With `shift_amount`, the left shift that brings that bit to the top.
    """
    magnitude = np.where(a < 0, ~a, a) if a.dtype.kind == "i" else a
    unsigned = as_unsigned(magnitude)
    zeros = leading_zeros(unsigned)
    place = zeros if shift_amount else np.uint32(bits_of(a) - 1) - zeros
    return np.where(unsigned == 0, np.uint32(0xFFFF_FFFF), place)


def extract_field(a: Value, position: Value, length: Value) -> Value:
    """`bfe`: the field of `length` bits at `position`, extended by its sign for signed types."""
    bits = bits_of(a)
    position, length = _field_bounds(position, length, bits)
    top = np.minimum(position + length - np.uint32(1), np.uint32(bits - 1))
    unsigned = as_unsigned(a)
    mask = _low_ones(length, unsigned.dtype)
    field = shift_right(unsigned, position) & mask
    if a.dtype.kind == "u":
        return field
    one = unsigned.dtype.type(1)
    sign = (shift_right(unsigned, top) & one) != 0
    sign = sign & (length != 0)
    # Bits of the field beyond the top of the register are copies of the sign, too.
    present = np.minimum(
        length, np.where(position >= bits, np.uint32(0), np.uint32(bits) - position)
    )
    filler = ~_low_ones(present.astype(np.uint32), unsigned.dtype)
    return np.where(sign, field | filler, field).view(a.dtype)


def _field_bounds(position: Value, length: Value, bits: int) -> tuple[Value, Value]:
    """Position and length of a field: 32-bit forms look at 8 bits of each, 64-bit ones at all."""
    if bits == 32:
        return position & np.uint32(0xFF), length & np.uint32(0xFF)
    limit = np.uint32(2 * bits)
    return np.minimum(position, limit), np.minimum(length, limit)


def insert_field(field: Value, base: Value, position: Value, length: Value) -> Value:
    """`bfi`: `base` with the low `length` bits of `field` placed at `position`."""
    position, length = _field_bounds(position, length, bits_of(base))
    mask = shift_left(_low_ones(length, base.dtype), position)
    return (base & ~mask) | (shift_left(field, position) & mask)


def bit_mask(position: Value, length: Value, *, clamp: bool) -> Value:
    """`bmsk`: `length` ones from `position` on; both wrap at 32 or are clamped to it."""
    if not clamp:
        position, length = position & np.uint32(31), length & np.uint32(31)
    return shift_left(_low_ones(length, np.dtype(np.uint32)), position)


def extend_from_bit(a: Value, width: Value, *, clamp: bool) -> Value:
    """`szext`: the low `width` bits of a 32-bit value, extended by sign for signed types."""
    if not clamp:
        width = width & np.uint32(31)
    mask = _low_ones(width, np.dtype(np.uint32))
    unsigned = as_unsigned(a)
    field = unsigned & mask
    if a.dtype.kind == "u":
        return field
    top = np.where(width == 0, np.uint32(0), np.minimum(width, np.uint32(32)) - np.uint32(1))
    sign = ((unsigned >> top) & np.uint32(1)) != 0
    return np.where(sign & (width != 0), field | ~mask, field).view(a.dtype)


def _low_ones(count: Value, dtype: np.dtype) -> Value:
    """Values whose low `count` bits are ones; counts beyond the width give all ones."""
    bits = dtype.itemsize * 8
    return ~shift_left(np.full((), ~dtype.type(0), dtype=dtype)[()], np.minimum(count, bits))


def funnel_shift(low: Value, high: Value, amount: Value, *, left: bool, clamp: bool) -> Value:
    """`shf`: the 64 bits `high:low` shifted; the upper half of a left, lower of a right shift."""
    distance = np.minimum(amount, np.uint32(32)) if clamp else amount & np.uint32(31)
    wide = (high.astype(np.uint64) << _HALF) | low.astype(np.uint64)
    distance = distance.astype(np.uint64)
    if left:
        return ((wide << distance) >> _HALF).astype(np.uint32)
    return (wide >> distance).astype(np.uint32)


def lookup_3(a: Value, b: Value, c: Value, table: int) -> Value:
    """`lop3`: any bitwise function of three operands; bit 4a+2b+c of `table` is the result."""
    result = a & a.dtype.type(0)
    for row in range(8):
        if table >> row & 1:
            term = (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
            result = result | term
    return result


def add_with_carry(a: Value, b: Value, carry: Value) -> tuple[Value, Value]:
    """Sum of two unsigned values and a carry (0 or 1) with the carry out, as booleans."""
    partial = a + b
    total = partial + carry.astype(a.dtype)
    return total, (partial < a) | (total < partial)


def subtract_with_borrow(a: Value, b: Value, borrow: Value) -> tuple[Value, Value]:
    """Difference of two unsigned values and a borrow (0 or 1) with the borrow out."""
    partial = a - b
    total = partial - borrow.astype(a.dtype)
    return total, (a < b) | (partial < total)


def nth_set(mask: Value, base: Value, offset: Value) -> Value:
    """`fns`: the place of the `offset`-th one bit from `base` on; all ones if there is none.

    Positive offsets count upwards from `base` (1 is the first at or above it), negative ones
    downwards, and 0 asks for the bit at `base` itself.
    """
    mask, base, offset = np.broadcast_arrays(np.atleast_1d(mask), base, offset)
    bits = (mask[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    places = np.arange(32)
    start = base.astype(np.int64)[:, None]
    result = np.full(len(mask), 0xFFFF_FFFF, dtype=np.uint32)
    up = np.cumsum(bits * (places >= start), axis=1)
    down = np.cumsum((bits * (places <= start))[:, ::-1], axis=1)[:, ::-1]
    signed = offset.astype(np.int64)
    for counts, wanted, chosen in (
        (up, np.maximum(signed, 1), signed >= 0),
        (down, np.maximum(-signed, 1), signed < 0),
    ):
        hits = (counts == wanted[:, None]) & (bits != 0)
        place = np.argmax(hits, axis=1)
        found = hits.any(axis=1) & chosen
        result = np.where(found, place.astype(np.uint32), result)
    # The most negative offset has no magnitude; the hardware answers 0.
    result = np.where(signed == -(2**31), np.uint32(0), result)
    at_base = (signed == 0) & (result != base)
    outside = (base > 31) & (signed != -(2**31))
    return np.where(at_base | outside, np.uint32(0xFFFF_FFFF), result)
