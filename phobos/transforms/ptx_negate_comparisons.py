"""`ph-ptx-negate-comparisons`: say `a < b` of f32 as `not (a >= b or one of them is NaN)`.

    %p = ptx.setp gt.f32 %a, %b    -->   %q = ptx.setp leu.f32 %a, %b
                                         %p = ptx.not pred %q

Both are the same for every a and b, and on the GPU one instruction. But ptxas, through version 13,
drops comparisons by what it finds the range of an operand to be, and forgets that NaN is in none:
of `abs(x) + 1 > 0` it makes true, of `x * x >= 0`, `sin.approx(x) < 2` and sums of such values in
a loop that it unrolls, too. For NaN they are false. It does so with lt, gt and ge of f32 against
constants alone, and never where the comparison is one that holds for NaN: those it keeps, or drops
rightly. `tests/unit/ptx/test_negate_comparisons.py` asks it again.

A comparison with two results changes them over and needs no negation. f64 and halves ptxas leaves
alone, and so does this. Cost: linear, below 1 us an instruction.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import ptx
from phobos.dialects.ptx.attributes import suffix_attr
from phobos.dialects.ptx.types import PRED

_OPPOSITES = {"lt": "geu", "le": "gtu", "gt": "leu", "ge": "ltu"}


class PtxNegateComparisonsPass(ModulePass):
    """Negates the ordered comparisons of f32 in every kernel."""

    name = "ph-ptx-negate-comparisons"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Negate in every kernel."""
        for entry in op.walk():
            if isinstance(entry, ptx.EntryOp):
                negate_comparisons(entry)


def negate_comparisons(entry: ptx.EntryOp) -> None:
    """Negate the ordered comparisons of f32 of one kernel."""
    for block in entry.body.blocks:
        for op in tuple(block.ops):
            if isinstance(op, ptx.SetpOp) and (opposite := _opposite(op)) is not None:
                _negate(op, opposite)


def _opposite(op: ptx.SetpOp) -> str | None:
    """The suffix of the comparison that is true where this one is false."""
    compare, _, rest = op.suffix.partition(".")
    if compare not in _OPPOSITES or rest not in ("f32", "ftz.f32"):
        return None
    return f"{_OPPOSITES[compare]}.{rest}"


def _negate(op: ptx.SetpOp, opposite: str) -> None:
    block = op.parent
    assert block is not None
    compared = ptx.SetpOp.create(
        operands=op.operands,
        result_types=[result.type for result in op.results],
        properties={"suffix": suffix_attr(opposite)},
        location=op.location,
    )
    block.insert_op_before(compared, op)
    replacements: list[SSAValue] = list(reversed(compared.results))
    if len(op.results) == 1:
        negation = ptx.NotOp.create(
            operands=compared.results,
            result_types=(PRED,),
            properties={"suffix": suffix_attr("pred")},
            location=op.location,
        )
        block.insert_op_before(negation, op)
        replacements = [negation.results[0]]
    for result, value in zip(op.results, replacements, strict=True):
        result.replace_all_uses_with(value)
    op.detach()
    op.erase()
