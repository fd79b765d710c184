"""Integer arithmetic, logic, shifts and bit fields."""

from __future__ import annotations

from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.instruction import Instruction

UNARY = "t = t"
BINARY = "t = t, t"
TERNARY = "t = t, t, t"
SHIFT = "t = t, u32"
"""Shift counts are 32-bit whatever the width of the value."""

INTEGERS = "{u16|s16|u32|s32|u64|s64}"
FLOAT_ROUNDING = "{rn|rz|rm|rp}?"

F32_ARITHMETIC = (
    Form(f"{FLOAT_ROUNDING}.ftz?.sat?.f32", BINARY),
    Form(f"{FLOAT_ROUNDING}.f64", BINARY),
    Form("rn?.ftz?.sat?.{f16|f16x2}", BINARY),
    Form("rn?.{bf16|bf16x2}", BINARY, needs="has_bf16_arithmetic", since=(7, 8)),
)


class AddOp(Instruction):
    """d = a + b."""

    name = "ptx.add"
    commutative = True
    forms = (
        Form(INTEGERS, BINARY),
        Form("sat.s32", BINARY),
        Form("{u16x2|s16x2}", BINARY, needs="has_packed_int_arithmetic", since=(8, 0)),
        *F32_ARITHMETIC,
    )


class SubOp(Instruction):
    """d = a - b."""

    name = "ptx.sub"
    forms = (Form(INTEGERS, BINARY), Form("sat.s32", BINARY), *F32_ARITHMETIC)


class MulOp(Instruction):
    """d = a * b: the low, high or whole (``wide``) product of integers, or of floats."""

    name = "ptx.mul"
    commutative = True
    forms = (
        Form(f"{{lo|hi}}.{INTEGERS}", BINARY),
        Form("wide.{u16|s16|u32|s32}", "w = t, t"),
        *F32_ARITHMETIC,
    )


class MadOp(Instruction):
    """d = a * b + c on integers."""

    name = "ptx.mad"
    commutative = True
    forms = (
        Form(f"{{lo|hi}}.{INTEGERS}", TERNARY),
        Form("hi.sat.s32", TERNARY),
        Form("wide.{u16|s16|u32|s32}", "w = t, t, w"),
    )


class DivOp(Instruction):
    """d = a / b. Integers truncate toward zero; division by zero gives some value, no trap."""

    name = "ptx.div"
    forms = (
        Form(INTEGERS, BINARY),
        Form("{approx|full}.ftz?.f32", BINARY),
        Form("{rn|rz|rm|rp}.ftz?.f32", BINARY),
        Form("{rn|rz|rm|rp}.f64", BINARY),
    )


class RemOp(Instruction):
    """d = a - b * (a / b) on integers."""

    name = "ptx.rem"
    forms = (Form(INTEGERS, BINARY),)


class AbsOp(Instruction):
    """d = |a|."""

    name = "ptx.abs"
    forms = (
        Form("{s16|s32|s64}", UNARY),
        Form("ftz?.f32", UNARY),
        Form("f64", UNARY),
        Form("{f16|f16x2}", UNARY, since=(6, 5)),
        Form("{bf16|bf16x2}", UNARY, needs="has_bf16", since=(7, 0)),
    )


class NegOp(Instruction):
    """d = -a."""

    name = "ptx.neg"
    forms = (
        Form("{s16|s32|s64}", UNARY),
        Form("ftz?.f32", UNARY),
        Form("f64", UNARY),
        Form("{f16|f16x2}", UNARY),
        Form("{bf16|bf16x2}", UNARY, needs="has_bf16", since=(7, 0)),
    )


def _extremum_forms() -> tuple[Form, ...]:
    """Forms of min and max; without ``NaN`` the number wins over a NaN."""
    return (
        Form(INTEGERS, BINARY),
        Form("{u16x2|s16x2}", BINARY, needs="has_packed_int_arithmetic", since=(8, 0)),
        Form("relu.{s32|s16x2}", BINARY, needs="has_packed_int_arithmetic", since=(8, 0)),
        Form("ftz?.f32", BINARY),
        Form("ftz?.NaN.f32", BINARY, needs="has_nan_minmax", since=(7, 0)),
        Form("ftz?.NaN?.xorsign.abs.f32", BINARY, needs="has_xorsign_minmax", since=(7, 2)),
        Form("ftz?.NaN?.abs?.f32", TERNARY, needs="has_three_input_minmax", since=(8, 8)),
        Form("f64", BINARY),
        Form("ftz?.NaN?.{f16|f16x2}", BINARY, needs="has_half_minmax", since=(7, 0)),
        Form("NaN?.{bf16|bf16x2}", BINARY, needs="has_bf16", since=(7, 0)),
        Form(
            "NaN?.xorsign.abs.{f16|f16x2|bf16|bf16x2}",
            BINARY,
            needs="has_xorsign_minmax",
            since=(7, 2),
        ),
    )


class MinOp(Instruction):
    """d = min(a, b)."""

    name = "ptx.min"
    commutative = True
    forms = _extremum_forms()


class MaxOp(Instruction):
    """d = max(a, b)."""

    name = "ptx.max"
    commutative = True
    forms = _extremum_forms()


class AndOp(Instruction):
    """d = a & b."""

    name = "ptx.and"
    commutative = True
    forms = (Form("{b16|b32|b64|pred}", BINARY),)


class OrOp(Instruction):
    """d = a | b."""

    name = "ptx.or"
    commutative = True
    forms = (Form("{b16|b32|b64|pred}", BINARY),)


class XorOp(Instruction):
    """d = a ^ b."""

    name = "ptx.xor"
    commutative = True
    forms = (Form("{b16|b32|b64|pred}", BINARY),)


class NotOp(Instruction):
    """d = ~a."""

    name = "ptx.not"
    forms = (Form("{b16|b32|b64|pred}", UNARY),)


class ShlOp(Instruction):
    """d = a << b; counts of the width and above give 0."""

    name = "ptx.shl"
    forms = (Form("{b16|b32|b64}", SHIFT),)


class ShrOp(Instruction):
    """d = a >> b; counts of the width and above give 0, or the sign for signed types."""

    name = "ptx.shr"
    forms = (Form("{b16|b32|b64|u16|u32|u64|s16|s32|s64}", SHIFT),)


class ShfOp(Instruction):
    """Funnel shift: 32 bits of the 64-bit value b:a shifted by c."""

    name = "ptx.shf"
    forms = (Form("{l|r}.{wrap|clamp}.b32", "t = t, t, u32"),)


class Lop3Op(Instruction):
    """Any function of three bits; the literal is F(0xF0, 0xCC, 0xAA)."""

    name = "ptx.lop3"
    forms = (Form("b32", "t = t, t, t, #0..255"),)


class PrmtOp(Instruction):
    """Pick four bytes of b:a; each nibble of the selector names a byte, +8 copies its sign."""

    name = "ptx.prmt"
    forms = (Form("b32", "t = t, t, b32"), Form("b32.{f4e|b4e|rc8|ecl|ecr|rc16}", "t = t, t, b32"))


class BfeOp(Instruction):
    """Extract the bit field of b (position) and c (length), sign-extended for signed types."""

    name = "ptx.bfe"
    forms = (Form("{u32|s32|u64|s64}", "t = t, u32, u32"),)


class BfiOp(Instruction):
    """Insert the low d bits of a into b at position c."""

    name = "ptx.bfi"
    forms = (Form("{b32|b64}", "t = t, t, u32, u32"),)


class PopcOp(Instruction):
    """Count the ones; the count is 32-bit."""

    name = "ptx.popc"
    forms = (Form("{b32|b64}", "b32 = t"),)


class ClzOp(Instruction):
    """Count the leading zeros; the count is 32-bit."""

    name = "ptx.clz"
    forms = (Form("{b32|b64}", "b32 = t"),)


class BrevOp(Instruction):
    """Reverse the bits."""

    name = "ptx.brev"
    forms = (Form("{b32|b64}", UNARY),)


class BfindOp(Instruction):
    """Position of the most significant bit that is not a sign; all ones if there is none."""

    name = "ptx.bfind"
    forms = (Form("shiftamt?.{u32|s32|u64|s64}", "b32 = t"),)


class Dp4aOp(Instruction):
    """d = c + the dot product of the four bytes of a and b."""

    name = "ptx.dp4a"
    forms = (Form("{u32|s32}.{u32|s32}", "b32 = t0, t1, s32"),)


class Dp2aOp(Instruction):
    """d = c + a's two halves times the two low or high bytes of b."""

    name = "ptx.dp2a"
    forms = (Form("{lo|hi}.{u32|s32}.{u32|s32}", "b32 = t0, t1, s32"),)
