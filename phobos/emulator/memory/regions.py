"""The map of the emulated 64-bit address space.

    0x1000_0000_0000   the cluster's shared memory, as generic addresses see it
    0x2000_0000_0000   the thread's local memory, likewise
    0x7000_0000_0000   global memory: every buffer in a slot of its own of 16 GiB

A slot is far larger than any buffer, so a wild access is still known to belong to the buffer it
started from. Shared and local addresses proper are the low 32 bits.

Bits 24 to 31 of a shared address say whose memory it is: 0 stands for the CTA itself, 1 + r for
the CTA with rank r in the cluster.
"""

from __future__ import annotations

import numpy as np

REGION_SHIFT = 44
SHARED_REGION = 1
LOCAL_REGION = 2
GLOBAL_REGION = 7

SHARED_WINDOW = SHARED_REGION << REGION_SHIFT
LOCAL_WINDOW = LOCAL_REGION << REGION_SHIFT
GLOBAL_BASE = GLOBAL_REGION << REGION_SHIFT

SLOT_SHIFT = 34
SLOT_BYTES = 1 << SLOT_SHIFT
SLOT_LEAD = 1 << 20
"""Bytes of a slot before its buffer: an access in front of a buffer lands in its own slot."""

BUFFER_ALIGNMENT = 256

RANK_SHIFT = 24
IN_CTA = (1 << RANK_SHIFT) - 1

LOW_32 = np.uint64(0xFFFF_FFFF)
