"""Conversions between types (PTX manual, cvt)."""

from __future__ import annotations

from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.instruction import Instruction

_INTEGERS = "{u8|s8|u16|s16|u32|s32|u64|s64}"
_WIDE_INTEGERS = "{u16|s16|u32|s32|u64|s64}"
_TO_INTEGRAL = "{rni|rzi|rmi|rpi}"
_ROUNDING = "{rn|rz|rm|rp}"
CONVERT = "n0 = n1"
PACK_TWO = "t0 = f32, f32"
"""Two floats into one register: the first operand becomes the upper half."""


def _saturating_pairs() -> str:
    """Pairs of integer types of which the first cannot hold all values of the second."""
    names = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")

    def range_of(name: str) -> tuple[int, int]:
        bits = int(name[1:])
        return (0, (1 << bits) - 1) if name[0] == "u" else (-1 << (bits - 1), (1 << bits - 1) - 1)

    pairs: list[str] = []
    for target in names:
        low, high = range_of(target)
        for source in names:
            least, most = range_of(source)
            if least < low or most > high:
                pairs.append(f"{target}.{source}")
    return "|".join(pairs)


class CvtOp(Instruction):
    """Convert between types; 8-bit types may sit in any register.

    Float to integer clamps to the range of the target and gives 0 for NaN (for 32-bit and
    narrower targets from f16 and f32).
    """

    name = "ptx.cvt"
    forms = (
        Form(f"{_INTEGERS}.{_INTEGERS}", CONVERT),
        Form(f"sat.{{{_saturating_pairs()}}}", CONVERT),
        Form(f"{_TO_INTEGRAL}.ftz?.sat?.{_INTEGERS}.f32", CONVERT),
        Form(f"{_TO_INTEGRAL}.sat?.{_INTEGERS}.{{f16|f64}}", CONVERT),
        Form(f"{_ROUNDING}.sat?.{{f16|f32|f64}}.{_INTEGERS}", CONVERT),
        # between floats
        Form("sat?.{f16.f16|f64.f64}", CONVERT),
        Form("ftz?.sat?.f32.f32", CONVERT),
        Form(f"{_TO_INTEGRAL}.sat?.{{f16.f16|f64.f64}}", CONVERT),
        Form(f"{_TO_INTEGRAL}.ftz?.sat?.f32.f32", CONVERT),
        Form("ftz?.sat?.f32.f16", CONVERT),
        Form("sat?.f64.f16", CONVERT),
        Form("ftz?.sat?.f64.f32", CONVERT),
        Form(f"{_ROUNDING}.ftz?.sat?.f16.f32", CONVERT),
        Form(f"{_ROUNDING}.sat?.f16.f64", CONVERT),
        Form(f"{_ROUNDING}.ftz?.sat?.f32.f64", CONVERT),
        Form("{rn|rz}.relu.f16.f32", CONVERT, needs="has_packed_cvt", since=(7, 0)),
        Form("{rn|rz}.satfinite.f16.f32", CONVERT, since=(8, 1)),
        # bf16
        Form("{rn|rz}.relu?.bf16.f32", CONVERT, needs="has_bf16", since=(7, 0)),
        Form("{rn|rz}.satfinite.bf16.f32", CONVERT, needs="has_bf16", since=(8, 1)),
        Form("f32.bf16", CONVERT, needs="has_bf16", since=(7, 1)),
        Form("{rn|rz|rm|rp}.{f16.bf16|bf16.f16}", CONVERT, "has_bf16_arithmetic", (7, 8)),
        Form("f64.bf16", CONVERT, "has_bf16_arithmetic", (7, 8)),
        Form("{rn|rz|rm|rp}.bf16.f64", CONVERT, "has_bf16_arithmetic", (7, 8)),
        Form(f"{_ROUNDING}.bf16.{_WIDE_INTEGERS}", CONVERT, "has_bf16_arithmetic", (7, 8)),
        Form(f"{_TO_INTEGRAL}.{_WIDE_INTEGERS}.bf16", CONVERT, "has_bf16_arithmetic", (7, 8)),
        Form(f"{_TO_INTEGRAL}.bf16.bf16", CONVERT, "has_bf16_arithmetic", (7, 8)),
        # two at a time
        Form("{rn|rz}.relu?.{f16x2|bf16x2}.f32", PACK_TWO, "has_packed_cvt", (7, 0)),
        Form("{rn|rz}.satfinite.{f16x2|bf16x2}.f32", PACK_TWO, "has_packed_cvt", (8, 1)),
        # tf32 and fp8
        Form("rna.tf32.f32", CONVERT, "has_tf32", (7, 0)),
        Form("rna.satfinite.tf32.f32", CONVERT, "has_tf32", (8, 1)),
        Form("{rn|rz}.relu?.tf32.f32", CONVERT, "has_tf32_nearest", (7, 8)),
        Form("rn.satfinite.relu?.{e4m3x2|e5m2x2}.f32", PACK_TWO, "has_fp8", (7, 8)),
        Form("rn.satfinite.relu?.{e4m3x2|e5m2x2}.f16x2", CONVERT, "has_fp8", (7, 8)),
        Form("rn.relu?.f16x2.{e4m3x2|e5m2x2}", CONVERT, "has_fp8", (7, 8)),
    )


class CvtPackOp(Instruction):
    """Saturate two s32 to a narrow type and pack them; 8-bit ones go below c << 16."""

    name = "ptx.cvt.pack"
    forms = (
        Form("sat.{u16|s16}.s32", "b32 = s32, s32", since=(6, 5)),
        Form("sat.{u8|s8|u4|s4|u2|s2}.s32.b32", "b32 = s32, s32, b32", since=(6, 5)),
    )
