"""tanh and erf of f64: a polynomial around 0, and 1 less an exponential beyond."""

from __future__ import annotations

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.transforms.lowering.functions import double, double_power
from phobos.transforms.lowering.functions.code import FloatCode
from phobos.transforms.lowering.functions.constants import (
    ERF_DOUBLE,
    LOG2_ERFC_DOUBLE_0,
    LOG2_ERFC_DOUBLE_1,
    LOG2_ERFC_DOUBLE_2,
    TANH_DOUBLE,
)

_POLYNOMIAL_END = 1.0
_TANH_IS_ONE = 20.0
"""From here on tanh(x) rounds to 1."""
_ERF_IS_ONE = 6.0
"""From here on erf(x) rounds to 1."""

_PIECES = (
    (1.0, 1.5, LOG2_ERFC_DOUBLE_0),
    (2.0, 2.75, LOG2_ERFC_DOUBLE_1),
    (3.5, 4.75, LOG2_ERFC_DOUBLE_2),
)
"""Where each polynomial for log2(1 - erf) begins, what it is around, and its coefficients."""


def tanh(code: FloatCode, x: SSAValue) -> SSAValue:
    """tanh(x): below 1.5 ulp. Beyond 1 it is 1 - 2 / (e^2x + 1), whose fraction is below 1/4."""
    size = code.abs(x)
    square = code.mul(x, x)
    factor = code.mul(square, code.polynomial(TANH_DOUBLE, square))
    near = code.fma(factor, size, size)
    limited = code.emit(ptx.MinOp, "f64", size, code.constant(_TANH_IS_ONE))
    grown = double.exp(code, code.add(limited, limited))
    far = code.sub(1.0, code.div(2.0, code.add(grown, 1.0)))
    # The minimum of a NaN is a number, but NaN is not above the end of the polynomial.
    is_far = code.is_("gt", size, _POLYNOMIAL_END)
    return code.with_sign_of(x, code.select(is_far, far, near))


def erf(code: FloatCode, x: SSAValue) -> SSAValue:
    """erf(x): below 1.5 ulp. Beyond 1 it is 1 - 2^P(|x|), whose power is below 0.16."""
    size = code.abs(x)
    square = code.mul(x, x)
    near = code.fma(code.polynomial(ERF_DOUBLE, square), size, size)
    limited = code.emit(ptx.MinOp, "f64", size, code.constant(_ERF_IS_ONE))
    power = double_power.exp2(code, _log2_of_complement(code, limited))
    is_far = code.is_("gt", size, _POLYNOMIAL_END)
    return code.with_sign_of(x, code.select(is_far, code.sub(1.0, power), near))


def _log2_of_complement(code: FloatCode, x: SSAValue) -> SSAValue:
    """The polynomial of the piece that x lies in."""
    (_, origin, first), *others = _PIECES
    chosen = [code.register(number) for number in (origin, *first)]
    for start, origin, coefficients in others:
        is_beyond = code.is_("ge", x, start)
        chosen = [
            code.select(is_beyond, number, known)
            for number, known in zip((origin, *coefficients), chosen, strict=True)
        ]
    around, *lower, value = chosen
    t = code.sub(x, around)
    for coefficient in reversed(lower):
        value = code.fma(value, t, coefficient)
    return value
