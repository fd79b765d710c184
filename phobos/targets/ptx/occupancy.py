"""How many CTAs of a kernel run on a multiprocessor at one time.

The rules are those of NVIDIA's occupancy calculator: registers are handed out to warps in units
of 256, from the register file of one of four partitions; shared memory to CTAs in units of 128
bytes, with what the driver keeps for itself.
"""

from __future__ import annotations

from phobos.record import Value, record
from phobos.targets.ptx.chips import MAX_REGISTERS, REGISTER_FILE, WARP_LANES, Chip

_REGISTER_UNIT = 256
_PARTITIONS = 4
_SHARED_UNIT = 128


@record
class Occupancy(Value):
    """CTAs of a multiprocessor, and what does not allow more."""

    ctas: int
    share: float
    """Threads that run, of those that could, from 0 to 1."""
    limit: str


def occupancy(threads: int, registers: int, shared: int, chip: Chip) -> Occupancy:
    """The occupancy of a kernel.

    `registers` are those of a thread, `shared` the bytes of a CTA.

    >>> from phobos.targets.ptx.chips import chip
    >>> occupancy(256, 32, 0, chip("sm_80"))
    Occupancy(ctas=8, share=1.0, limit='threads')
    >>> occupancy(256, 128, 40960, chip("sm_80"))
    Occupancy(ctas=2, share=0.25, limit='registers')
    """
    warps = -(-threads // WARP_LANES)
    limits = {
        "threads": chip.max_threads_per_sm // (warps * WARP_LANES),
        "CTAs": chip.max_blocks_per_sm,
    }
    if registers:
        per_warp = _rounded(registers * WARP_LANES, _REGISTER_UNIT)
        of_partition = REGISTER_FILE // _PARTITIONS // per_warp
        limits["registers"] = of_partition * _PARTITIONS // warps
    if shared:
        per_cta = _rounded(shared + chip.reserved_shared, _SHARED_UNIT)
        limits["shared memory"] = chip.shared_per_sm // per_cta
    limit = min(limits, key=limits.__getitem__)
    ctas = limits[limit]
    return Occupancy(ctas, ctas * warps * WARP_LANES / chip.max_threads_per_sm, limit)


def least_ctas(threads: int, chip: Chip) -> int:
    """The CTAs that a multiprocessor has registers for, whatever their threads need; 1 or more.

    >>> from phobos.targets.ptx.chips import chip
    >>> least_ctas(128, chip("sm_80")), least_ctas(1024, chip("sm_80"))
    (2, 1)
    """
    return max(1, occupancy(threads, MAX_REGISTERS, 0, chip).ctas)


def shared_for(ctas: int, chip: Chip) -> int:
    """The bytes of shared memory that each of so many CTAs of a multiprocessor can have.

    >>> from phobos.targets.ptx.chips import chip
    >>> shared_for(2, chip("sm_80")), shared_for(1, chip("sm_80"))
    (82944, 166912)
    """
    return chip.shared_per_sm // ctas // _SHARED_UNIT * _SHARED_UNIT - chip.reserved_shared


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit
