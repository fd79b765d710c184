"""Comparisons and selection."""

from __future__ import annotations

from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.instruction import Instruction

_EQUALITY = "{eq|ne}"
_SIGNED = "{eq|ne|lt|le|gt|ge}"
_UNSIGNED = "{eq|ne|lt|le|gt|ge|lo|ls|hi|hs}"
_FLOAT = "{eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan}"
_COMBINE = "{and|or|xor}"


def _setp_forms() -> tuple[Form, ...]:
    """For every comparison: plain, two-result, and combined with a third predicate."""
    rows: list[Form] = []
    for compare, types, needs, since in (
        (_EQUALITY, "{b16|b32|b64}", None, (6, 3)),
        (_SIGNED, "{s16|s32|s64}", None, (6, 3)),
        (_UNSIGNED, "{u16|u32|u64}", None, (6, 3)),
        (_FLOAT, "ftz?.f32", None, (6, 3)),
        (_FLOAT, "f64", None, (6, 3)),
        (_FLOAT, "ftz?.f16", None, (6, 3)),
        (_FLOAT, "bf16", "has_bf16_arithmetic", (7, 8)),
    ):
        rows.append(Form(f"{compare}.{types}", "pred = t, t", needs, since))
        if not types.endswith("f16"):
            rows.append(Form(f"{compare}.{types}", "pred|pred = t, t", needs, since))
        rows.append(Form(f"{compare}.{_COMBINE}.{types}", "pred = t, t, pred!", needs, since))
    for types, needs, since in (
        ("ftz?.f16x2", None, (6, 3)),
        ("bf16x2", "has_bf16_arithmetic", (7, 8)),
    ):
        rows.append(Form(f"{_FLOAT}.{types}", "pred|pred = t, t", needs, since))
    return tuple(rows)


class SetpOp(Instruction):
    """p = a compared with b, or that and/or/xor a third predicate. A second result is !p.

    Packed types give one predicate per half. Float comparisons are false for NaN operands; the
    forms ending in ``u`` are true for them.
    """

    name = "ptx.setp"
    forms = _setp_forms()


class SetOp(Instruction):
    """d = a compared with b, as all ones (integers) or 1.0 (floats)."""

    name = "ptx.set"
    forms = (
        Form(f"{_SIGNED}.{{u32|s32}}.{{s32|s16|s64}}", "t0 = t1, t1"),
        Form(f"{_UNSIGNED}.{{u32|s32}}.{{u16|u32|u64}}", "t0 = t1, t1"),
        Form(f"{_FLOAT}.ftz?.{{u32|s32|f32}}.f32", "t0 = t1, t1"),
        Form(f"{_FLOAT}.{{u32|s32|f32}}.f64", "t0 = t1, t1"),
        Form(f"{_FLOAT}.ftz?.{{u16|s16|u32|s32}}.f16", "t0 = t1, t1", since=(6, 5)),
        Form(f"{_FLOAT}.ftz?.f16.f16", "t0 = t1, t1"),
        Form(f"{_FLOAT}.ftz?.f16x2.f16x2", "t0 = t1, t1"),
        Form(
            f"{_FLOAT}.{{u16|s16|u32|s32|bf16}}.bf16",
            "t0 = t1, t1",
            needs="has_bf16_arithmetic",
            since=(7, 8),
        ),
        Form(f"{_FLOAT}.bf16x2.bf16x2", "t0 = t1, t1", needs="has_bf16_arithmetic", since=(7, 8)),
    )


class SelpOp(Instruction):
    """d = p ? a : b."""

    name = "ptx.selp"
    forms = (Form("{b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64}", "t = t, t, pred!"),)


class SlctOp(Instruction):
    """d = c >= 0 ? a : b."""

    name = "ptx.slct"
    forms = (
        Form("{b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64}.s32", "t0 = t0, t0, t1"),
        Form("ftz?.{b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64}.f32", "t0 = t0, t0, t1"),
    )
