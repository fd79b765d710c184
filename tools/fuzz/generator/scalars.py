"""Scalar expressions: of parameters, variables, `ctx`, elements and what threads do together."""

from __future__ import annotations

from dataclasses import replace

from tools.fuzz.generator.elements import Elements, Operand
from tools.fuzz.generator.terms import (
    BYTES,
    INTEGERS,
    NUMBERS,
    REALS,
    UNIFORM,
    VARYING,
    WARP,
    Shape,
    TensorParameter,
    Term,
    joined,
)
from tools.fuzz.generator.writer import Writer
from tools.fuzz.scalars import BOOL, INDEX, is_float

_CONTEXT = {
    "ctx.block.x": UNIFORM,
    "ctx.block.y": UNIFORM,
    "ctx.blocks.x": UNIFORM,
    "ctx.threads": UNIFORM,
    "ctx.warps": UNIFORM,
    "ctx.warp": WARP,
    "ctx.thread": VARYING,
    "ctx.lane": VARYING,
}
_DIVISORS = (1, 2, 3, 4, 7, 8, 10, 31, 32, 33)
_FOLDS = ("sum", "prod", "max", "min", "scan")
_SHUFFLES = ("shuffle", "shuffle_xor", "shuffle_up", "shuffle_down")


class Scalars(Elements):
    """Writes scalar expressions; `level` bounds how far they may differ between threads."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.may_meet = True
        """Whether threads may work together here: not behind `&&`, where some may be missing."""

    def value(self, type_: str, depth: int, level: int) -> Term:
        """An expression of a type."""
        writer = self.writer
        if depth <= 0 or writer.chance(0.15):
            return self.leaf(type_, level)
        if type_ == INDEX:
            return self._index(depth, level)
        if level > UNIFORM and self._may_meet() and writer.chance(0.15):
            term = self._together(type_, depth, level)
            if term is not None:
                return term
        if not writer.is_closed and type_ != BOOL and writer.chance(0.15):
            return self._element(type_, level, 1)
        if writer.calls and writer.chance(0.2):
            term = self._call(type_, depth, level)
            if term is not None:
                return term

        def operand(wanted: str, *, is_second: bool = False) -> Term:
            return self.value(wanted, depth - 1, level)

        return self.operation(type_, None, operand)

    def _may_meet(self) -> bool:
        return self.may_meet and not self.writer.is_closed

    def _call(self, type_: str, depth: int, level: int) -> Term | None:
        """A call of a function that gives such a scalar."""
        fitting = [
            function
            for function in self.writer.calls
            if function.type == type_
            and all(shape is None for _, shape in (*function.parameters, ("", function.shape)))
        ]
        if not fitting:
            return None
        function = self.writer.pick(fitting)
        parts = [self.value(wanted, depth - 1, level) for wanted, _ in function.parameters]
        term = joined(f"{function.name}({', '.join(p.text for p in parts)})", type_, None, *parts)
        return term if function.is_exact else replace(term, is_exact=False)

    def leaf(self, type_: str, level: int) -> Term:
        """A name or a number."""
        writer = self.writer
        known = writer.known(type_, None, level)
        if known and writer.chance(0.95 if writer.is_closed else 0.7):
            return writer.pick(known).term
        if writer.is_closed:
            return writer.typed_literal(type_)
        if type_ == INDEX:
            fields = [name for name, differs in _CONTEXT.items() if differs <= level]
            choices = [Term(name, INDEX, level=_CONTEXT[name]) for name in fields]
            literal = [writer.typed_literal(INDEX)] if writer.chance(0.3) else []
            return writer.pick([*choices, *writer.extents(), *literal])
        if type_ in BYTES or writer.chance(0.3):
            return writer.scalar_parameter(type_)
        if type_ not in NUMBERS or writer.chance(0.15):
            return writer.typed_literal(type_)
        if level == UNIFORM or writer.chance(0.4):
            return self._element(type_, level, 0)
        return self._own_number(type_, level)

    def _own_number(self, type_: str, level: int) -> Term:
        """A number that follows from where the thread is."""
        own = self.value(INDEX, 0, level)
        if not is_float(type_):
            return Term(f"{type_}({own.text})", type_, level=own.level)
        if level < VARYING:
            return Term(f"{type_}({own.text})", type_, level=own.level)
        return Term(f"{type_}(ctx.lane)", type_, level=VARYING, size=31.0)

    def _logic(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        """The right side of `&&` is evaluated by some threads alone."""
        left, before = operand(BOOL), self.may_meet
        if self.writer.chance(0.25):
            return joined(f"(!{left.text})", BOOL, shape, left)
        op = self.writer.pick(("&&", "||", "==", "!="))
        self.may_meet = before and op in ("==", "!=")
        right = operand(BOOL)
        self.may_meet = before
        return joined(f"({left.text} {op} {right.text})", BOOL, shape, left, right)

    # Whole numbers that stay small ---------------------------------------------------------------

    def _index(self, depth: int, level: int) -> Term:
        writer = self.writer
        left = self.value(INDEX, depth - 1, level)
        match writer.random.randrange(6):
            case 0:
                op, right = writer.pick(("+", "-")), self.value(INDEX, depth - 1, level)
                return joined(f"({left.text} {op} {right.text})", INDEX, None, left, right)
            case 1:
                factor = writer.pick((2, 3, 5, -1, 32))
                return joined(f"({left.text} * {factor})", INDEX, None, left)
            case 2:
                op = writer.pick(("/", "%", "&", ">>"))
                number = writer.pick((1, 2, 3, 4, 7, 8, 10, 31) if op == ">>" else _DIVISORS)
                return joined(f"({left.text} {op} {number})", INDEX, None, left)
            case 3:
                name, right = writer.pick(("min", "max")), self.value(INDEX, depth - 1, level)
                return joined(f"{name}({left.text}, {right.text})", INDEX, None, left, right)
            case 4:
                value = self.value(writer.number(INTEGERS), depth - 1, level)
                return joined(f"index({value.text} & 7)", INDEX, None, value)
            case _:
                return left

    def typed_range(self, level: int) -> tuple[str, str, int]:
        """The type, the bounds and the level of a range that counts in a type of its own."""
        writer = self.writer
        type_ = writer.pick(("u8", "i8", "i16", "u16", "i32", "u32", "i64"))
        stop = self.value(type_, 1, level)
        top = {"u8": 255, "i8": 127}.get(type_)
        if top is not None and writer.chance(0.3):
            # The counter steps past the largest number of its type.
            first = Term(f"{type_}({top - 2})", type_)
            return type_, f"{first.text}, {top}, {writer.pick((1, 2, 3))}", UNIFORM
        return type_, f"{type_}(0), {stop.text} & 3", stop.level

    def inside(self, extent: int | str, depth: int, level: int) -> Term:
        """A subscript that is inside an axis of this extent."""
        writer = self.writer
        value = self.value(INDEX, depth, level)
        if isinstance(extent, int) and extent & (extent - 1) == 0 and writer.chance(0.5):
            return joined(f"({value.text} & {extent - 1})", INDEX, None, value)
        if writer.chance(0.5):
            return joined(f"clamp({value.text}, 0, {extent} - 1)", INDEX, None, value)
        return joined(f"(abs({value.text}) % {extent})", INDEX, None, value)

    def _element(self, type_: str, level: int, depth: int) -> Term:
        """An element of a tensor that the kernel reads."""
        tensor = self.writer.input(type_, (8,) * self.writer.pick((1, 1, 2)))
        return self.element_of(tensor, level, depth)

    def element_of(self, tensor: TensorParameter, level: int, depth: int) -> Term:
        """A point of a tensor, at a subscript that is inside."""
        parts = []
        for axis, extent in enumerate(tensor.extents):
            bound = extent if tensor.dims[axis].isdigit() else f"extent({tensor.name}, {axis})"
            parts.append(self.inside(bound, depth, level))
        size = 4.0 if tensor.content == "whole" and is_float(tensor.type) else None
        text = f"{tensor.name}[{', '.join(part.text for part in parts)}]"
        differs = max(part.level for part in parts)
        return Term(text, tensor.type, level=differs, size=size)

    # Between threads -----------------------------------------------------------------------------

    def _together(self, type_: str, depth: int, level: int) -> Term | None:
        """A collective or shuffle that gives a type, where the control flow allows one."""
        writer = self.writer
        if writer.flow == VARYING:
            return None
        if level < VARYING and writer.chance(0.5):
            return None
        choices = [self._fold, self._shuffle]
        if type_ == "i32":
            choices += [self._ballot, self._count, self._position]
        if type_ == BOOL:
            choices = [self._any, self._shuffle]
        return writer.pick(choices)(type_, depth, level)

    def _scope(self, level: int) -> tuple[str, int] | None:
        """The threads that a collective works over, and how far its result differs."""
        scopes = [("ctx.lane", WARP)] if level >= WARP else []
        if self.writer.flow == UNIFORM:
            scopes += [("ctx.thread", UNIFORM)]
            if level == VARYING:
                scopes += [("ctx.warp", VARYING)]
        return self.writer.pick(scopes) if scopes else None

    def _operand(self, type_: str, depth: int) -> Term:
        """What a thread gives to the others: it may differ however far."""
        return self.value(type_, depth - 1, VARYING)

    def _fold(self, type_: str, depth: int, level: int) -> Term | None:
        found = self._scope(level)
        if found is None or type_ not in NUMBERS:
            return None
        (scope, differs), name = found, self.writer.pick(_FOLDS)
        if name == "scan" and level < VARYING:
            return None
        value = self._operand(type_, depth)
        differs = VARYING if name == "scan" else differs
        term = Term(f"{name}<over {scope}>({value.text})", type_, None, differs)
        if name in ("max", "min"):
            return Term(term.text, type_, None, differs, value.size, value.is_exact)
        if type_ in REALS and name in ("sum", "scan") and value.size is not None:
            return term.grown(term.text, value.size * self.writer.threads)
        if type_ in REALS:
            return Term(term.text, type_, None, differs, None, False)
        return term

    def _shuffle(self, type_: str, depth: int, level: int) -> Term | None:
        writer = self.writer
        if level < VARYING or type_ in BYTES:
            return None
        value, name = self._operand(type_, depth), writer.pick(_SHUFFLES)
        # A lane that does not exist has nothing to give.
        is_whole = writer.threads % 32 == 0
        if name != "shuffle_up" and not is_whole:
            return None
        if name == "shuffle":
            lane = Term("ctx.lane", INDEX) if writer.chance(0.3) else self.value(INDEX, 1, level)
            amount = f"({lane.text} & 31)"
        else:
            amount = str(writer.pick((1, 2, 3, 4, 8, 16, 31)))
        text = f"{name}({value.text}, {amount})"
        return Term(text, type_, None, VARYING, value.size, value.is_exact)

    def _ballot(self, type_: str, depth: int, level: int) -> Term | None:
        if level < WARP:
            return None
        value = self._operand(BOOL, depth)
        return Term(f"ballot({value.text})", "i32", None, WARP)

    def _count(self, type_: str, depth: int, level: int) -> Term | None:
        found = self._scope(level)
        if found is None:
            return None
        value = self._operand(BOOL, depth)
        return Term(f"count<over {found[0]}>({value.text})", "i32", None, found[1])

    def _any(self, type_: str, depth: int, level: int) -> Term | None:
        found = self._scope(level)
        if found is None:
            return None
        value = self._operand(BOOL, depth)
        name = self.writer.pick(("any", "all"))
        return Term(f"{name}<over {found[0]}>({value.text})", BOOL, None, found[1])

    def _position(self, type_: str, depth: int, level: int) -> Term | None:
        found = self._scope(level)
        if found is None:
            return None
        value = self._operand(self.writer.number(INTEGERS), depth)
        name = self.writer.pick(("argmax", "argmin"))
        return Term(f"{name}<over {found[0]}>({value.text})", "i32", None, found[1])
