"""The interface through which memory accesses and synchronisation are watched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from phobos.emulator.types import Selection, Value

if TYPE_CHECKING:
    from phobos.emulator.asynchronous import Copy
    from phobos.emulator.memory.access import Access
    from phobos.emulator.memory.spaces import Space
    from phobos.emulator.memory.store import ByteStore
    from phobos.emulator.wave import Wave


class Monitor(Protocol):
    """Watches a wave: every access, after it was found valid, and every barrier."""

    def access(
        self,
        wave: Wave,
        sel: Selection,
        space: Space,
        store: ByteStore,
        index: Value,
        access: Access,
    ) -> None:
        """The selected threads access `access.bytes` bytes at byte indices of `store`."""

    def landed(self, wave: Wave, copy: Copy, done: npt.NDArray[np.bool_]) -> None:
        """The threads of an asynchronous copy at `done` have waited for it."""

    def barrier(
        self, wave: Wave, slots: npt.NDArray[np.intp], threads: npt.NDArray[np.intp]
    ) -> None:
        """A barrier released `threads` in the CTAs at `slots`."""
