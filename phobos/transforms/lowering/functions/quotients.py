"""Division, the square root and its reciprocal."""

from __future__ import annotations

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.transforms.lowering.functions.code import FloatCode


def divide(code: FloatCode, a: SSAValue, b: SSAValue) -> SSAValue:
    """a / b, correctly rounded."""
    return code.div(a, b)


def fast_divide(code: FloatCode, a: SSAValue, b: SSAValue) -> SSAValue:
    """a / b within 2 ulp where 2^-126 <= |b| <= 2^126; 0 for larger b."""
    return code.emit(ptx.DivOp, "approx.ftz.f32", a, b)


def sqrt(code: FloatCode, x: SSAValue) -> SSAValue:
    """The square root, correctly rounded."""
    return code.sqrt(x)


def fast_sqrt(code: FloatCode, x: SSAValue) -> SSAValue:
    """sqrt.approx: relative error 2^-23."""
    return code.approximate(ptx.SqrtOp, x)


def rsqrt(code: FloatCode, x: SSAValue) -> SSAValue:
    """1 / sqrt(x) in one instruction, whose relative error is 2^-22.9 (1.3 ulp seen)."""
    return code.emit(ptx.RsqrtOp, "approx.f32", x)


def fast_rsqrt(code: FloatCode, x: SSAValue) -> SSAValue:
    """The same, with subnormals taken as 0."""
    return code.approximate(ptx.RsqrtOp, x)


def double_rsqrt(code: FloatCode, x: SSAValue) -> SSAValue:
    """1 / sqrt(x) of f64: two correctly rounded steps, below 1.5 ulp."""
    return code.div(1.0, code.sqrt(x))
