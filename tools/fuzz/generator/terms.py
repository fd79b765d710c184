"""What the generator knows of the expressions that it writes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tools.fuzz.scalars import SIGNED, UNSIGNED

UNIFORM, WARP, VARYING = 0, 1, 2
"""How far a value differs between the threads of a CTA."""

INTEGERS = (*SIGNED, *UNSIGNED)
REALS = ("f16", "bf16", "f32", "f64")
NUMBERS = (*INTEGERS, *REALS)
BYTES = ("f8e4m3", "f8e5m2")
WHOLE_LIMITS = {"f16": 2.0**11, "bf16": 2.0**8, "f32": 2.0**24, "f64": 2.0**53}
"""Up to where all whole numbers are numbers of a type."""

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """An expression: its text, type and shape, and how far it differs between threads.

    `size` bounds a float that is whole by construction; None for one that need not be.
    `is_exact` says that the language leaves no doubt about its last bit.
    """

    text: str
    type: str
    shape: Shape | None = None
    level: int = UNIFORM
    size: float | None = None
    is_exact: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether it is a float that holds whole numbers."""
        return self.size is not None

    def grown(self, text: str, size: float | None) -> Term:
        """The term with another text and size, if whole numbers of that size are still exact."""
        limit = WHOLE_LIMITS.get(self.type)
        keeps = size is not None and limit is not None and size <= limit
        return replace(self, text=text, size=size if keeps else None)


def joined(text: str, type_: str, shape: Shape | None, *parts: Term) -> Term:
    """A term made of others."""
    return Term(
        text,
        type_,
        shape,
        max((part.level for part in parts), default=UNIFORM),
        None,
        all(part.is_exact for part in parts),
    )


@dataclass(slots=True)
class Variable:
    """A name that the program has declared; `cap` is how far a value assigned to it may differ."""

    term: Term
    is_mutable: bool
    cap: int = VARYING
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class FunctionName:
    """A function of the program: what it gives, and the types and shapes that it takes."""

    name: str
    type: str
    shape: Shape | None
    parameters: tuple[tuple[str, Shape | None], ...]
    is_exact: bool


@dataclass(frozen=True, slots=True)
class TensorParameter:
    """A tensor that the kernel takes: dims as written, extents at launch, kind of content."""

    name: str
    type: str
    dims: tuple[str, ...]
    extents: Shape
    content: str
    is_input: bool = True


@dataclass(frozen=True, slots=True)
class Region:
    """A tensor of which each CTA reads and writes rows of its own, from `base` on."""

    tensor: TensorParameter
    base: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class ScalarParameter:
    """A number that the kernel takes."""

    name: str
    type: str
    value: int | float | bool
