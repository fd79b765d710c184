"""Floating-point arithmetic that integers do not share: fma and the special functions."""

from __future__ import annotations

from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.instruction import Instruction
from phobos.dialects.ptx.integer import TERNARY, UNARY


class FmaOp(Instruction):
    """d = a * b + c, rounded once."""

    name = "ptx.fma"
    commutative = True
    forms = (
        Form("{rn|rz|rm|rp}.ftz?.sat?.f32", TERNARY),
        Form("{rn|rz|rm|rp}.f64", TERNARY),
        Form("rn.ftz?.sat?.{f16|f16x2}", TERNARY),
        Form("rn.ftz?.relu.{f16|f16x2}", TERNARY, needs="has_half_relu", since=(7, 0)),
        Form("rn.relu?.{bf16|bf16x2}", TERNARY, needs="has_bf16", since=(7, 0)),
    )


class RcpOp(Instruction):
    """d = 1 / a."""

    name = "ptx.rcp"
    forms = (
        Form("{approx|rn|rz|rm|rp}.ftz?.f32", UNARY),
        Form("{rn|rz|rm|rp}.f64", UNARY),
        Form("approx.ftz.f64", UNARY),
    )


class SqrtOp(Instruction):
    """d = the square root of a."""

    name = "ptx.sqrt"
    forms = (Form("{approx|rn|rz|rm|rp}.ftz?.f32", UNARY), Form("{rn|rz|rm|rp}.f64", UNARY))


class RsqrtOp(Instruction):
    """d = 1 / the square root of a."""

    name = "ptx.rsqrt"
    forms = (Form("approx.ftz?.{f32|f64}", UNARY),)


class Ex2Op(Instruction):
    """d = 2 to the power of a."""

    name = "ptx.ex2"
    forms = (
        Form("approx.ftz?.f32", UNARY),
        Form("approx.{f16|f16x2}", UNARY, since=(7, 0)),
        Form("approx.ftz.{bf16|bf16x2}", UNARY, needs="has_bf16_arithmetic", since=(7, 8)),
    )


class Lg2Op(Instruction):
    """d = the logarithm of a to base 2."""

    name = "ptx.lg2"
    forms = (Form("approx.ftz?.f32", UNARY),)


class SinOp(Instruction):
    """d = sin(a)."""

    name = "ptx.sin"
    forms = (Form("approx.ftz?.f32", UNARY),)


class CosOp(Instruction):
    """d = cos(a)."""

    name = "ptx.cos"
    forms = (Form("approx.ftz?.f32", UNARY),)


class TanhOp(Instruction):
    """d = tanh(a)."""

    name = "ptx.tanh"
    forms = (
        Form("approx.{f32|f16|f16x2}", UNARY, since=(7, 0)),
        Form("approx.{bf16|bf16x2}", UNARY, needs="has_bf16_arithmetic", since=(7, 8)),
    )


class CopysignOp(Instruction):
    """d = b with the sign of a."""

    name = "ptx.copysign"
    forms = (Form("{f32|f64}", "t = t, t"),)


class TestpOp(Instruction):
    """p = whether a is of a class of floats."""

    name = "ptx.testp"
    forms = (Form("{finite|infinite|number|notanumber|normal|subnormal}.{f32|f64}", "pred = t"),)
