"""The remainder of floats, as exact as C's fmod: x - q y with q = x / y truncated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.transforms.lowering.functions.code import INFINITY, NAN, FloatCode, Row
from phobos.transforms.lowering.registers import F16, F32, F64

_SCALE_BITS = {F32: 100, F64: 1000}
"""What b is scaled by if a / b might overflow; that twice this is enough, the ranges show."""


def remainder(code: FloatCode, rows: Sequence[Row]) -> list[SSAValue]:
    """x % y with the sign of x; NaN for infinite x and for y = 0, x for infinite y.

    In a loop, a := a - q b with q = a / b rounded toward zero, and truncated. The quotient is
    never too large, so a stays from 0 on. q b has no bit below the unit of b times that of q, and
    neither has a, so that all bits of the difference, which is below b times the unit of q, fit
    a float: the fused product is exact. Each round takes all but the last bit of a significand off
    a / b, and the loop, which all rows of a thread share, ends when each a is below its b. Most
    arguments take one round.
    """
    plain = [_is_plain(code, *row) for row in rows]
    sizes = [
        (code.select(is_plain, code.abs(x), 0.0), code.select(is_plain, code.abs(y), 1.0))
        for (x, y), is_plain in zip(rows, plain, strict=True)
    ]
    rests = _reduced(code, sizes)
    return [
        _special(code, x, y, code.select(is_plain, code.with_sign_of(x, rest), x))
        for (x, y), is_plain, rest in zip(rows, plain, rests, strict=True)
    ]


def _is_plain(code: FloatCode, x: SSAValue, y: SSAValue) -> SSAValue:
    """Whether there is something to divide: |x| >= |y|, x finite and y not 0."""
    size, divisor = code.abs(x), code.abs(y)
    conditions = (
        code.is_("ge", size, divisor),
        code.is_("lt", size, INFINITY),
        code.is_("gt", divisor, 0.0),
    )
    return reduce(lambda a, b: code.emit(ptx.AndOp, "pred", a, b), conditions)


def _reduced(code: FloatCode, sizes: Sequence[tuple[SSAValue, SSAValue]]) -> list[SSAValue]:
    """Each a modulo its b, both above 0 or a = 0 and b = 1."""
    build = code.low.build
    start = [a for a, _ in sizes]
    head = build.block([code.kind.register] * len(start), "remainder")
    done = build.block((), "reduced")
    build.bra(head, *start)
    build.at(head)
    rests = [_round(code, a, b) for a, (_, b) in zip(head.args, sizes, strict=True)]
    is_left = [code.is_("ge", a, b) for a, (_, b) in zip(rests, sizes, strict=True)]
    any_left = reduce(lambda a, b: build.emit(ptx.OrOp, "pred", a, b), is_left)
    build.cond_bra(any_left, head, done, rests, ())
    build.at(done)
    return rests


def _round(code: FloatCode, a: SSAValue, b: SSAValue) -> SSAValue:
    """One step of the loop. A divisor so small that the quotient might overflow is scaled."""
    bits = _SCALE_BITS[code.kind]
    divisor = b
    for _ in range(0 if code.source is F16 else 2):  # quotients of f16 are below 2^40
        is_tiny = code.is_("gt", code.mul(a, 2.0**-bits), divisor)
        divisor = code.select(is_tiny, code.mul(divisor, 2.0**bits), divisor)
    quotient = code.trunc(code.emit(ptx.DivOp, f"rz.{code.type}", a, divisor))
    return code.fma(code.neg(quotient), divisor, a)


def _special(code: FloatCode, x: SSAValue, y: SSAValue, result: SSAValue) -> SSAValue:
    """NaN where x is infinite, y is 0, or one of them NaN."""
    is_number = code.emit(
        ptx.AndOp,
        "pred",
        code.is_("lt", code.abs(x), INFINITY),
        code.is_("gt", code.abs(y), 0.0),
    )
    return code.select(is_number, result, NAN)
