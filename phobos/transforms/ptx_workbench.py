"""What rewriting rules see of an instruction, and how they make new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.ir import SSAValue

from phobos.dialects import ptx


@dataclass(slots=True, eq=False)
class Candidate:
    """An instruction with one result that is about to be made or looked at."""

    cls: type[ptx.Instruction]
    suffix: str
    operands: Sequence[SSAValue]
    result: ptx.RegisterType
    immediates: tuple[int, ...] = ()


class Workbench(Protocol):
    """What a rule may ask about values, and how it makes new ones."""

    def constant(self, value: SSAValue) -> int | None:
        """The bit pattern of a value if it is a constant."""
        ...

    def imm(self, value: int, register: ptx.RegisterType) -> SSAValue:
        """A constant."""
        ...

    def definition(
        self, value: SSAValue, cls: type[ptx.Instruction]
    ) -> tuple[str, Sequence[SSAValue]] | None:
        """Suffix and operands of the instruction that makes a value, if it is of a class."""
        ...

    def make(
        self,
        cls: type[ptx.Instruction],
        suffix: str,
        *operands: SSAValue | int,
        result: ptx.RegisterType | None = None,
    ) -> SSAValue:
        """The result of an instruction, itself simplified."""
        ...


Rule = Callable[[Workbench, Candidate], SSAValue | None]
