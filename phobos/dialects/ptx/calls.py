"""Calls of the functions that CUDA gives every kernel: printing, and assertions that fail.

The printer writes what such a call needs around it: the declaration of the function, the text
as a constant, and local memory for the values.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from phobos.dialects.ptx.types import B32, B64, RegisterType


@irdl_op_definition
class PrintfOp(IRDLOperation):
    """Prints values by a format of C's printf: `ptx.printf "%d\\n", %i : !ptx.reg<b32>`."""

    name = "ptx.printf"

    text = prop_def(StringAttr)
    values = var_operand_def(RegisterType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$text (`,` $values^ `:` type($values))? attr-dict"

    def __init__(self, text: str, values: Sequence[SSAValue]):
        super().__init__(operands=[values], properties={"text": StringAttr(text)})

    def verify_(self) -> None:
        """Refuses registers that printf takes no values from."""
        for value in self.values:
            if value.type not in (B32, B64):
                raise VerifyException(f"{self.name} takes 32 or 64 bits, not {value.type}")


@irdl_op_definition
class AssertFailOp(IRDLOperation):
    """Ends the kernel with a message that names a place: `ptx.assertfail "i < n", "k.ph", 7`."""

    name = "ptx.assertfail"

    text = prop_def(StringAttr)
    file = prop_def(StringAttr)
    line = prop_def(IntAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$text `,` $file `,` $line attr-dict"

    def __init__(self, text: str, file: str, line: int):
        super().__init__(
            properties={
                "text": StringAttr(text),
                "file": StringAttr(file),
                "line": IntAttr(line),
            }
        )
