"""`ph-ptx-fuse`: multiplication and addition of integers in one instruction.

    %p = ptx.mul wide.s32 %i, %c4
    %a = ptx.add s64 %p, %base      -->   %a = ptx.mad wide.s32 %i, %c4, %base

Only where nothing else uses the product and both stand in one block, so that no multiplication
moves into a loop. Folding likes them apart, so this comes last. Cost: linear, below 1 us an
instruction.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import ptx
from phobos.dialects.ptx.attributes import suffix_attr
from phobos.ir.views import operations
from phobos.transforms.ptx_evaluate import bits_of, is_integer


class PtxFusePass(ModulePass):
    """Fuses multiplications and additions in every kernel."""

    name = "ph-ptx-fuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fuse in every kernel."""
        for entry in ptx.entries_in(op):
            fuse_products(entry)


def fuse_products(entry: ptx.EntryOp) -> None:
    """Fuse the multiplications and additions of one kernel."""
    for block in entry.body.blocks:
        for op in tuple(operations(block)):
            if type(op) is ptx.AddOp and is_integer(op.suffix):
                _fuse(op)


def _fuse(add: ptx.AddOp) -> None:
    left, right = add.operands
    for product, addend in ((left, right), (right, left)):
        suffix = _fused_suffix(product, add)
        if suffix is None:
            continue
        multiplication = product.owner
        assert isinstance(multiplication, ptx.MulOp)
        assert add.parent is not None
        fused = ptx.MadOp.create(
            operands=(*multiplication.operands, addend),
            result_types=add.result_types,
            properties={"suffix": suffix_attr(suffix)},
            location=add.location,
        )
        add.parent.insert_op_before(fused, add)
        add.results[0].replace_all_uses_with(fused.results[0])
        add.detach()
        add.erase()
        multiplication.detach()
        multiplication.erase()
        return


def _fused_suffix(product: SSAValue, add: ptx.AddOp) -> str | None:
    """The suffix of the fused instruction, if the product is only for this addition."""
    owner = product.owner
    if not isinstance(owner, ptx.MulOp) or owner.parent is not add.parent:
        return None
    if product.get_user_of_unique_use() is not add:
        return None
    part, _, type_name = owner.suffix.partition(".")
    if part not in ("lo", "wide") or not is_integer(type_name):
        return None
    width = bits_of(type_name) * (2 if part == "wide" else 1)
    return owner.suffix if width == bits_of(add.suffix) else None
