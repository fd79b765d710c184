"""Copies from global to shared memory that run beside the threads, and the barriers they signal."""

from __future__ import annotations

from phobos.dialects.ptx.forms import Form, Version
from phobos.dialects.ptx.instruction import Effect, Instruction

_CLUSTERS: tuple[str, Version] = ("has_clusters", (8, 0))

_PREFETCH = "{L2::64B|L2::128B|L2::256B}"


def _copy_forms() -> tuple[Form, ...]:
    """All sizes through L1 (ca), 16 bytes past it (cg)."""
    rows: list[Form] = []
    for cache, sizes in (("ca", "#4|8|16"), ("cg", "#16")):
        head, operands = f"{cache}.shared.global", f"[shared], [global], {sizes}"
        rows += [
            Form(head, operands, "has_cp_async", (7, 0)),
            Form(head, f"{operands}, b32", "has_cp_async", (7, 0)),
            Form(f"{head}.{_PREFETCH}", operands, "has_cp_async", (7, 4)),
            Form(f"{head}.{_PREFETCH}", f"{operands}, b32", "has_cp_async", (7, 4)),
            Form(
                f"{head}.L2::cache_hint.{_PREFETCH}?",
                f"{operands}, b64!",
                "has_cp_async",
                (7, 4),
            ),
            Form(
                f"{head}.L2::cache_hint.{_PREFETCH}?",
                f"{operands}, b32, b64!",
                "has_cp_async",
                (7, 4),
            ),
        ]
    return tuple(rows)


class CpAsyncOp(Instruction):
    """Copy 4, 8 or 16 bytes to shared memory without waiting.

    With another operand only so many bytes are read and the rest of the destination is zeroed.
    """

    name = "ptx.cp.async"
    effect = Effect.WRITE
    guardable = True
    forms = _copy_forms()


class CpAsyncCommitGroupOp(Instruction):
    """Make the copies since the last commit a group."""

    name = "ptx.cp.async.commit_group"
    effect = Effect.WRITE
    forms = (Form("", "", "has_cp_async", (7, 0)),)


class CpAsyncWaitGroupOp(Instruction):
    """Wait until at most so many of the newest groups are still on their way."""

    name = "ptx.cp.async.wait_group"
    effect = Effect.WRITE
    forms = (Form("", "#0..63", "has_cp_async", (7, 0)),)


class CpAsyncWaitAllOp(Instruction):
    """Wait for all copies of this thread."""

    name = "ptx.cp.async.wait_all"
    effect = Effect.WRITE
    forms = (Form("", "", "has_cp_async", (7, 0)),)


class CpAsyncMbarrierArriveOp(Instruction):
    """Let the copies of this thread arrive on a barrier when they land."""

    name = "ptx.cp.async.mbarrier.arrive"
    effect = Effect.WRITE
    forms = (Form("noinc?.shared.b64", "[shared]", "has_mbarrier", (7, 0)),)


class MbarrierOp(Instruction):
    """Barrier objects in shared memory: set up, arrive, expect bytes, and wait for a phase.

    A wait for a parity is true when the phase of that parity has ended; a new barrier is in the
    phase of parity 0. An address of ``shared::cluster`` is one of `MapaOp`, of a barrier of
    another block, and only arrivals go there.
    """

    name = "ptx.mbarrier"
    effect = Effect.WRITE
    guardable = True
    forms = (
        Form("init.shared.b64", "[shared], u32", "has_mbarrier", (7, 0)),
        Form("inval.shared.b64", "[shared]", "has_mbarrier", (7, 0)),
        Form("arrive.shared.b64", "b64 = [shared]", "has_mbarrier", (7, 0)),
        Form("arrive.shared.b64", "b64 = [shared], u32", "has_bulk_copy", (7, 8)),
        Form("arrive.shared::cta.b64", "_ = [shared]", "has_mbarrier", (7, 8)),
        Form("arrive.shared::cta.b64", "_ = [shared], u32", "has_bulk_copy", (7, 8)),
        Form("arrive.{release.cluster}?.shared::cluster.b64", "_ = [shared]", *_CLUSTERS),
        Form("arrive.{release.cluster}?.shared::cluster.b64", "_ = [shared], u32", *_CLUSTERS),
        Form("arrive.noComplete.shared.b64", "b64 = [shared], u32", "has_mbarrier", (7, 0)),
        Form("arrive.expect_tx.shared.b64", "b64 = [shared], u32", "has_bulk_copy", (8, 0)),
        Form("arrive.expect_tx.shared::cta.b64", "_ = [shared], u32", "has_bulk_copy", (8, 0)),
        Form(
            "arrive.expect_tx.{release.cluster}?.shared::cluster.b64",
            "_ = [shared], u32",
            *_CLUSTERS,
        ),
        Form("expect_tx.relaxed.cta.shared::cta.b64", "[shared], u32", "has_bulk_copy", (8, 0)),
        Form("test_wait.shared.b64", "pred = [shared], b64!", "has_mbarrier", (7, 0)),
        Form("test_wait.parity.shared.b64", "pred = [shared], u32", "has_mbarrier", (7, 1)),
        Form("try_wait.shared.b64", "pred = [shared], b64!", "has_bulk_copy", (7, 8)),
        Form("try_wait.parity.shared.b64", "pred = [shared], u32", "has_bulk_copy", (7, 8)),
        Form(
            "try_wait.parity.{acquire.cta|acquire.cluster}.shared::cta.b64",
            "pred = [shared], u32",
            "has_bulk_copy",
            (8, 0),
        ),
    )
