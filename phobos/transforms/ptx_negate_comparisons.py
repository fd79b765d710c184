"""`ph-ptx-negate-comparisons`: ask of f32 whether the opposite is false.

    %p = ptx.setp gt.f32 %a, %b    -->   %q, %p = ptx.setp leu.f32 %a, %b -> pred, pred

The second result is the negation of the first, and `not (a <= b or one of them is NaN)` is `a > b`
for every a and b. On the GPU both are one instruction. But ptxas, up to version 13.5 at least,
drops comparisons by what it finds the range of an operand to be, and forgets that NaN is in none:
of `abs(x) + 1 > 0` it makes true, and of `x * x >= 0`, of `sin.approx(x) < 2`, and of sums of such
values in a loop that it unrolls. For NaN they are false. It does so to lt, gt and ge of f32 against
constants alone, and never to a comparison that holds for NaN: those it keeps, or drops rightly.
`tests/unit/ptx/test_negate_comparisons.py` asks it again.

A comparison that has two results changes them over. Comparisons for equality, of f64 and of halves
ptxas leaves alone, and so does this. Cost: linear, below 1 us an instruction.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from phobos.dialects import ptx
from phobos.dialects.ptx.attributes import suffix_attr
from phobos.dialects.ptx.types import PRED
from phobos.ir.views import operations

_OPPOSITES = {"lt": "geu", "le": "gtu", "gt": "leu", "ge": "ltu"}


class PtxNegateComparisonsPass(ModulePass):
    """Negates the ordered comparisons of f32 in every kernel."""

    name = "ph-ptx-negate-comparisons"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Negate in every kernel."""
        for entry in ptx.entries_in(op):
            negate_comparisons(entry)


def negate_comparisons(entry: ptx.EntryOp) -> None:
    """Negate the ordered comparisons of f32 of one kernel."""
    for block in entry.body.blocks:
        for op in tuple(operations(block)):
            if type(op) is ptx.SetpOp and (opposite := _opposite(op)) is not None:
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
        result_types=(PRED, PRED),
        properties={"suffix": suffix_attr(opposite)},
        location=op.location,
    )
    block.insert_op_before(compared, op)
    # The old first result is the new second one, and the other way round.
    for result, value in zip(op.results, reversed(compared.results), strict=False):
        result.replace_all_uses_with(value)
    op.detach()
    op.erase()
