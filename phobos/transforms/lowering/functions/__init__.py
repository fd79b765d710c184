"""Lowering of division and of the functions of the math dialect.

A function of f32 is within 2 ulp over its whole range, with the special values of IEEE 754 and
C99 (see docs/accuracy.md for what is measured); `@fast_math` takes the short forms made of
approximate instructions, which flush subnormals. Halves are computed in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx
from phobos.dialects.elementwise import RemainderOp
from phobos.ir.kernel import FAST_MATH
from phobos.ir.locations import error_at
from phobos.transforms.lowering.conversions import narrow_to_half, widen_half
from phobos.transforms.lowering.functions import (
    double,
    double_power,
    double_saturating,
    double_trigonometric,
)
from phobos.transforms.lowering.functions.code import FloatCode, Function, Functions, Row, each
from phobos.transforms.lowering.functions.exponential import (
    exp,
    exp2,
    expm1,
    fast_exp,
    fast_expm1,
)
from phobos.transforms.lowering.functions.logarithm import (
    TEN,
    TWO,
    E,
    fast_log1p,
    fast_logarithm,
    log1p,
    logarithm,
)
from phobos.transforms.lowering.functions.power import fast_pow, pow
from phobos.transforms.lowering.functions.quotients import (
    divide,
    double_rsqrt,
    fast_divide,
    fast_rsqrt,
    fast_sqrt,
    rsqrt,
    sqrt,
)
from phobos.transforms.lowering.functions.remainder import remainder
from phobos.transforms.lowering.functions.saturating import erf, fast_tanh, tanh
from phobos.transforms.lowering.functions.shared_division import divide_all
from phobos.transforms.lowering.functions.trigonometric import fast, fast_tan, sine_from, tan
from phobos.transforms.lowering.registers import F32, F64
from phobos.transforms.lowering.state import Handler, Lowering


@dataclass(frozen=True)
class _Versions:
    """How a function is written: by default, under fast_math, and in f64 (None: not at all)."""

    default: Functions
    fast: Functions
    double: Functions | None


def _versions(default: Function, fast: Function, double: Function | None = None) -> _Versions:
    return _Versions(each(default), each(fast), None if double is None else each(double))


_FUNCTIONS: dict[type[Operation], _Versions] = {
    arith.DivfOp: _Versions(divide_all, each(fast_divide), each(divide)),
    RemainderOp: _Versions(remainder, remainder, remainder),
    math.ExpOp: _versions(exp, fast_exp, double.exp),
    math.Exp2Op: _versions(exp2, exp2, double_power.exp2),
    math.ExpM1Op: _versions(expm1, fast_expm1),
    math.LogOp: _versions(logarithm(E), fast_logarithm(E), double.log),
    math.Log2Op: _versions(logarithm(TWO), fast_logarithm(TWO), double_power.log2),
    math.Log10Op: _versions(logarithm(TEN), fast_logarithm(TEN)),
    math.Log1pOp: _versions(log1p, fast_log1p),
    math.SqrtOp: _versions(sqrt, fast_sqrt, sqrt),
    math.RsqrtOp: _versions(rsqrt, fast_rsqrt, double_rsqrt),
    math.SinOp: _Versions(sine_from(0), each(fast(ptx.SinOp)), double_trigonometric.sine_from(0)),
    math.CosOp: _Versions(sine_from(1), each(fast(ptx.CosOp)), double_trigonometric.sine_from(1)),
    math.TanOp: _Versions(tan, each(fast_tan), None),
    math.TanhOp: _versions(tanh, fast_tanh, double_saturating.tanh),
    math.ErfOp: _versions(erf, erf, double_saturating.erf),
    math.PowFOp: _versions(pow, fast_pow, double_power.pow),
}


def _lower(low: Lowering, op: Operation) -> None:
    """Writes a function once for each different row of operands."""
    columns = [low.elements(operand) for operand in op.operands]
    rows = list(zip(*columns, strict=True))
    distinct = list(dict.fromkeys(rows))
    results = dict(zip(distinct, _apply(low, op, distinct), strict=True))
    low.set(op.results[0], *(results[row] for row in rows))


def _apply(low: Lowering, op: Operation, rows: Sequence[Row]) -> list[SSAValue]:
    kind = low.kind(op.operands[0].type, op)
    versions = _FUNCTIONS[type(op)]
    if kind is F64:
        if versions.double is None:
            raise error_at(op, f"`{op.name}` of f64 is not supported yet; f32 is")
        return versions.double(FloatCode(low, F64, F64), rows)
    function = versions.fast if FAST_MATH in low.kernel.attributes else versions.default
    code = FloatCode(low, F32, kind)
    if not kind.is_half:
        return function(code, rows)
    wide = [tuple(widen_half(low, value, kind) for value in row) for row in rows]
    return [narrow_to_half(low, result, kind) for result in function(code, wide)]


HANDLERS: dict[type[Operation], Handler] = dict.fromkeys(_FUNCTIONS, _lower)
