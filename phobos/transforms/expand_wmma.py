"""`ph-expand-wmma`: put the operands of `wmma` products into shared memory, sums into fragments.

    scf.for .. iter_args(%c = %zero) {           %f = tile.to_fragments %zero
      %d = tile.dot %a, %b, %c using <"wmma ..>  scf.for .. iter_args(%c = %f) {
      scf.yield %d                                 tile.store %a, %A[..]
    }                                        -->   tile.store %b, %B[..]
                                                   %d = tile.dot %A, %B, %c using <"wmma ..>
                                                   scf.yield %d
                                                 }
                                                 %t = tile.from_fragments %d

`wmma` loads its operands from memory itself, from plain rows, and PTX does not tell which lane
holds which element of a fragment. So a sum is a vector that only `wmma` looks into: a loop
carries it as such, and the tile is made of it where something else needs it, by a piece at a
time through a few hundred bytes of shared memory that each warp has for itself.

Precondition: `ph-assign-layouts`. Postcondition: operands of `wmma` products are buffers and
their sums vectors. Cost: a few ops a product.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    MemRefType,
    ModuleOp,
    TensorType,
    VectorType,
)
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.dialects.ctx import LANES_PER_WARP
from phobos.dialects.fragments import FromFragmentsOp, ToFragmentsOp
from phobos.ir.kernel import kernels, threads_of
from phobos.ir.rewrite import insert_before, retype
from phobos.layout import contiguous_vector
from phobos.layout.build import REGISTER, ceil_pow2
from phobos.layout.contraction import stack_buffer, wmma_buffer
from phobos.layout.shared import CHUNK_BYTES, row_major
from phobos.transforms.assign_layouts import contraction_of
from phobos.transforms.expand_exchanges import outside_loops, store_to_buffer


class ExpandWmmaPass(ModulePass):
    """Gives `wmma` products their operands in shared memory and their sums in fragments."""

    name = "ph-expand-wmma"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            dots = [inner for inner in kernel.walk() if _is_wmma(inner)]
            if not dots:
                continue
            for dot in dots:
                assert isinstance(dot, DotOp)
                _stage(dot, 0)
                _stage(dot, 1)
                _sum_in_fragments(dot, threads_of(kernel))
            loops = [inner for inner in kernel.walk() if isinstance(inner, scf.ForOp)]
            for loop in reversed(loops):
                _carry_fragments(loop)
            _finish(kernel)


def _is_wmma(op: Operation) -> bool:
    return (
        isinstance(op, DotOp) and op.instruction is not None and op.instruction.data.name == "wmma"
    )


# ---- operands


def _stage(dot: DotOp, index: int) -> None:
    """Puts an operand into a buffer, outside of the loops that it does not change in."""
    assert dot.instruction is not None
    value = dot.operands[index]
    assert isinstance(value.type, TensorType)
    element = value.type.element_type
    assert isinstance(element, FixedBitwidthType)
    layout = tile.layout_of(value)
    assert layout is not None
    m, n, k = dot.instruction.data.shape
    piece = ((m, k), (k, n))[index]
    rank = layout.rank
    first = contiguous_vector(layout, rank - 2) > contiguous_vector(layout, rank - 1)
    # The loads want rows of at least 16 bytes.
    transposed = first and piece[0] * element.size >= CHUNK_BYTES
    shape = value.type.get_shape()[-2:]
    rows = wmma_buffer((shape[0], shape[1]), piece, transposed=transposed)
    buffer = stack_buffer(rows, (1,) * (rank - 2))
    zero, alloca, store = store_to_buffer(dot, value, buffer)
    insert_before(outside_loops(dot, value), [zero, alloca, store])
    dot.operands[index] = alloca.memref


# ---- sums


def _sum_in_fragments(dot: DotOp, threads: int) -> None:
    assert dot.instruction is not None
    type_ = dot.c.type
    assert isinstance(type_, TensorType)
    layout = contraction_of(dot, threads).c
    fragment = VectorType(type_.element_type, [layout.in_size(REGISTER)])
    to = ToFragmentsOp(dot.c, dot.instruction, fragment)
    product = DotOp(dot.a, dot.b, to.result)
    product.properties.update(dot.properties)
    back = FromFragmentsOp(product.result, dot.instruction, type_)
    insert_before(dot, [to, product, back])
    dot.result.replace_all_uses_with(back.result)
    dot.detach()
    dot.erase()
    _fold(to)


def _fold(op: ToFragmentsOp) -> None:
    """Takes the fragments that a tile is made of, if it is made of the same kind."""
    made = op.value.owner
    if isinstance(made, FromFragmentsOp) and _same_pieces(op, made):
        op.result.replace_all_uses_with(made.value)
        op.detach()
        op.erase()


def _same_pieces(to: ToFragmentsOp, back: FromFragmentsOp) -> bool:
    """Whether both mean the same elements: the tile's layout says the rest."""
    one, other = to.instruction.data, back.instruction.data
    return one.shape[:2] == other.shape[:2] and one.accumulator == other.accumulator


def _carry_fragments(loop: scf.ForOp) -> None:
    """Carries fragments in place of the tiles that a loop only sums in."""
    last = loop.body.block.last_op
    assert isinstance(last, scf.YieldOp)
    for position, yielded in enumerate(last.operands):
        argument = loop.body.block.args[position + 1]
        readers = [use.operation for use in argument.uses]
        back = yielded.owner
        if not readers or not isinstance(back, FromFragmentsOp):
            continue
        if all(isinstance(r, ToFragmentsOp) and _same_pieces(r, back) for r in readers):
            _carry(loop, position, back, [r for r in readers if isinstance(r, ToFragmentsOp)])


def _carry(
    loop: scf.ForOp, position: int, back: FromFragmentsOp, readers: list[ToFragmentsOp]
) -> None:
    fragment, whole = back.value.type, loop.results[position].type
    assert isinstance(fragment, VectorType)
    assert isinstance(whole, TensorType)
    first = ToFragmentsOp(loop.iter_args[position], back.instruction, fragment)
    insert_before(loop, [first])
    loop.operands[3 + position] = first.result
    argument = retype(loop.body.block.args[position + 1], fragment)
    for reader in readers:
        reader.result.replace_all_uses_with(argument)
        reader.detach()
        reader.erase()
    last = loop.body.block.last_op
    assert last is not None
    last.operands[position] = back.value
    result = retype(loop.results[position], fragment)
    made = FromFragmentsOp(result, back.instruction, whole)
    made.location = loop.location
    result.replace_uses_with_if(made.result, lambda use: use.operation is not made)
    assert loop.parent is not None
    loop.parent.insert_op_after(made, loop)
    _fold(first)


# ---- through shared memory


def _finish(kernel: gpu.FuncOp) -> None:
    """Drops tiles that nothing needs, and gives the others a scratch buffer."""
    for op in list(kernel.walk(reverse=True)):
        if not isinstance(op, FromFragmentsOp | ToFragmentsOp):
            continue
        if not op.result.uses:
            op.detach()
            op.erase()
        elif isinstance(op, FromFragmentsOp) or not _is_uniform(op.value):
            _give_scratch(op, threads_of(kernel))


def _is_uniform(value: SSAValue) -> bool:
    """Whether all elements of a tile are equal, so that their order does not matter."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp):
        return isinstance(owner.value, DenseIntOrFPElementsAttr) and owner.value.is_splat()
    return isinstance(owner, tile.SplatOp)


def _give_scratch(op: ToFragmentsOp | FromFragmentsOp, threads: int) -> None:
    """A row for each warp, which holds one piece."""
    m, n, _ = op.instruction.data.shape
    fragment = op.value.type if isinstance(op, FromFragmentsOp) else op.result.type
    assert isinstance(fragment, VectorType)
    shape = (ceil_pow2(threads // LANES_PER_WARP), m * n)
    layout = tile.SharedLayoutAttr(row_major(shape))
    type_ = MemRefType(fragment.element_type, shape, layout, tile.SHARED)
    scratch = memref.AllocaOp.build(operands=[[], []], result_types=[type_], properties={})
    insert_before(op, [scratch])
    op.operands = [op.value, scratch.memref]
