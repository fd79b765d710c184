"""What debug builds say of themselves; part of the `tile` dialect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, i1
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect


@irdl_op_definition
class PrintOp(IRDLOperation):
    """Prints values of a thread by a format of C's printf.

    Values are i32, i64 and f64. `tile.print "i = %d\\n", %i : i32`
    """

    name = "tile.print"

    text = prop_def(StringAttr)
    values = var_operand_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$text (`,` $values^ `:` type($values))? attr-dict"

    def __init__(self, text: str, values: Sequence[SSAValue]):
        super().__init__(operands=[values], properties={"text": StringAttr(text)})


@irdl_op_definition
class RequireOp(IRDLOperation):
    """Ends the launch with a message that names the op's place if the condition is false.

    `tile.require %ok, "the rows add up to 1"`
    """

    name = "tile.require"

    condition = operand_def(i1)
    text = prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$condition `,` $text attr-dict"

    def __init__(self, condition: SSAValue, text: str):
        super().__init__(operands=[condition], properties={"text": StringAttr(text)})


DEBUGGING = (PrintOp, RequireOp)
"""The ops of this file, for the dialect."""
