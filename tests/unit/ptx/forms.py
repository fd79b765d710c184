"""Writes every form of the instruction tables as PTX, for ptxas to judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.signatures import Item, ItemKind
from phobos.targets.ptx.printer import print_module

INSTRUCTIONS: tuple[type[ptx.Instruction], ...] = tuple(
    sorted(
        (op for op in ptx.Ptx.operations if issubclass(op, ptx.Instruction)),
        key=lambda op: op.name,
    )
)


@dataclass(frozen=True)
class Spelling:
    """One concrete instruction: an opcode, a form of it and a suffix."""

    cls: type[ptx.Instruction]
    form: Form
    suffix: str

    def __str__(self) -> str:
        return f"{self.cls.spelling(self.suffix).mnemonic} ({self.form.signature})"


def spellings(choose: Callable[[Form], Iterable[str]] = Form.suffixes) -> Iterator[Spelling]:
    """All suffixes, or those chosen, of all forms of all instructions."""
    for cls in INSTRUCTIONS:
        for form in cls.forms:
            for suffix in choose(form):
                yield Spelling(cls, form, suffix)


class FormModule:
    """A kernel that holds the given instructions, and which line of its text holds which."""

    def __init__(self, chip: str, chosen: Iterable[Spelling]) -> None:
        parameters = [ptx.Parameter(f"p{i}", kind) for i, kind in enumerate(("u64", "u32", "u16"))]
        self.entry = ptx.EntryOp.make("forms", parameters, maxntid=(128,))
        self.builder = ptx.InstructionBuilder(self.entry.body)
        wide = self.builder.param(0, "u64")
        word = self.builder.param(1, "u32")
        self.values: dict[ptx.RegisterType, SSAValue] = {
            ptx.B64: wide,
            ptx.B32: word,
            ptx.B16: self.builder.param(2, "u16"),
            ptx.PRED: self.builder.emit(ptx.SetpOp, "eq.u32", word, 0),
        }
        self.spellings = list(chosen)
        for spelling in self.spellings:
            self._add(spelling)
        self.builder.ret()
        self.module = ptx.PtxModuleOp.make("forms", chip, [self.entry])

    def _add(self, spelling: Spelling) -> None:
        signature = spelling.form.resolve(spelling.suffix)
        operands = [self._value(slot.classes[0]) for i in signature.operands for slot in i.slots]
        results = [slot.classes[0] for item in signature.results for slot in item.slots]
        literals = tuple(
            _a_literal(item) for item in signature.operands if item.kind is ItemKind.IMMEDIATE
        )
        self.builder.emit_multi(
            spelling.cls, spelling.suffix, *operands, results=results, imm=literals
        )

    def _value(self, register: ptx.RegisterType) -> SSAValue:
        if register not in self.values:
            assert register == ptx.B128
            wide = self.values[ptx.B64]
            self.values[register] = self.builder.emit(ptx.PackOp, "b128", wide, wide)
        return self.values[register]

    @property
    def text(self) -> str:
        """The PTX text."""
        return print_module(self.module)


def _a_literal(item: Item) -> int:
    return 0 if item.values is None or 0 in item.values else item.values[0]
