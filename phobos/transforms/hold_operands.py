"""`ph-hold-operands`: keep operands that a loop does not change in registers, where they fit.

    tile.store %a, %buffer[..]                    tile.store %a, %buffer[..]
    scf.for .. {                                  %held = tile.load %buffer[..]
      %d = tile.dot %buffer, %b, ..        -->    scf.for .. {
    }                                               %d = tile.dot %held, %b, ..
                                                  }

A left operand that was put into shared memory in front of a loop is loaded there too, as the
fragments that `mma` takes, rather than by every iteration: shared memory delivers 128 bytes a
clock to a whole multiprocessor, and where each warp has few rows, operands keep it as busy as
the products keep the tensor cores. It is done if the fragments, what the loop carries and what
its contractions give together leave a third of a thread's registers free.

Precondition: `ph-pipeline-loops`. Cost: one walk of each loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.context import Context
from xdsl.dialects import gpu, memref, scf
from xdsl.dialects.builtin import FixedBitwidthType, MemRefType, ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from phobos.analysis.occupancy import registers_of
from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.ir.kernel import kernels, threads_of
from phobos.ir.rewrite import OpBuilder
from phobos.layout import gf2
from phobos.layout.build import REGISTER
from phobos.transforms.assign_layouts import contraction_of, with_layout

FILLED = (2, 3)
"""The part of a thread's registers that is known to be taken at most."""


class HoldOperandsPass(ModulePass):
    """Loads left operands in front of the loops that do not change them."""

    name = "ph-hold-operands"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            for loop in list(kernel.walk()):
                if isinstance(loop, scf.ForOp):
                    _hold(loop, kernel)


def _hold(loop: scf.ForOp, kernel: gpu.FuncOp) -> None:
    threads = threads_of(kernel)
    available = registers_of(kernel)
    dots = [op for op in loop.body.block.ops if isinstance(op, DotOp)]
    taken = sum(map(_registers, _kept_tiles(loop, dots)))
    for dot in dots:
        if dot.instruction is None or dot.instruction.data.name != "mma":
            continue
        if not _is_filled_before(dot.a, loop):
            continue
        buffer = dot.a.type
        assert isinstance(buffer, MemRefType)
        fragments = with_layout(
            TensorType(buffer.element_type, buffer.get_shape()), contraction_of(dot, threads).a
        )
        needed = _registers_of(fragments)
        if (taken + needed) * FILLED[1] > available * FILLED[0]:
            continue
        taken += needed
        front = OpBuilder(loop)
        zero = front.constant(0)
        load = tile.LoadOp(dot.a, [zero] * len(buffer.get_shape()), fragments)
        load.location = dot.location
        held = front.add(load)
        block = loop.parent
        assert block is not None
        block.insert_ops_before(front.ops, loop)
        dot.operands[0] = held


def _kept_tiles(loop: scf.ForOp, dots: Sequence[DotOp]) -> Iterator[SSAValue]:
    """What a loop carries, and what contractions give that do not add to that."""
    last = loop.body.block.last_op
    assert last is not None
    yield from loop.body.block.args
    yield from (dot.result for dot in dots if dot.result not in last.operands)


def _is_filled_before(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a value is a buffer from in front of a loop that the loop only reads."""
    owner = value.owner
    if not isinstance(owner, memref.AllocaOp) or loop.is_ancestor(owner):
        return False
    inside = (use.operation for use in value.uses if loop.is_ancestor(use.operation))
    return all(isinstance(user, DotOp) for user in inside)


def _registers(value: SSAValue) -> int:
    return _registers_of(value.type) if isinstance(value.type, TensorType) else 0


def _registers_of(type_: TensorType) -> int:
    """32-bit registers of a thread that hold its share of a tile, each element once."""
    element, encoding = type_.element_type, type_.encoding
    assert isinstance(element, FixedBitwidthType)
    assert isinstance(encoding, tile.LayoutAttr)
    elements = 1 << gf2.rank(encoding.data.packed(REGISTER))
    return -(-elements * element.size // 4)
