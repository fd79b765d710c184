"""Barriers, fences and other control of execution that is no branch."""

from __future__ import annotations

from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.instruction import Effect, Instruction

_BARRIER = "#0..15"


class BarOp(Instruction):
    """CTA barrier: number, and how many threads take part if not all."""

    name = "ptx.bar"
    effect = Effect.WRITE
    forms = (
        Form("sync", _BARRIER),
        Form("sync", f"{_BARRIER}, u32"),
        Form("arrive", f"{_BARRIER}, u32"),
        Form("red.{and|or}.pred", f"pred = {_BARRIER}, pred!"),
        Form("red.popc.u32", f"b32 = {_BARRIER}, pred!"),
        Form("warp.sync", "b32"),
    )


class BarrierOp(Instruction):
    """CTA barrier that a diverged warp may run, unless ``aligned``."""

    name = "ptx.barrier"
    effect = Effect.WRITE
    forms = (
        Form("sync.aligned?", _BARRIER),
        Form("sync.aligned?", f"{_BARRIER}, u32"),
        Form("arrive.aligned?", f"{_BARRIER}, u32"),
        Form("red.{and|or}.aligned?.pred", f"pred = {_BARRIER}, pred!"),
        Form("red.popc.aligned?.u32", f"b32 = {_BARRIER}, pred!"),
    )


class BarrierClusterOp(Instruction):
    """Barrier of all threads of a cluster, in two halves: arrive, and wait for all others.

    What is before an arrival is seen behind the wait, unless the arrival is relaxed. ``aligned``
    if all threads of a warp run it together.
    """

    name = "ptx.barrier.cluster"
    effect = Effect.WRITE
    forms = (
        Form("{arrive|wait}.aligned?", "", "has_clusters", (7, 8)),
        Form("arrive.{release|relaxed}.aligned?", "", "has_clusters", (8, 0)),
        Form("wait.acquire.aligned?", "", "has_clusters", (8, 0)),
    )


class SetmaxnregOp(Instruction):
    """Give registers of a warpgroup back to its block, or take more.

    All its warps run it, ``inc`` waits until there are as many. Needs a kernel whose number of
    registers is known: one with ``maxntid``.
    """

    name = "ptx.setmaxnreg"
    effect = Effect.WRITE
    forms = (Form("{inc|dec}.sync.aligned.u32", "#24..256/8", "has_setmaxnreg", (8, 0)),)


class FenceOp(Instruction):
    """Order memory accesses; acq_rel is the cheaper kind."""

    name = "ptx.fence"
    effect = Effect.WRITE
    guardable = True
    forms = (
        Form("{sc|acq_rel}.{cta|gpu|sys}", ""),
        Form("{sc|acq_rel}.cluster", "", "has_clusters", (7, 8)),
        Form("{acquire|release}.{cta|gpu|sys}", "", "has_one_way_fence", (8, 6)),
        Form("mbarrier_init.release.cluster", "", "has_clusters", (8, 0)),
        Form("proxy.async", "", "has_bulk_copy", (8, 0)),
        Form("proxy.async.{global|shared::cta|shared::cluster}", "", "has_bulk_copy", (8, 0)),
    )


class MembarOp(Instruction):
    """Order memory accesses, the older spelling."""

    name = "ptx.membar"
    effect = Effect.WRITE
    guardable = True
    forms = (Form("{cta|gl|sys}", ""),)


class TrapOp(Instruction):
    """Stop the kernel with an error."""

    name = "ptx.trap"
    effect = Effect.WRITE
    guardable = True
    forms = (Form("", ""),)


class BrkptOp(Instruction):
    """Stop in the debugger."""

    name = "ptx.brkpt"
    effect = Effect.WRITE
    guardable = True
    forms = (Form("", ""),)


class NanosleepOp(Instruction):
    """Let the thread wait for about so many nanoseconds."""

    name = "ptx.nanosleep"
    effect = Effect.WRITE
    guardable = True
    forms = (Form("u32", "u32"),)
