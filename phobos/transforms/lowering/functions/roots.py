"""The square root and its reciprocal."""

from __future__ import annotations

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.transforms.lowering.functions.code import FloatCode


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
