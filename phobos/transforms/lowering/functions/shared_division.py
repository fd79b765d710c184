"""Division of many numbers by one, as in normalising a row: its reciprocal is computed once.

With y = 1/b rounded to nearest and z the rest of it, y + z is 1/b to 48 bits, so that

    q = fma(a, y, a z)          is next to a/b,
    r = a - b q                 is exact, and
    q' = fma(r, y, q)           is a/b rounded to nearest (P. Markstein, 1990)

as long as nothing on the way is too small or too large. That is so where 2^-20 <= b <= 2^60 and
|q'| >= 2^-80, and where a is +0. A thread with any other number divides it and those beside it
by the hardware's sequence, which takes twice the instructions and cannot overlap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.transforms.lowering.functions.code import FloatCode, Row
from phobos.transforms.lowering.registers import F32

LEAST_SHARED = 4
"""How many numbers a divisor must divide for the reciprocal to pay."""
_SMALLEST_DIVISOR, _LARGEST_DIVISOR = 2.0**-20, 2.0**60
_SMALLEST_QUOTIENT = 2.0**-80
_AT_A_TIME = 8
"""Numbers whose quotients are checked together: dividends must be kept until then."""


def divide_all(code: FloatCode, rows: Sequence[Row]) -> list[SSAValue]:
    """a / b for each row (a, b), correctly rounded."""
    counts = Counter(b for _, b in rows)
    is_shared = [code.kind is F32 and counts[b] >= LEAST_SHARED for _, b in rows]
    together = [row for row, shared in zip(rows, is_shared, strict=True) if shared]
    quotients = iter(_divide_shared(code, together))
    return [
        next(quotients) if shared else code.div(a, b)
        for (a, b), shared in zip(rows, is_shared, strict=True)
    ]


def _divide_shared(code: FloatCode, rows: Sequence[Row]) -> list[SSAValue]:
    divisors = {b: _Divisor(code, b) for b in dict.fromkeys(b for _, b in rows)}
    return [
        quotient
        for start in range(0, len(rows), _AT_A_TIME)
        for quotient in _divide_group(code, rows[start : start + _AT_A_TIME], divisors)
    ]


def _divide_group(
    code: FloatCode, rows: Sequence[Row], divisors: dict[SSAValue, _Divisor]
) -> list[SSAValue]:
    quotients = [divisors[b].divide(a) for a, b in rows]
    is_odd = [divisors[b].is_odd for b in dict.fromkeys(b for _, b in rows)]
    # What is 0 is odd here, and looked at again: that takes fewer instructions.
    is_small = [code.is_("ltu", code.abs(quotient), _SMALLEST_QUOTIENT) for quotient in quotients]
    build = code.low.build
    again = build.block((), "recheck")
    slowly = build.block((), "divide")
    done = build.block((code.kind.register,) * len(rows), "divided")
    build.cond_bra(_any(code, [*is_odd, *is_small]), again, done, (), quotients)
    build.at(again)
    is_other = [
        code.emit(ptx.AndOp, "pred", small, code.emit(ptx.SetpOp, "ne.b32", a, 0))
        for small, (a, _) in zip(is_small, rows, strict=True)
    ]
    build.cond_bra(_any(code, [*is_odd, *is_other]), slowly, done, (), quotients)
    build.at(slowly)
    build.bra(done, *(code.div(a, b) for a, b in rows))
    build.at(done)
    return list(done.args)


def _any(code: FloatCode, predicates: Sequence[SSAValue]) -> SSAValue:
    total, *others = predicates
    for other in others:
        total = code.emit(ptx.OrOp, "pred", total, other)
    return total


class _Divisor:
    """The reciprocal of a number, as the sum of two, and whether the number is out of range."""

    def __init__(self, code: FloatCode, b: SSAValue):
        self.code = code
        self.b = b
        self.minus_b = code.neg(b)
        self.reciprocal = code.emit(ptx.RcpOp, "rn.f32", b)
        error = code.fma(self.minus_b, self.reciprocal, 1.0)
        self.rest = code.mul(error, self.reciprocal)
        small = code.is_("ltu", b, _SMALLEST_DIVISOR)
        large = code.is_("gt", b, _LARGEST_DIVISOR)
        self.is_odd = code.emit(ptx.OrOp, "pred", small, large)

    def divide(self, a: SSAValue) -> SSAValue:
        """a / b within the range."""
        code = self.code
        quotient = code.fma(a, self.reciprocal, code.mul(a, self.rest))
        rest = code.fma(self.minus_b, quotient, a)
        return code.fma(rest, self.reciprocal, quotient)
