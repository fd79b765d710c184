"""How many registers a thread may have, by the CTAs that share a multiprocessor."""

from __future__ import annotations

from xdsl.dialects import gpu

from phobos.dialects.ctx import LANES_PER_WARP
from phobos.ir.kernel import launch_bound, threads_of

REGISTERS_PER_SM = 65536
MAX_REGISTERS = 255
_GRANULE = 8
"""Registers of a thread are handed out in multiples of this."""
_PARTS = 4
"""Parts of a multiprocessor: each has a quarter of the registers, and runs whole warps."""


def whole_warps(threads: int) -> int:
    """Threads, rounded up to whole warps."""
    return -(-threads // LANES_PER_WARP) * LANES_PER_WARP


def registers_for(ctas: int, threads: int) -> int:
    """The registers of a thread with so many CTAs of so many threads on a multiprocessor."""
    warps = ctas * whole_warps(threads) // LANES_PER_WARP
    in_a_part = -(-warps // _PARTS)
    share = REGISTERS_PER_SM // _PARTS // (in_a_part * LANES_PER_WARP)
    return min(MAX_REGISTERS, share // _GRANULE * _GRANULE)


def registers_of(kernel: gpu.FuncOp) -> int:
    """The registers that `@launch` leaves a thread; those of one CTA where it says nothing."""
    available = registers_for(launch_bound(kernel, "min_ctas") or 1, threads_of(kernel))
    return min(available, launch_bound(kernel, "max_regs") or available)
