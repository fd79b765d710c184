"""Expressions of a thread's own runs: neighbouring elements, computed with one by one."""

from __future__ import annotations

from tools.fuzz.generator.elements import Elements
from tools.fuzz.generator.scalars import Scalars
from tools.fuzz.generator.terms import BYTES, VARYING, TensorParameter, Term
from tools.fuzz.generator.writer import Writer
from tools.fuzz.scalars import is_float


class Runs(Elements):
    """Writes expressions of runs of one length, at a place that each thread has for itself."""

    def __init__(self, writer: Writer, scalars: Scalars, length: int, own: str, count: int) -> None:
        super().__init__(writer)
        self.scalars = scalars
        self.length, self.own, self.count = length, own, count
        self.known: dict[str, TensorParameter] = {}

    def value(self, type_: str, depth: int) -> Term:
        """A run of a type."""
        if depth <= 0:
            return self.read(type_)

        def operand(wanted: str, *, is_second: bool = False) -> Term:
            if is_second and wanted not in BYTES and self.writer.chance(0.25):
                return self.scalars.value(wanted, 1, VARYING)
            return self.value(wanted, depth - 1)

        return self.operation(type_, (self.length,), operand)

    def read(self, type_: str) -> Term:
        """The thread's elements of a tensor."""
        if type_ not in self.known:
            extents = (self.count * self.length,)
            self.known[type_] = self.writer.tensor("r", type_, extents, "whole", is_input=False)
        tensor = self.known[type_]
        size = 4.0 if is_float(type_) else None
        return Term(self.place(tensor), type_, (self.length,), VARYING, size)

    def place(self, tensor: TensorParameter) -> str:
        """The thread's slice of a tensor."""
        return f"{tensor.name}[({self.own}) * {self.length} :+ {self.length}]"
