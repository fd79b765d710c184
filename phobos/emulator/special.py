"""Special registers: thread, CTA and grid indices, lane masks, clocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phobos.emulator.types import Value, scalar
from phobos.emulator.wave import WARP, Wave

_TICKS_PER_READ = 4
"""Clock ticks between two reads of a clock; only monotony matters."""


def special_register(name: str) -> Callable[[Wave], Value] | None:
    """The function that reads `%name` (given without the percent sign), or None if unknown.

    It returns a scalar where the value is the same in all threads, else an array over the wave.
    """
    return _REGISTERS.get(name)


def _component(axis: int, which: str) -> Callable[[Wave], Value]:
    def thread(wave: Wave) -> Value:
        x, y, _ = wave.geometry.block
        number = wave.in_cta
        return (number % x, number // x % y, number // (x * y))[axis]

    def cta(wave: Wave) -> Value:
        x, y, _ = wave.geometry.grid
        number = wave.ctas[wave.slot]
        return (number % x, number // x % y, number // (x * y))[axis]

    def threads(wave: Wave) -> Value:
        return scalar(np.int64(wave.geometry.block[axis]))

    def ctas(wave: Wave) -> Value:
        return scalar(np.int64(wave.geometry.grid[axis]))

    def cluster(wave: Wave) -> Value:
        return cta(wave) // wave.geometry.cluster[axis]

    def clusters(wave: Wave) -> Value:
        geometry = wave.geometry
        return scalar(np.int64(geometry.grid[axis] // geometry.cluster[axis]))

    def cta_in_cluster(wave: Wave) -> Value:
        return cta(wave) % wave.geometry.cluster[axis]

    def ctas_in_cluster(wave: Wave) -> Value:
        return scalar(np.int64(wave.geometry.cluster[axis]))

    return {
        "tid": thread,
        "ctaid": cta,
        "ntid": threads,
        "nctaid": ctas,
        "clusterid": cluster,
        "nclusterid": clusters,
        "cluster_ctaid": cta_in_cluster,
        "cluster_nctaid": ctas_in_cluster,
    }[which]


_COMPONENTS = (
    *("tid", "ntid", "ctaid", "nctaid"),
    *("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"),
)


def _lane(wave: Wave) -> Value:
    return wave.indices % WARP


def _lane_mask(relation: Callable[[int, int], bool]) -> Callable[[Wave], Value]:
    table = np.array(
        [sum(1 << other for other in range(WARP) if relation(other, lane)) for lane in range(WARP)],
        dtype=np.int64,
    )
    return lambda wave: table[wave.indices % WARP]


def _constant(value: int) -> Callable[[Wave], Value]:
    return lambda wave: scalar(np.int64(value))


def _clock(shift: int) -> Callable[[Wave], Value]:
    def read(wave: Wave) -> Value:
        wave.clock += _TICKS_PER_READ
        return scalar(np.int64(wave.clock >> shift))

    return read


_REGISTERS: dict[str, Callable[[Wave], Value]] = {
    **{
        f"{which}.{letter}": _component(axis, which)
        for which in _COMPONENTS
        for axis, letter in enumerate("xyz")
    },
    "laneid": _lane,
    "warpid": lambda wave: wave.in_cta // WARP,
    "nwarpid": lambda wave: scalar(np.int64(wave.geometry.padded // WARP)),
    "smid": lambda wave: wave.slot,
    "nsmid": lambda wave: scalar(np.int64(len(wave.ctas))),
    "gridid": _constant(1),
    "cluster_ctarank": lambda wave: wave.slot % wave.geometry.cluster_size,
    "cluster_nctarank": lambda wave: scalar(np.int64(wave.geometry.cluster_size)),
    "is_explicit_cluster": lambda wave: scalar(np.int64(wave.geometry.cluster_size > 1)),
    "lanemask_eq": _lane_mask(lambda other, lane: other == lane),
    "lanemask_lt": _lane_mask(lambda other, lane: other < lane),
    "lanemask_le": _lane_mask(lambda other, lane: other <= lane),
    "lanemask_gt": _lane_mask(lambda other, lane: other > lane),
    "lanemask_ge": _lane_mask(lambda other, lane: other >= lane),
    "clock": _clock(0),
    "clock_hi": _clock(32),
    "clock64": _clock(0),
    "globaltimer": _clock(0),
    "globaltimer_lo": _clock(0),
    "globaltimer_hi": _clock(32),
    "dynamic_smem_size": lambda wave: scalar(np.int64(wave.memories.layout.dynamic_shared)),
    "aggr_smem_size": lambda wave: scalar(np.int64(wave.memories.layout.shared_bytes)),
    "total_smem_size": lambda wave: scalar(np.int64(wave.memories.layout.shared_bytes)),
}
