"""Bulk copies: whole runs of bytes, and boxes of a tensor (TMA), between global and shared memory.

One thread starts a copy and goes on. One into shared memory tells a barrier (`MbarrierOp`) how many
bytes have landed, one to global memory belongs to a group that the thread can wait for::

    ptx.mbarrier arrive.expect_tx.shared::cta.b64 [%full], %bytes
    ptx.cp.async.bulk.tensor 2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%stage], [%map, {%column, %row}], [%full]

A tensor is named by the generic address of its map (128 bytes, aligned to 64) and the coordinates
of the box in it, innermost first, in elements.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.instruction import Effect, Instruction

MAX_TENSOR_AXES = 5
"""Axes that a tensor map can have."""

_BULK = "has_bulk_copy"
_HINT = "L2::cache_hint"
_BARRIER = "mbarrier::complete_tx::bytes"
_POLICY = "b64!"


def _to_shared(source: str, operands: str) -> tuple[Form, ...]:
    """Copies from global to shared memory: for one block, and for those of a mask of ranks.

    For one block the destination may be in ``shared::cta``, too, which is newer and what chips
    without multicast are fast with.
    """
    forms: list[Form] = []
    for space, since in (("shared::cluster", (8, 0)), ("shared::cta", (8, 6))):
        head = f"{space}.{source}.{_BARRIER}"
        forms.append(Form(head, operands, _BULK, since))
        forms.append(Form(f"{head}.{_HINT}", f"{operands}, {_POLICY}", _BULK, since))
    many = f"shared::cluster.{source}.{_BARRIER}.multicast::cluster"
    forms.append(Form(many, f"{operands}, b16", "has_multicast", (8, 0)))
    forms.append(Form(f"{many}.{_HINT}", f"{operands}, b16, {_POLICY}", "has_multicast", (8, 0)))
    return tuple(forms)


def _from_shared(destination: str, operands: str) -> tuple[Form, ...]:
    """Copies from shared to global memory."""
    head = f"{destination}.bulk_group"
    return (
        Form(head, operands, _BULK, (8, 0)),
        Form(f"{head}.{_HINT}", f"{operands}, {_POLICY}", _BULK, (8, 0)),
    )


def _tensor_forms(axes: int) -> tuple[Form, ...]:
    """All copies of boxes of a tensor with this many axes."""
    numbered = (
        *_to_shared("global.tile?", f"[shared], [map]{{{axes}}}, [shared]"),
        *_from_shared("global.shared::cta.tile?", f"[map]{{{axes}}}, [shared]"),
    )
    return tuple(Form(f"{axes}d.{f.pattern}", f.signature, f.needs, f.since) for f in numbered)


class CpAsyncBulkOp(Instruction):
    """Copy a run of bytes, a multiple of 16, as are both addresses.

    To shared memory: destination, source, bytes, and the barrier that counts them; a mask of the
    blocks that get them, each at the same place with its own barrier; a cache policy. Also from
    shared memory to that of another block of the cluster, where the barrier is, too. To global
    memory: destination, source, bytes, a cache policy.
    """

    name = "ptx.cp.async.bulk"
    effect = Effect.WRITE
    guardable = True
    forms = (
        *_to_shared("global", "[shared], [global], u32, [shared]"),
        *_from_shared("global.shared::cta", "[global], [shared], u32"),
        Form(
            f"shared::cluster.shared::cta.{_BARRIER}",
            "[shared], [shared], u32, [shared]",
            "has_clusters",
            (8, 0),
        ),
    )


class CpAsyncBulkTensorOp(Instruction):
    """Copy a box of a tensor, whose shape and swizzle its map gives.

    To shared memory: destination, map and coordinates, and the barrier that counts the bytes of
    the whole box, with zeros for what is outside of the tensor; a mask of blocks and a cache
    policy as for `CpAsyncBulkOp`. To global memory: map and coordinates, source, cache policy;
    what is outside is not written.
    """

    name = "ptx.cp.async.bulk.tensor"
    effect = Effect.WRITE
    guardable = True
    forms = tuple(form for axes in range(1, MAX_TENSOR_AXES + 1) for form in _tensor_forms(axes))

    @property
    def tensor_map(self) -> SSAValue:
        """The generic address of the map."""
        return self.operands[0 if "bulk_group" in self.suffix.split(".") else 1]


class CpAsyncBulkCommitGroupOp(Instruction):
    """Make the bulk copies to global memory since the last commit a group."""

    name = "ptx.cp.async.bulk.commit_group"
    effect = Effect.WRITE
    forms = (Form("", "", _BULK, (8, 0)),)


class CpAsyncBulkWaitGroupOp(Instruction):
    """Wait until at most so many of the newest groups are on their way.

    With ``read`` only until the others have read their source, which may then be overwritten.
    """

    name = "ptx.cp.async.bulk.wait_group"
    effect = Effect.WRITE
    forms = (Form("read?", "#0..63", _BULK, (8, 0)),)
