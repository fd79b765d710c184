"""What one memory instruction costs: sectors of global memory, passes of shared memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phobos.emulator.wave import WARP

SECTOR = 32
"""Bytes that global memory moves at least."""

BANKS = 32
WORD = 4

Bytes = npt.NDArray[np.int64]
Threads = npt.NDArray[np.intp]


def sectors(threads: Threads, index: Bytes, size: int) -> tuple[int, int]:
    """Sectors that the warps of an access touch, and the fewest that its bytes fit in.

    `index` is each thread's first byte; a sector counts once for each warp that touches it.
    """
    warps = (threads // WARP).astype(np.int64)
    pieces = max(1, size // SECTOR)
    first = index // SECTOR
    touched = 0
    for piece in range(pieces):
        keys = (warps << 40) + first + piece
        touched += len(np.unique(keys))
    # Bytes that several threads read are needed once.
    distinct = np.unique((warps << 44) + index)
    per_warp = np.unique(distinct >> 44, return_counts=True)[1] * size
    return touched, int((-(-per_warp // SECTOR)).sum())


def passes(threads: Threads, address: Bytes, size: int) -> tuple[int, int]:
    """Passes over the banks of shared memory that an access takes, and the fewest it could.

    A pass serves each bank once; threads that read the same word share it. Accesses of 8 and 16
    bytes go half a warp and a quarter at a time.
    """
    words = max(1, size // WORD)
    lanes = WARP // words
    group = (threads // WARP) * words + (threads % WARP) // lanes
    groups, group = np.unique(group, return_inverse=True)
    word = address[:, None] // WORD + np.arange(words)
    keys = np.unique((group[:, None].astype(np.int64) << 32) + word)
    bank = (keys >> 32) * BANKS + keys % BANKS
    load = np.bincount(bank, minlength=len(groups) * BANKS).reshape(-1, BANKS)
    return int(load.max(axis=1).sum()), len(groups)
