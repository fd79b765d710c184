"""What one memory instruction does, and the faults that its addresses may raise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from phobos.diagnostics import Note
from phobos.emulator.decode import Operands
from phobos.emulator.errors import FindingKind
from phobos.emulator.types import Selection, Value
from phobos.emulator.wave import Wave


@dataclass(frozen=True, eq=False)
class Access:
    """A memory access: `bytes` at once, checked for bounds and alignment as a whole.

    `verb` is `reads`, `writes` or `updates`; the flags say the same to the checks.
    """

    operands: Operands
    verb: str
    bytes: int
    is_write: bool
    is_strong: bool = False
    is_atomic: bool = False
    is_read: bool = True
    order: str = "weak"

    def __post_init__(self) -> None:
        self.operands.environment.note_access(self.bytes)

    @property
    def unit(self) -> int:
        """Bytes of the elements that the access is made of, as the store has views of them."""
        return min(self.bytes, 8)

    @property
    def count(self) -> int:
        """Elements of an access."""
        return max(1, self.bytes // 8)

    def of_size(self, size: int) -> Access:
        """The same access on another number of bytes."""
        return self if size == self.bytes else replace(self, bytes=size)

    def fault(
        self,
        kind: FindingKind,
        wave: Wave,
        sel: Selection,
        address: Value,
        bad: np.ndarray,
        explain: str,
        notes: tuple[Note, ...] = (),
    ) -> NoReturn:
        """Raise the finding for the first thread where `bad` holds.

        `explain` follows the address in the message.
        """
        first = int(np.argmax(np.atleast_1d(bad)))
        threads = wave.selected(sel)
        where = int(address if address.ndim == 0 else address[first])
        self.operands.report(
            kind,
            wave,
            int(threads[first]),
            f"{self.verb} {self.bytes} byte{'s' if self.bytes > 1 else ''} at {where:#x}, "
            f"{explain}",
            address=where,
            notes=notes,
        )

    def check_alignment(self, wave: Wave, sel: Selection, address: Value) -> None:
        """Raise unless all addresses are multiples of the access's size."""
        mask = self.bytes - 1
        if mask == 0:
            return
        low = int(address) if address.ndim == 0 else int(np.bitwise_or.reduce(address))
        if low & mask:
            bad = (address & address.dtype.type(mask)) != 0
            self.fault(
                FindingKind.ALIGNMENT,
                wave,
                sel,
                address,
                bad,
                f"which is no multiple of {self.bytes}",
            )


def extremes(address: Value) -> tuple[int, int]:
    """Lowest and highest of the addresses."""
    if address.ndim == 0:
        return int(address), int(address)
    return int(address.min()), int(address.max())
