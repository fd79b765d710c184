"""The suffix of a memory instruction taken apart."""

from __future__ import annotations

from dataclasses import dataclass

from phobos.emulator.decode import Operands
from phobos.emulator.types import TYPES, Kind, ScalarType

SPACES = {
    "global": "global",
    "const": "const",
    "param": "param",
    "shared": "shared",
    "shared::cta": "shared",
    "shared::cluster": "cluster",
    "local": "local",
}
_ORDERS = frozenset({"weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "sc"})
_SCOPES = frozenset({"cta", "cluster", "gpu", "sys"})
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_IGNORED = frozenset({"nc", "mmio", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "noftz"})


@dataclass(frozen=True, slots=True)
class MemoryForm:
    """What a suffix such as `relaxed.gpu.global.add.v2.f32` says.

    `space` is None for generic addressing. `operation` holds the parts that say what an atomic
    does. `order` is `weak` where nothing is said.
    """

    space: str | None
    type: ScalarType
    vector: int = 1
    order: str = "weak"
    scope: str = ""
    operation: tuple[str, ...] = ()
    has_cache_hint: bool = False
    is_read_only: bool = False

    @property
    def is_strong(self) -> bool:
        """Whether the access takes part in synchronisation."""
        return self.order != "weak"

    @property
    def bytes(self) -> int:
        """Bytes that one thread accesses."""
        return self.vector * self.type.bytes


def memory_form(ops: Operands) -> MemoryForm:
    """Parse the suffix of a memory instruction; refuses parts that have no meaning."""
    space: str | None = None
    kind: ScalarType | None = None
    vector, order, scope = 1, "weak", ""
    operation: list[str] = []
    has_hint = is_read_only = False
    for part in ops.instruction.suffix:
        if part in SPACES:
            space = SPACES[part]
        elif part in TYPES:
            kind = TYPES[part]
        elif part in _VECTORS:
            vector = _VECTORS[part]
        elif part in _ORDERS:
            order = part
        elif part in _SCOPES:
            scope = part
        elif part.startswith(("L1::", "L2::")):
            has_hint = has_hint or part == "L2::cache_hint"
        elif part in _IGNORED:
            is_read_only = is_read_only or part == "nc"
        else:
            operation.append(part)
    if kind is None or kind.kind is Kind.PREDICATE:
        ops.refuse("needs a type of whole bytes")
    return MemoryForm(space, kind, vector, order, scope, tuple(operation), has_hint, is_read_only)
