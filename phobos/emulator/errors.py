"""Findings: what the emulator reports about a kernel, and the error that carries one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from phobos.diagnostics import Diagnostic, Location, Note, PhobosError, SourceMap


class FindingKind(StrEnum):
    """The kinds of finding; the value is the word that its first line contains."""

    BOUNDS = "out of bounds"
    ALIGNMENT = "misaligned"
    UNINITIALISED = "uninitialised"
    DIVERGENCE = "divergent"
    RACE = "race"
    DEADLOCK = "deadlock"
    OVERFLOW = "overflow"
    TRAP = "trap"
    MBARRIER = "mbarrier"


@dataclass(frozen=True, slots=True)
class Finding:
    """What happened and to whom.

    `cta` and `thread` are the three-dimensional indices of the first thread concerned; `address`
    is the byte address where memory is concerned, `location` the source line.
    """

    kind: FindingKind
    kernel: str
    message: str
    location: Location
    cta: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    address: int | None = None


class EmulatorError(PhobosError):
    """A fault of the kernel under emulation; `finding` says which."""

    finding: Finding

    @classmethod
    def of(
        cls,
        finding: Finding,
        *,
        notes: Iterable[Note] = (),
        help: str | None = None,
        sources: SourceMap | None = None,
    ) -> Self:
        """The error for `finding`, whose first line starts with the kind."""
        message = f"{finding.kind}: {finding.message}"
        error = cls(Diagnostic.error(message, finding.location, notes=notes, help=help), sources)
        error.finding = finding
        return error
