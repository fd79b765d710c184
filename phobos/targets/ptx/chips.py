"""What each supported chip has: one record per compute capability.

Passes ask a record for a capability by name and never compare chip numbers. The rows were settled
by assembling every form with ptxas; limits are those of the CUDA programming guide, table
"technical specifications per compute capability".
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from phobos.diagnostics import PhobosError, did_you_mean

Version = tuple[int, int]

WARP_LANES = 32
"""Lanes of a warp, on every chip."""

MAX_STATIC_SHARED = 48 * 1024
"""Bytes of shared memory that variables of fixed size may take together, on every chip."""

REGISTER_FILE = 64 * 1024
"""32-bit registers of a multiprocessor, on every chip."""

MAX_REGISTERS = 255
"""Registers that one thread can address."""

MAX_THREADS = 1024
"""Threads of a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One target of code generation.

    ``ptx_version`` is what is printed unless an instruction needs more; ``ptx_floor`` the first
    version that knows the chip. Shared memory is in bytes.
    """

    name: str
    ptx_floor: Version
    ptx_version: Version

    max_threads_per_sm: int
    max_blocks_per_sm: int
    shared_per_sm: int
    max_dynamic_shared: int
    """The most a block may ask for at launch."""
    reserved_shared: int = 1024
    """Shared memory that the driver takes from each block for itself."""

    prefers_cta_destination: bool = False
    """Whether bulk copies to ``shared::cluster`` are slow: ptxas puts a check around each."""

    has_cp_async: bool = False
    """cp.async: copies from global to shared memory that run beside the threads."""
    has_mbarrier: bool = False
    """Barrier objects in shared memory."""
    has_redux: bool = False
    """Integer reduction over a warp in one instruction."""
    has_half_minmax: bool = False
    """min and max of f16."""
    has_half_relu: bool = False
    """fma.relu of f16."""
    has_nan_minmax: bool = False
    """min and max that propagate NaN."""
    has_bf16: bool = False
    """fma, min, max, neg and abs of bf16, and conversion from and to f32."""
    has_tf32: bool = False
    """Conversion to tf32 by rounding half away from zero, and its mma."""
    has_packed_cvt: bool = False
    """Conversion of two f32 to f16x2 or bf16x2 at once."""
    has_cache_policy: bool = False
    """createpolicy and L2 cache hints, and the L2 prefetch of 256 bytes."""
    has_mma_k16: bool = False
    """mma with the larger depths: f16 k16, s8 k32, bf16, tf32."""
    has_double_mma: bool = False
    """mma m8n8k4 of f64."""
    has_xorsign_minmax: bool = False
    """min and max with .xorsign.abs."""
    has_fp8: bool = False
    """Conversion from and to e4m3 and e5m2, and their mma."""
    has_bf16_arithmetic: bool = False
    """add, sub, mul, setp, ex2, tanh, atomics of bf16, and all its conversions."""
    has_packed_int_arithmetic: bool = False
    """add, min and max of two 16-bit integers at once."""
    has_tf32_nearest: bool = False
    """Conversion to tf32 by rounding to nearest even."""
    has_vector_atomics: bool = False
    """red and atom of adjacent elements of global memory."""
    has_stmatrix: bool = False
    """stmatrix."""
    has_clusters: bool = False
    """Clusters of blocks and their shared memory."""
    has_elect: bool = False
    """elect.sync."""
    has_bulk_copy: bool = False
    """Bulk and tensor copies (TMA)."""
    has_multicast: bool = False
    """Bulk copies to several blocks of a cluster at once, by the hardware."""
    has_setmaxnreg: bool = False
    """setmaxnreg: registers that move between the warpgroups of a block."""
    has_one_way_fence: bool = False
    """fence.acquire and fence.release by themselves."""
    has_double_mma_m16: bool = False
    """mma m16n8 of f64."""
    has_wgmma: bool = False
    """wgmma: asynchronous products of a warpgroup on tiles in shared memory."""
    has_256bit_access: bool = False
    """Global loads and stores of 32 bytes."""
    has_three_input_minmax: bool = False
    """min and max of three f32."""

    @property
    def number(self) -> int:
        """The compute capability as one number: 80 for sm_80."""
        return int(self.name.removeprefix("sm_").rstrip("af"))

    @property
    def is_exact(self) -> bool:
        """Whether only GPUs of the very same compute capability run code for it: sm_90a."""
        return self.name.endswith("a")

    def runs_on(self, capability: int) -> bool:
        """Whether a GPU of this compute capability (e.g. 90) runs code for the chip."""
        return self.number == capability if self.is_exact else self.number <= capability

    @property
    def capabilities(self) -> frozenset[str]:
        """The names of the capabilities that the chip has."""
        return frozenset(name for name in CAPABILITIES if getattr(self, name))

    @property
    def bulk_destination(self) -> str:
        """How bulk copies spell a destination in the shared memory of their own block.

        ``shared::cta`` needs a newer version of PTX, so it is left to the chips that profit.
        """
        return "shared::cta" if self.prefers_cta_destination else "shared::cluster"

    def has(self, capability: str | None) -> bool:
        """Whether the chip has a capability given by name; every chip has None."""
        return capability is None or getattr(self, capability)


CAPABILITIES: tuple[str, ...] = tuple(f.name for f in fields(Chip) if f.name.startswith("has_"))
"""The names of all capabilities."""

_AMPERE = {
    "has_cp_async": True,
    "has_mbarrier": True,
    "has_redux": True,
    "has_half_minmax": True,
    "has_half_relu": True,
    "has_nan_minmax": True,
    "has_bf16": True,
    "has_tf32": True,
    "has_packed_cvt": True,
    "has_cache_policy": True,
    "has_mma_k16": True,
    "has_double_mma": True,
}
_AMPERE_CONSUMER = {**_AMPERE, "has_xorsign_minmax": True}
_ADA = {**_AMPERE_CONSUMER, "has_fp8": True}
_HOPPER = {
    **_ADA,
    "has_bf16_arithmetic": True,
    "has_packed_int_arithmetic": True,
    "has_tf32_nearest": True,
    "has_vector_atomics": True,
    "has_stmatrix": True,
    "has_clusters": True,
    "has_elect": True,
    "has_bulk_copy": True,
    "has_one_way_fence": True,
    "has_double_mma_m16": True,
}
_BLACKWELL = {**_HOPPER, "has_256bit_access": True, "has_three_input_minmax": True}

_KIB = 1024

_SM_90 = Chip(
    name="sm_90",
    ptx_floor=(7, 8),
    ptx_version=(8, 0),
    max_threads_per_sm=2048,
    max_blocks_per_sm=32,
    shared_per_sm=228 * _KIB,
    max_dynamic_shared=227 * _KIB,
    **_HOPPER,
)

_ROWS = (
    Chip(
        name="sm_75",
        ptx_floor=(6, 3),
        ptx_version=(7, 0),
        max_threads_per_sm=1024,
        max_blocks_per_sm=16,
        shared_per_sm=64 * _KIB,
        max_dynamic_shared=64 * _KIB,
        reserved_shared=0,
    ),
    Chip(
        name="sm_80",
        ptx_floor=(7, 0),
        ptx_version=(7, 4),
        max_threads_per_sm=2048,
        max_blocks_per_sm=32,
        shared_per_sm=164 * _KIB,
        max_dynamic_shared=163 * _KIB,
        **_AMPERE,
    ),
    Chip(
        name="sm_86",
        ptx_floor=(7, 1),
        ptx_version=(7, 4),
        max_threads_per_sm=1536,
        max_blocks_per_sm=16,
        shared_per_sm=100 * _KIB,
        max_dynamic_shared=99 * _KIB,
        **_AMPERE_CONSUMER,
    ),
    Chip(
        name="sm_89",
        ptx_floor=(7, 8),
        ptx_version=(8, 1),
        max_threads_per_sm=1536,
        max_blocks_per_sm=24,
        shared_per_sm=100 * _KIB,
        max_dynamic_shared=99 * _KIB,
        **_ADA,
    ),
    _SM_90,
    replace(
        _SM_90,
        name="sm_90a",
        ptx_floor=(8, 0),
        has_multicast=True,
        has_setmaxnreg=True,
        has_wgmma=True,
    ),
    Chip(
        name="sm_120",
        ptx_floor=(8, 7),
        ptx_version=(8, 7),
        max_threads_per_sm=1536,
        max_blocks_per_sm=24,
        shared_per_sm=100 * _KIB,
        max_dynamic_shared=99 * _KIB,
        prefers_cta_destination=True,
        **_BLACKWELL,
    ),
)

CHIPS: dict[str, Chip] = {record.name: record for record in _ROWS}
"""The supported chips by name, oldest first; a chip with a letter follows the one without."""


def chip(name: str) -> Chip:
    """The record of a chip by its name, ``sm_80``; PhobosError if it is not supported."""
    record = CHIPS.get(name)
    if record is None:
        raise PhobosError.at(
            None,
            f"`{name}` is not a supported chip; supported are {', '.join(CHIPS)}",
            help=did_you_mean(name, CHIPS),
        )
    return record


def newest_chip_for(capability: int) -> Chip | None:
    """The newest chip whose code a GPU of this compute capability (e.g. 90) runs, or None.

    Of sm_90 and sm_90a the latter counts as newer.
    """
    runnable = [record for record in CHIPS.values() if record.runs_on(capability)]
    return runnable[-1] if runnable else None
