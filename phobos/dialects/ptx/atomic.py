"""Atomic updates of memory, with the old value (atom) and without (red)."""

from __future__ import annotations

from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.instruction import Effect, Instruction

_SPACE = "{global|shared}?"


def _orderings(semantics: str) -> tuple[str, ...]:
    """Memory order and scope: none, a scope, or an order with a scope."""
    return ("", "{cta|gpu|sys}.", f"{{{semantics}}}.{{cta|gpu|sys}}.")


def _update_forms(signature: str, semantics: str, *, has_exchange: bool) -> tuple[Form, ...]:
    rows: list[Form] = []
    bitwise = "{and|or|xor|exch}" if has_exchange else "{and|or|xor}"
    for order in _orderings(semantics):
        head = f"{order}{_SPACE}"
        rows += [
            Form(f"{head}.add.{{u32|s32|u64|f32|f64}}", signature),
            Form(f"{head}.{{min|max}}.{{u32|s32|u64|s64}}", signature),
            Form(f"{head}.{bitwise}.{{b32|b64}}", signature),
            Form(f"{head}.{{inc|dec}}.u32", signature),
            Form(f"{head}.add.noftz.{{f16|f16x2}}", signature),
            Form(f"{head}.add.noftz.{{bf16|bf16x2}}", signature, "has_bf16_arithmetic", (7, 8)),
        ]
    return tuple(rows)


def _cas_forms() -> tuple[Form, ...]:
    return tuple(
        Form(f"{order}{_SPACE}.cas.{{b16|b32|b64}}", "t = [], t, t")
        for order in _orderings("relaxed|acquire|release|acq_rel")
    )


def _vector_forms(signature: str, semantics: str) -> tuple[Form, ...]:
    """Several adjacent elements of global memory, each updated atomically."""
    rows: list[Form] = []
    for order in _orderings(semantics):
        head = f"{order}global"
        rows += [
            Form(f"{head}.add.{{v2|v4}}.f32", signature, "has_vector_atomics", (8, 1)),
            Form(
                f"{head}.{{add|min|max}}.noftz.{{v2|v4}}.{{f16x2|bf16x2}}",
                signature,
                "has_vector_atomics",
                (8, 1),
            ),
        ]
    return tuple(rows)


class AtomOp(Instruction):
    """Update memory and give the old value."""

    name = "ptx.atom"
    effect = Effect.WRITE
    guardable = True
    forms = (
        *_update_forms("t = [], t", "relaxed|acquire|release|acq_rel", has_exchange=True),
        *_cas_forms(),
        *_vector_forms("t* = [], t*", "relaxed|acquire|release|acq_rel"),
    )


class RedOp(Instruction):
    """Update memory."""

    name = "ptx.red"
    effect = Effect.WRITE
    guardable = True
    forms = (
        *_update_forms("[], t", "relaxed|release", has_exchange=False),
        *_vector_forms("[], t*", "relaxed|release"),
    )
