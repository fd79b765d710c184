"""tanh and erf of f32: a polynomial around 0, and 1 less an exponential beyond."""

from __future__ import annotations

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.transforms.lowering.functions.code import FloatCode
from phobos.transforms.lowering.functions.constants import ERF, LOG2_E, LOG2_ERFC, TANH

_TANH_POLYNOMIAL_END = 1.25
_ERF_POLYNOMIAL_END = 1.0
_ERF_IS_ONE = 4.0
"""From here on erf(x) rounds to 1."""


def tanh(code: FloatCode, x: SSAValue) -> SSAValue:
    """tanh(x), within 2 ulp.

    Up to 1.25 an odd polynomial (1.5 ulp). Beyond, 1 - 2 / (e^2x + 1): at 1.25 the fraction is
    0.15, so 2 ulp of ex2.approx move the result by 0.6 ulp, 1 ulp of rcp.approx by 0.25, the
    roundings of argument and sum by 0.4, and the last one by 0.5. All shrink as x grows.
    """
    size = code.abs(x)
    square = code.mul(x, x)
    factor = code.mul(square, code.polynomial(TANH, square))
    near = code.fma(factor, size, size)
    grown = code.approximate(ptx.Ex2Op, code.mul(size, 2.0 * LOG2_E[0]))
    far = code.fma(code.approximate(ptx.RcpOp, code.add(grown, 1.0)), -2.0, 1.0)
    is_far = code.is_("gt", size, _TANH_POLYNOMIAL_END)
    return code.with_sign_of(x, code.select(is_far, far, near))


def fast_tanh(code: FloatCode, x: SSAValue) -> SSAValue:
    """tanh.approx: relative error 2^-11."""
    return code.emit(ptx.TanhOp, "approx.f32", x)


def erf(code: FloatCode, x: SSAValue) -> SSAValue:
    """erf(x), within 2 ulp.

    Up to 1 a polynomial (1.1 ulp). Beyond, 1 - 2^P(|x|) with P = log2(1 - erf): at 1 the power is
    0.16, so 2 ulp of ex2.approx move the result by 0.6 ulp, the roundings of P by 0.4, and the
    last one by 0.5. All shrink as x grows.
    """
    size = code.abs(x)
    square = code.mul(x, x)
    near = code.fma(code.polynomial(ERF, square), size, size)
    limited = code.emit(ptx.MinOp, "f32", size, code.constant(_ERF_IS_ONE))
    power = code.approximate(ptx.Ex2Op, code.polynomial(LOG2_ERFC, limited))
    is_far = code.is_("gt", size, _ERF_POLYNOMIAL_END)
    return code.with_sign_of(x, code.select(is_far, code.sub(1.0, power), near))
