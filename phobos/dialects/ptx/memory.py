"""Loads, stores, address conversion and cache control (PTX manual, data movement)."""

from __future__ import annotations

from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.instruction import Effect, Instruction

_ELEMENTS = "{b8|u8|s8|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64}"
_EVICTION = "{L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate}"
_SMALL_PREFETCH = "{L2::64B|L2::128B}"
_SCOPE = "{cta|gpu|sys}"

# What fits in 16 bytes: vectors of up to four elements, of up to two where these have 64 bits.
_VECTORS = (
    f"{{v2|v4}}?.{_ELEMENTS.replace('|b64|u64|s64|f64', '')}",
    "v2?.{b64|u64|s64|f64}",
)
# Twice as wide, for global memory only.
_LONG_VECTORS = ("v8.{b32|u32|s32|f32}", "v4.{b64|u64|s64|f64}")


def _access_forms(signature: str, cache_operators: str, *, is_load: bool) -> tuple[Form, ...]:
    """The forms of ld and st, which differ in operand order and cache operators."""
    rows: list[Form] = []
    acquire = "acquire" if is_load else "release"
    for vector in _VECTORS:
        rows += [
            Form(f"weak?.{{global|shared|local}}?.{vector}", signature),
            Form(f"weak?.shared::cluster.{vector}", signature, "has_clusters", (7, 8)),
            Form(f"{{global|local}}?.{cache_operators}.{vector}", signature),
            Form(f"volatile.{{global|shared}}?.{vector}", signature),
            Form(f"{{relaxed|{acquire}}}.{_SCOPE}.{{global|shared}}?.{vector}", signature),
            Form(f"global.{_EVICTION}.{vector}", signature, since=(7, 4)),
        ]
    for vector in _LONG_VECTORS:
        rows.append(Form(f"global?.{vector}", signature, "has_256bit_access", (8, 8)))
        rows.append(Form(f"global.{_EVICTION}.{vector}", signature, "has_256bit_access", (8, 8)))
    with_policy = f"{signature}, b64!"
    for vector in _VECTORS:
        rows.append(
            Form(
                f"global.{_EVICTION}?.L2::cache_hint.{vector}",
                with_policy,
                "has_cache_policy",
                (7, 4),
            )
        )
    if is_load:
        rows += _load_only_forms(signature)
    return tuple(rows)


def _load_only_forms(signature: str) -> list[Form]:
    """Non-coherent loads, and the size of the L2 prefetch."""
    rows: list[Form] = []
    for vector in _VECTORS:
        rows += [
            Form(f"global.{{ca|cg|cs}}?.nc.{vector}", signature),
            Form(f"global.nc.{_EVICTION}.{vector}", signature, since=(7, 4)),
            Form(f"global.nc?.{_EVICTION}?.{_SMALL_PREFETCH}.{vector}", signature, since=(7, 4)),
            Form(
                f"global.nc?.{_EVICTION}?.L2::256B.{vector}",
                signature,
                "has_cache_policy",
                (7, 4),
            ),
            Form(
                f"global.nc.{_EVICTION}?.L2::cache_hint.{vector}",
                f"{signature}, b64!",
                "has_cache_policy",
                (7, 4),
            ),
        ]
    rows.extend(
        Form(f"global.nc.{_EVICTION}?.{vector}", signature, "has_256bit_access", (8, 8))
        for vector in _LONG_VECTORS
    )
    return rows


class LdOp(Instruction):
    """Load a scalar or vector. Types of 8 and 16 bits may go to a wider register and extend."""

    name = "ptx.ld"
    effect = Effect.READ
    guardable = True
    forms = _access_forms("m* = []", "{ca|cg|cs|lu|cv}", is_load=True)

    @property
    def has_side_effect(self) -> bool:
        """Loads that other threads can tell apart: volatile ones and those with an order."""
        return self.suffix.partition(".")[0] in ("volatile", "relaxed", "acquire")


class StOp(Instruction):
    """Store a scalar or vector; types of 8 and 16 bits may come from a wider register."""

    name = "ptx.st"
    effect = Effect.WRITE
    guardable = True
    forms = _access_forms("[], m*", "{wb|cg|cs|wt}", is_load=False)


class CvtaOp(Instruction):
    """Turn an address of a state space into a generic one, or back (``to``)."""

    name = "ptx.cvta"
    forms = (
        Form("to?.{global|shared|local|const}.u64", "b64 = b64"),
        Form("to?.param.u64", "b64 = b64", since=(7, 7)),
    )


class MapaOp(Instruction):
    """The address in the block with this rank of the cluster of what is here at an address."""

    name = "ptx.mapa"
    forms = (
        Form("shared::cluster.u32", "b32 = b32!, u32", "has_clusters", (7, 8)),
        Form("u64", "b64 = b64!, u32", "has_clusters", (7, 8)),
    )


class IsspacepOp(Instruction):
    """p = whether a generic address lies in a state space."""

    name = "ptx.isspacep"
    forms = (Form("{global|shared|local|const}", "pred = b64"),)


class PrefetchOp(Instruction):
    """Bring a line into a cache."""

    name = "ptx.prefetch"
    effect = Effect.WRITE
    guardable = True
    forms = (
        Form("global.{L1|L2}", "[]"),
        Form("global.{L2::evict_last|L2::evict_normal}", "[]", "has_cache_policy", (7, 4)),
        Form("tensormap", "[]", "has_bulk_copy", (8, 0)),
    )


class CreatepolicyOp(Instruction):
    """Make an L2 cache policy for a fraction of the accesses."""

    name = "ptx.createpolicy"
    forms = (
        Form(
            "fractional.{L2::evict_first|L2::evict_last|L2::evict_normal|L2::evict_unchanged}.b64",
            "b64 = f32",
            "has_cache_policy",
            (7, 4),
        ),
    )
