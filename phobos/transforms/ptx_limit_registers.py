"""`ph-ptx-limit-registers`: tell ptxas how many registers a thread may use.

    ptx.entry @k() { ... 56 registers alive at once ... } for 256 threads
    -->
    ptx.entry @k() maxnreg 64 { ... }

Left alone, ptxas aims at many threads on a multiprocessor and for that puts the loads of a
kernel one behind the other. Told that it may use any number, it takes more than the loads need
and few threads fit. What a kernel should have lies between: the registers that are alive in the
order of the program, which has its loads first, rounded up to what one more CTA would not
allow. With `@launch` the number of CTAs is declared (`minnctapersm`), without it, where the PTX
declares no block size, the number of registers (`maxnreg`).

A kernel that would need more registers than a thread can have is put into another order first
(`ph-ptx-reorder`). Kernels that say it themselves keep what they say, and the number is left to
ptxas for those with matrix instructions: their accumulators fill the registers anyway.

A kernel whose values cannot all be in registers, in whatever order they are computed, gets a
warning, since ptxas has to spill some to memory. Of 359 random kernels (products, elementwise
chains, reductions, scans and transposes, for all chips) ptxas 13.0 spills in 92: there are
warnings of 75 of these, and of one of the others. The 17 without a warning need more for what is
not kept: loads that ptxas leaves early, and what is on the way to a result. Cost: about 4 us
an instruction.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, IntegerAttr, ModuleOp
from xdsl.passes import ModulePass

from phobos.analysis.occupancy import MAX_REGISTERS, registers_for, whole_warps
from phobos.analysis.register_pressure import PressureCount
from phobos.diagnostics import Diagnostic, tell
from phobos.dialects import ptx
from phobos.ir.locations import location_of
from phobos.targets.ptx.chips import Chip, chip
from phobos.transforms.ptx_reorder import has_matrix_instruction, reorder_blocks

THREADS = "phobos.threads"
"""On an entry: the threads of a block that it is compiled for."""
RESERVE = 6
"""What ptxas needs beside the values of a program, for addresses and copies of its own."""
GROUP = "fallback"
_FOR_ADDRESSES = 1
"""The least that it takes to get at memory, beside the values that are kept."""


class PtxLimitRegistersPass(ModulePass):
    """Declares for every kernel how many registers or CTAs it should have."""

    name = "ph-ptx-limit-registers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Limit the registers of every kernel."""
        for module in op.body.block.ops:
            if isinstance(module, ptx.PtxModuleOp):
                target = chip(module.chip)
                for entry in module.body.ops:
                    if isinstance(entry, ptx.EntryOp):
                        limit_registers(entry, target)


def limit_registers(entry: ptx.EntryOp, target: Chip) -> None:
    """Declare one kernel's registers, unless it does so itself."""
    attribute = entry.attributes.get(THREADS)
    if not isinstance(attribute, IntegerAttr):
        return
    threads = attribute.value.data
    available = min(registers_for(entry.minnctapersm or 1, threads), entry.maxnreg or MAX_REGISTERS)
    count = PressureCount(entry)
    has_matrices = any(map(has_matrix_instruction, entry.body.blocks))
    has_too_many = count.largest.alive + RESERVE > available
    if has_too_many:
        reorder_blocks(count, available - RESERVE)
    _warn_of_spills(entry, count.largest.kept, available)
    if entry.minnctapersm is not None or entry.maxnreg is not None or has_matrices:
        return
    # ptxas puts loads early again as far as it has registers for that.
    needed = MAX_REGISTERS if has_too_many else count.largest.alive + RESERVE
    ctas, registers = occupancy(needed, threads, target)
    if entry.maxntid is None:
        entry.properties["maxnreg"] = IntAttr(registers)
    else:
        entry.properties["minnctapersm"] = IntAttr(ctas)


def _warn_of_spills(entry: ptx.EntryOp, needed: int, limit: int) -> None:
    """Warns of a kernel whose values do not fit the registers, however ptxas orders it."""
    if needed + _FOR_ADDRESSES <= limit:
        return
    tell(
        Diagnostic.warning(
            f"a thread of `{entry.sym_name}` keeps {needed} registers of values or more at one"
            f" time and has {limit}: what does not fit is spilled to memory, which is slow",
            location_of(entry),
            help="use smaller tiles or more threads (@launch), or walk the tile in a loop",
            group=GROUP,
        )
    )


def occupancy(needed: int, threads: int, target: Chip) -> tuple[int, int]:
    """The most CTAs that leave each thread `needed` registers, and how many they leave it.

    Where not even one does, ptxas has to do with what one leaves.
    """
    most = min(target.max_blocks_per_sm, target.max_threads_per_sm // whole_warps(threads))
    for ctas in range(max(1, most), 0, -1):
        registers = registers_for(ctas, threads)
        if registers >= needed:
            return ctas, registers
    return 1, registers_for(1, threads)
