"""`ph-expand-clusters`: add up the tiles of a cluster's CTAs through their shared memory.

    %s = cluster.sum %t : tensor<4x32x64xf32, #L> -> tensor<1x32x64xf32, #M>
    -->
    %b = memref.alloca() : memref<4x32x64xf32, #tile.shared_layout<..>, #tile.shared>
    tile.store %t, %b[%c0, %c0, %c0]
    cluster.barrier                                    // all CTAs have stored
    %p1 = cluster.load %b ahead 1 -> tensor<1x32x64xf32, #M>     // of the next CTA, and so on
    %p0 = cluster.load %b ahead 0 ...                  // this CTA's own
    cluster.arrive                                     // this CTA has read
    %s1 = arith.addf %p0, %p1
    ...
    cluster.wait %b                                    // nobody reads %b here any more

The buffer's layout suits the tile's stores and the loads of its parts. Each CTA begins with its
own tile and goes around: were all to ask one CTA first, that would have to serve all at a time. The
wait goes to the end of the block, or in front of what waits for the cluster next, so that CTAs go
on with what follows the sum meanwhile; until then no other buffer has the bytes of this one, and
the CTA does not end.

The pass refuses clusters on chips that have none, and sums that do not fit the kernel's cluster.

Precondition: `ph-assign-layouts`. Postcondition: no sums over clusters. Cost: one walk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import cluster, tile
from phobos.dialects.elements import element_bytes
from phobos.ir.kernel import kernels
from phobos.ir.locations import error_at
from phobos.ir.rewrite import insert_before
from phobos.layout import LinearLayout
from phobos.layout.cluster import cluster_buffer
from phobos.layout.shared import as_part
from phobos.targets.ptx.chips import CHIPS, Chip, chip
from phobos.targets.ptx.contract import NO_CLUSTER, Cluster
from phobos.targets.ptx.tensor_maps import cluster_of
from phobos.transforms.expand_exchanges import store_to_buffer


@dataclass(frozen=True)
class ExpandClustersPass(ModulePass):
    """Rewrites sums over clusters; refuses clusters that a chip cannot have."""

    name = "ph-expand-clusters"

    chip: str = "sm_80"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        target = chip(self.chip)
        for kernel in kernels(op):
            users = [inner for inner in kernel.walk() if inner.name.startswith("cluster.")]
            shape = cluster_of(kernel)
            if shape != NO_CLUSTER or users:
                _check_chip(users[0] if users else kernel, prod(shape), target)
            for inner in users:
                if isinstance(inner, cluster.SumOp | cluster.LoadOp):
                    _check_parts(inner, shape)
                if isinstance(inner, cluster.SumOp):
                    _expand(inner)


def _check_chip(place: Operation, size: int, target: Chip) -> None:
    if not target.has_clusters:
        having = [one.name for one in CHIPS.values() if one.has_clusters]
        raise error_at(
            place,
            f"{target.name} has no clusters, and this kernel asks for clusters of {size} CTAs",
            help=f"compile for a chip that has: {', '.join(having)}; or have `@cluster(1)`",
        )


def _check_parts(op: cluster.SumOp | cluster.LoadOp, shape: Cluster) -> None:
    if shape != (op.parts, 1, 1):
        extents = " x ".join(map(str, shape)) if prod(shape) > shape[0] else str(shape[0])
        raise error_at(
            op, f"{op.parts} parts of a sum in a kernel whose clusters have {extents} CTAs"
        )


def _expand(op: cluster.SumOp) -> None:
    result = op.result.type
    assert isinstance(result, TensorType)
    source, target = _layout(op.value, op), _layout(op.result, op)
    shared = cluster_buffer(source, as_part(target, source), element_bytes(op.value.type))
    zero, buffer, store = store_to_buffer(op, op.value, shared)
    loads = [cluster.LoadOp(buffer.memref, ahead, result) for ahead in range(op.parts)]
    sums = list(_sums(loads, result))
    wait = cluster.WaitOp(buffer.memref)
    # What is on its way longest first.
    asked = [*loads[1:], loads[0]]
    new = [zero, buffer, store, cluster.BarrierOp(), *asked, cluster.ArriveOp(), *sums]
    insert_before(op, new)
    insert_before(_next_meeting(op), [wait])
    wait.location = op.location
    op.result.replace_all_uses_with(sums[-1].results[0])
    op.detach()
    op.erase()


def _layout(value: SSAValue, op: Operation) -> LinearLayout:
    layout = tile.layout_of(value)
    if layout is None:
        raise error_at(op, f"`{op.name}` needs layouts: run ph-assign-layouts first")
    return layout


def _sums(loads: list[cluster.LoadOp], type_: TensorType) -> Iterator[Operation]:
    """The additions of the parts, in their order."""
    is_integer = isinstance(type_.element_type, IntegerType)
    total: SSAValue = loads[0].result
    for load in loads[1:]:
        add = (arith.AddiOp if is_integer else arith.AddfOp)(total, load.result)
        yield add
        total = add.result


def _next_meeting(op: Operation) -> Operation:
    """The op of the block in front of which the cluster must be through with an exchange."""
    current = op.next_op
    assert current is not None
    while current.next_op is not None:
        if any(isinstance(inner, cluster.MEETINGS) for inner in current.walk()):
            return current
        current = current.next_op
    return current
