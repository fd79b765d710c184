"""Division of integers by constants: multiplications and shifts in place of a 20-instruction call.

ptxas does not do this, not even for powers of two. The multipliers are those of Granlund and
Montgomery ("Division by Invariant Integers using Multiplication", 1994), valid for every
numerator of the width.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.record import Value, record
from phobos.transforms.ptx_evaluate import bits_of, is_integer, to_signed
from phobos.transforms.ptx_workbench import Candidate, Workbench


@record
class UnsignedMagic(Value):
    """n / d is ``high(n * multiplier) >> shift``.

    With ``adds`` the multiplier stands for one with another bit above the width, and the quotient
    is ``(((n - high) >> 1) + high) >> (shift - 1)``. ``pre_shift`` bits are cut off n first.
    """

    multiplier: int
    shift: int
    adds: bool = False
    pre_shift: int = 0


@record
class SignedMagic(Value):
    """n / d is ``(high(n * multiplier) + n * correction) >> shift``, plus 1 if that is negative.

    ``multiplier`` is a signed number of the width; ``correction`` is 1, 0 or -1.
    """

    multiplier: int
    shift: int
    correction: int


def unsigned_magic(divisor: int, bits: int) -> UnsignedMagic:
    """The multiplier for an unsigned divisor that is at least 3 and no power of two."""
    magic = _unsigned_multiplier(divisor, bits, bits)
    if magic is not None:
        return magic
    trailing = (divisor & -divisor).bit_length() - 1
    if trailing:
        shifted = _unsigned_multiplier(divisor >> trailing, bits, bits - trailing)
        assert shifted is not None, "an odd divisor has a multiplier for shorter numerators"
        return UnsignedMagic(shifted.multiplier, shifted.shift, pre_shift=trailing)
    shift = divisor.bit_length()
    full = (1 << (bits + shift)) // divisor + 1
    return UnsignedMagic(full - (1 << bits), shift, adds=True)


def _unsigned_multiplier(divisor: int, bits: int, precision: int) -> UnsignedMagic | None:
    """The smallest multiplier of the width that is exact for numerators of ``precision`` bits."""
    for shift in range(divisor.bit_length() + 1):
        power = 1 << (bits + shift)
        multiplier = -(-power // divisor)
        if multiplier >> bits:
            return None
        # Exact while a numerator times the multiplier's excess stays below the last bit kept.
        if (multiplier * divisor - power) << precision <= power:
            return UnsignedMagic(multiplier, shift)
    return None


def signed_magic(divisor: int, bits: int) -> SignedMagic:
    """The multiplier for a signed divisor whose magnitude is at least 3 and no power of two."""
    magnitude = abs(divisor)
    shift = 0
    while True:
        power = 1 << (bits + shift)
        multiplier = power // magnitude + 1
        # Strictly, since -2**(bits-1) over a negative divisor is the largest positive case.
        if (multiplier * magnitude - power) << (bits - 1) < power:
            break
        shift += 1
    signed = multiplier if divisor > 0 else -multiplier
    wrapped = to_signed(signed, bits)
    return SignedMagic(wrapped, shift, (signed - wrapped) >> bits)


def divide_by_constant(bench: Workbench, op: Candidate) -> SSAValue | None:
    """The quotient of an integer and a constant other than 0."""
    divisor = _divisor(bench, op)
    if divisor is None:
        return None
    numerator, type_name = op.operands[0], op.suffix
    if type_name[0] == "u":
        return _unsigned_quotient(bench, numerator, divisor, bits_of(type_name))
    return _signed_quotient(bench, numerator, divisor, bits_of(type_name))


def remainder_by_constant(bench: Workbench, op: Candidate) -> SSAValue | None:
    """The remainder of an integer by a constant other than 0."""
    divisor = _divisor(bench, op)
    if divisor is None:
        return None
    numerator, type_name = op.operands[0], op.suffix
    bits = bits_of(type_name)
    if type_name[0] == "u" and divisor.bit_count() == 1:
        return bench.make(ptx.AndOp, f"b{bits}", numerator, divisor - 1)
    if abs(divisor) == 1:
        return bench.imm(0, op.result)
    quotient = divide_by_constant(bench, op)
    if quotient is None:
        return None
    product = bench.make(ptx.MulOp, f"lo.{type_name}", quotient, divisor)
    return bench.make(ptx.SubOp, type_name, numerator, product)


def _divisor(bench: Workbench, op: Candidate) -> int | None:
    """The constant divisor as a number, if there is a sequence for it."""
    type_name = op.suffix
    if not is_integer(type_name):
        return None
    pattern = bench.constant(op.operands[1])
    if not pattern:
        return None
    bits = bits_of(type_name)
    divisor = to_signed(pattern, bits) if type_name[0] == "s" else pattern
    if abs(divisor) == 1 << (bits - 1) and type_name[0] == "s":
        return None
    if bits == 16 and abs(divisor).bit_count() != 1:
        return None
    return divisor


def _unsigned_quotient(bench: Workbench, numerator: SSAValue, divisor: int, bits: int) -> SSAValue:
    shr, high = f"u{bits}", f"hi.u{bits}"
    if divisor.bit_count() == 1:
        return bench.make(ptx.ShrOp, shr, numerator, divisor.bit_length() - 1)
    magic = unsigned_magic(divisor, bits)
    if magic.pre_shift:
        numerator = bench.make(ptx.ShrOp, shr, numerator, magic.pre_shift)
    product = bench.make(ptx.MulOp, high, numerator, magic.multiplier)
    if not magic.adds:
        return bench.make(ptx.ShrOp, shr, product, magic.shift)
    rest = bench.make(ptx.SubOp, f"u{bits}", numerator, product)
    half = bench.make(ptx.ShrOp, shr, rest, 1)
    total = bench.make(ptx.AddOp, f"u{bits}", half, product)
    return bench.make(ptx.ShrOp, shr, total, magic.shift - 1)


def _signed_quotient(bench: Workbench, numerator: SSAValue, divisor: int, bits: int) -> SSAValue:
    signed = f"s{bits}"
    magnitude = abs(divisor)
    if magnitude.bit_count() == 1:
        quotient = _signed_power_quotient(bench, numerator, magnitude.bit_length() - 1, bits)
        return bench.make(ptx.NegOp, signed, quotient) if divisor < 0 else quotient
    magic = signed_magic(divisor, bits)
    product = bench.make(ptx.MulOp, f"hi.{signed}", numerator, magic.multiplier)
    if magic.correction > 0:
        product = bench.make(ptx.AddOp, signed, product, numerator)
    elif magic.correction < 0:
        product = bench.make(ptx.SubOp, signed, product, numerator)
    shifted = bench.make(ptx.ShrOp, signed, product, magic.shift)
    sign = bench.make(ptx.ShrOp, f"u{bits}", shifted, bits - 1)
    return bench.make(ptx.AddOp, signed, shifted, sign)


def _signed_power_quotient(
    bench: Workbench, numerator: SSAValue, power: int, bits: int
) -> SSAValue:
    """n / 2**power toward zero: negative numerators get 2**power - 1 added before the shift."""
    if power == 0:
        return numerator
    signed = f"s{bits}"
    sign = bench.make(ptx.ShrOp, signed, numerator, bits - 1)
    bias = bench.make(ptx.ShrOp, f"u{bits}", sign, bits - power)
    biased = bench.make(ptx.AddOp, signed, numerator, bias)
    return bench.make(ptx.ShrOp, signed, biased, power)
