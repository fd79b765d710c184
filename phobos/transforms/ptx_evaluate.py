"""What an instruction computes from constants, bit for bit as a GPU does.

Values are bit patterns: unsigned Python integers below 2 to the width of the register. A function
answers None where PTX leaves the result open (division by zero, NaN payloads) or where this module
does not follow the rounding; the instruction then stays.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from struct import pack, unpack

from phobos.dialects import ptx

Values = Sequence[int]
Rule = Callable[[tuple[str, ...], Values], int | None]
"""From the parts of the suffix and the operands to the result."""


def bits_of(type_name: str) -> int:
    """Bits of an integer or untyped PTX type: 32 for ``u32``."""
    return 1 if type_name == "pred" else int(type_name[1:])


def to_signed(pattern: int, bits: int) -> int:
    """Read a bit pattern as two's complement."""
    pattern &= (1 << bits) - 1
    return pattern - (1 << bits) if pattern >> (bits - 1) else pattern


def to_pattern(value: int, bits: int) -> int:
    """The low bits of an integer."""
    return value & ((1 << bits) - 1)


def read_number(pattern: int, type_name: str) -> int:
    """The integer that a register holds for a type such as ``s32``."""
    bits = bits_of(type_name)
    return to_signed(pattern, bits) if type_name[0] == "s" else to_pattern(pattern, bits)


def is_integer(type_name: str) -> bool:
    """Whether a type suffix is a plain integer or untyped one."""
    return type_name[0] in "usb" and type_name[1:].isdigit()


def evaluate(
    cls: type[ptx.Instruction],
    suffix: str,
    widths: Sequence[int],
    operands: Values,
    immediates: Values = (),
) -> tuple[int, ...] | None:
    """The results of an instruction on constant operands, or None if it must stay.

    ``widths`` are the bits of the registers that take the results.
    """
    parts = tuple(suffix.split("."))
    if cls is ptx.UnpackOp:
        return _unpack(operands[0], widths)
    if len(widths) != 1:
        return None
    if cls is ptx.Lop3Op:
        return (_lop3(immediates[0], operands),)
    rule = _RULES.get(cls)
    result = None if rule is None else rule(parts, operands)
    return None if result is None else (to_pattern(result, widths[0]),)


# Integers ----------------------------------------------------------------------------------------


def _integer(function: Callable[..., int]) -> Rule:
    """A rule for plain integer suffixes: read by type, compute, wrap to the width."""

    def rule(parts: tuple[str, ...], values: Values) -> int | None:
        if len(parts) != 1 or not is_integer(parts[0]):
            return None
        numbers = [read_number(value, parts[0]) for value in values]
        return to_pattern(function(*numbers), bits_of(parts[0]))

    return rule


def _bitwise(function: Callable[..., int]) -> Rule:
    def rule(parts: tuple[str, ...], values: Values) -> int:
        return to_pattern(function(*values), bits_of(parts[-1]))

    return rule


def _multiply(parts: tuple[str, ...], values: Values) -> int | None:
    if parts[0] not in ("lo", "hi", "wide"):
        return _float_product(parts, values)
    type_name = parts[1]
    bits = bits_of(type_name)
    product = read_number(values[0], type_name) * read_number(values[1], type_name)
    return _part_of_product(parts[0], product, bits)


def _part_of_product(part: str, product: int, bits: int) -> int:
    match part:
        case "lo":
            return to_pattern(product, bits)
        case "hi":
            return to_pattern(product >> bits, bits)
        case _:
            return to_pattern(product, 2 * bits)


def _multiply_add(parts: tuple[str, ...], values: Values) -> int | None:
    if "sat" in parts:
        return None
    product = _multiply(parts, values[:2])
    if product is None:
        return None
    bits = bits_of(parts[1]) * (2 if parts[0] == "wide" else 1)
    return to_pattern(product + values[2], bits)


def _divide(parts: tuple[str, ...], values: Values) -> int | None:
    quotient = _quotient(parts, values)
    return None if quotient is None else to_pattern(quotient, bits_of(parts[0]))


def _remainder(parts: tuple[str, ...], values: Values) -> int | None:
    quotient = _quotient(parts, values)
    if quotient is None:
        return None
    numerator, denominator = (read_number(value, parts[0]) for value in values)
    return to_pattern(numerator - quotient * denominator, bits_of(parts[0]))


def _quotient(parts: tuple[str, ...], values: Values) -> int | None:
    """The quotient truncated toward zero; None for floats, x/0 and the one that overflows."""
    if len(parts) != 1 or not is_integer(parts[0]):
        return None
    numerator, denominator = (read_number(value, parts[0]) for value in values)
    if denominator == 0:
        return None
    quotient = abs(numerator) // abs(denominator)
    if (numerator < 0) != (denominator < 0):
        quotient = -quotient
    if parts[0][0] == "s" and quotient == 1 << (bits_of(parts[0]) - 1):
        return None
    return quotient


def _shift_left(parts: tuple[str, ...], values: Values) -> int:
    bits = bits_of(parts[0])
    return to_pattern(values[0] << min(values[1], bits), bits)


def _shift_right(parts: tuple[str, ...], values: Values) -> int:
    bits = bits_of(parts[0])
    return to_pattern(read_number(values[0], parts[0]) >> min(values[1], bits), bits)


def _funnel_shift(parts: tuple[str, ...], values: Values) -> int:
    low, high, count = values
    count = count & 31 if parts[1] == "wrap" else min(count, 32)
    both = high << 32 | low
    shifted = both << count >> 32 if parts[0] == "l" else both >> count
    return to_pattern(shifted, 32)


def _lop3(table: int, values: Values) -> int:
    """Bit i of the table is the result for a, b, c being bits 2, 1, 0 of i."""
    result = 0
    for index in range(8):
        if table >> index & 1:
            terms = (v if index >> (2 - i) & 1 else ~v for i, v in enumerate(values))
            first, second, third = terms
            result |= first & second & third
    return to_pattern(result, 32)


def _permute(parts: tuple[str, ...], values: Values) -> int | None:
    if len(parts) != 1:
        return None
    low, high, selector = values
    source = (high << 32 | low).to_bytes(8, "little")
    result = 0
    for index in range(4):
        nibble = selector >> (4 * index) & 15
        byte = source[nibble & 7]
        if nibble & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << (8 * index)
    return result


_FIELD_LIMIT = 255
"""Positions and lengths of bit fields beyond this are not defined."""


def _extract_field(parts: tuple[str, ...], values: Values) -> int | None:
    value, position, length = values
    if max(position, length) > _FIELD_LIMIT:
        return None
    bits = bits_of(parts[0])
    if length == 0:
        return 0
    is_signed = parts[0][0] == "s"
    # The sign of a field that ends beyond the register is that of the whole register.
    sign_position = min(position + length - 1, bits - 1)
    field = value >> position & ((1 << length) - 1)
    if is_signed and value >> sign_position & 1:
        kept = max(0, min(length, bits - position))
        field |= -1 << kept
    return to_pattern(field, bits)


def _insert_field(parts: tuple[str, ...], values: Values) -> int | None:
    value, base, position, length = values
    if max(position, length) > _FIELD_LIMIT:
        return None
    mask = to_pattern(((1 << length) - 1) << position, bits_of(parts[0]))
    return base & ~mask | value << position & mask


def _leading_zeros(parts: tuple[str, ...], values: Values) -> int:
    return bits_of(parts[0]) - values[0].bit_length()


def _reverse_bits(parts: tuple[str, ...], values: Values) -> int:
    bits = bits_of(parts[0])
    return int(f"{values[0]:0{bits}b}"[::-1], 2)


def _dot_bytes(parts: tuple[str, ...], values: Values) -> int:
    types = ["s8" if part == "s32" else "u8" for part in parts]
    total = values[2]
    for shift in range(0, 32, 8):
        left, right = (read_number(v >> shift, t) for v, t in zip(values[:2], types, strict=True))
        total += left * right
    return to_pattern(total, 32)


# Comparisons and selection -----------------------------------------------------------------------

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "lo": operator.lt,
    "ls": operator.le,
    "hi": operator.gt,
    "hs": operator.ge,
}


def _compare(parts: tuple[str, ...], values: Values) -> int | None:
    compare, type_name = parts[0], parts[-1]
    if not is_integer(type_name):
        return None
    left, right = (read_number(value, type_name) for value in values[:2])
    result = int(_COMPARISONS[compare](left, right))
    if len(parts) == 2:
        return result
    combine = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[parts[1]]
    return combine(result, values[2])


def _select(parts: tuple[str, ...], values: Values) -> int:
    return values[0] if values[2] else values[1]


def _convert(parts: tuple[str, ...], values: Values) -> int | None:
    if len(parts) == 2 and is_integer(parts[0]) and is_integer(parts[1]):
        # What is narrower than its register fills it with its own sign.
        return read_number(read_number(values[0], parts[1]), parts[0])
    if len(parts) == 3 and parts[0] == "rn" and is_integer(parts[2]):
        return _integer_to_float(read_number(values[0], parts[2]), parts[1])
    return None


def _integer_to_float(number: int, target: str) -> int | None:
    # Python rounds to the nearest double; below 2**53 that is exact, so one rounding remains.
    if abs(number) >= 1 << 53:
        return None
    if target == "f32":
        return unpack("<I", pack("<f", float(number)))[0]
    if target == "f64":
        return unpack("<Q", pack("<d", float(number)))[0]
    return None


# Floats ------------------------------------------------------------------------------------------


def _float(function: Callable[..., float]) -> Rule:
    """A rule for f32 rounded to nearest: exact in double, then rounded once more.

    A double has more than twice the bits of a float plus two, so rounding twice does no harm.
    """

    def rule(parts: tuple[str, ...], values: Values) -> int | None:
        if parts not in (("f32",), ("rn", "f32")):
            return None
        numbers = [unpack("<f", pack("<I", value))[0] for value in values]
        result = function(*numbers)
        if not math.isfinite(result) or not all(map(math.isfinite, numbers)):
            return None
        try:
            return unpack("<I", pack("<f", result))[0]
        except OverflowError:
            return None

    return rule


_float_product = _float(operator.mul)


def _either(first: Rule, second: Rule) -> Rule:
    def rule(parts: tuple[str, ...], values: Values) -> int | None:
        return (second if parts[-1] == "f32" else first)(parts, values)

    return rule


# Packing -----------------------------------------------------------------------------------------


def _pack(parts: tuple[str, ...], values: Values) -> int:
    width = bits_of(parts[0]) // len(values)
    return sum(value << (width * index) for index, value in enumerate(values))


def _unpack(value: int, widths: Sequence[int]) -> tuple[int, ...]:
    return tuple(to_pattern(value >> (w * index), w) for index, w in enumerate(widths))


def _copy(parts: tuple[str, ...], values: Values) -> int:
    return values[0]


_RULES: dict[type[ptx.Instruction], Rule] = {
    ptx.AddOp: _either(_integer(operator.add), _float(operator.add)),
    ptx.SubOp: _either(_integer(operator.sub), _float(operator.sub)),
    ptx.MulOp: _multiply,
    ptx.MadOp: _multiply_add,
    ptx.DivOp: _divide,
    ptx.RemOp: _remainder,
    ptx.AbsOp: _integer(lambda a: abs(a)),
    ptx.NegOp: _integer(lambda a: -a),
    ptx.MinOp: _integer(min),
    ptx.MaxOp: _integer(max),
    ptx.AndOp: _bitwise(lambda a, b: a & b),
    ptx.OrOp: _bitwise(lambda a, b: a | b),
    ptx.XorOp: _bitwise(lambda a, b: a ^ b),
    ptx.NotOp: _bitwise(lambda a: ~a),
    ptx.ShlOp: _shift_left,
    ptx.ShrOp: _shift_right,
    ptx.ShfOp: _funnel_shift,
    ptx.PrmtOp: _permute,
    ptx.BfeOp: _extract_field,
    ptx.BfiOp: _insert_field,
    ptx.PopcOp: lambda parts, values: values[0].bit_count(),
    ptx.ClzOp: _leading_zeros,
    ptx.BrevOp: _reverse_bits,
    ptx.Dp4aOp: _dot_bytes,
    ptx.SetpOp: _compare,
    ptx.SelpOp: _select,
    ptx.CvtOp: _convert,
    ptx.PackOp: _pack,
    ptx.MovOp: _copy,
}
