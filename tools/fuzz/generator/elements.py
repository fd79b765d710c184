"""Expressions element by element, which scalars, runs and tiles have in common.

`Elements` writes an operation around operands that its subclass makes: `operand(type, depth)`
gives a value of a type in the shape that is being written.
"""

from __future__ import annotations

from typing import Protocol

from tools.fuzz.generator.terms import (
    BYTES,
    INTEGERS,
    NUMBERS,
    REALS,
    Shape,
    Term,
    joined,
)
from tools.fuzz.generator.writer import Writer
from tools.fuzz.scalars import BOOL, INDEX, bits, is_float, promote


class Operand(Protocol):
    """Gives a value of a type in the shape that is being written.

    A second operand may be one that is broadcast to that shape.
    """

    def __call__(self, wanted: str, /, *, is_second: bool = False) -> Term:
        """An expression."""
        ...


_ARITHMETIC = ("+", "-", "*")
_BITWISE = ("&", "|", "^")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_ROUNDINGS = ("floor", "ceil", "round", "trunc")
_SMOOTH = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid")


def narrower(type_: str) -> list[str]:
    """The types that give a type where they meet it, without the type itself."""
    found = []
    for other in NUMBERS:
        try:
            if other != type_ and promote(other, type_) == type_:
                found.append(other)
        except ValueError:
            continue
    return found


class Elements:
    """Writes operations on elements."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def operation(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        """An operation that gives elements of a type."""
        writer = self.writer
        rules = [self._convert]
        if type_ == BOOL:
            rules += [self._compare, self._compare, self._logic, self._isnan, self._where]
        elif type_ in BYTES:
            pass  # They have no arithmetic.
        else:
            rules += [self._arithmetic] * 4 + [self._extreme, self._where, self._where, self._sign]
            if is_float(type_):
                rules += [self._divide, self._rounded, self._clamp, self._fma, self._smooth]
            else:
                rules += [self._divide, self._bitwise, self._shift, self._clamp]
            if type_ in INTEGERS or type_ in REALS:
                rules += [self._bits]
        return writer.pick(rules)(type_, shape, operand)

    # Numbers -------------------------------------------------------------------------------------

    def other(self, type_: str, operand: Operand) -> Term:
        """A second operand: of the type, a literal, or of a type that widens to it."""
        writer = self.writer
        if writer.chance(0.3):
            return writer.literal(type_)
        choices = narrower(type_) if type_ in NUMBERS else []
        if choices and writer.chance(0.15):
            return operand(writer.pick(choices), is_second=True)
        return operand(type_, is_second=True)

    def _arithmetic(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        op = self.writer.pick(_ARITHMETIC)
        left, right = operand(type_), self.other(type_, operand)
        if self.writer.chance(0.3):
            left, right = right, left
        term = joined(f"({left.text} {op} {right.text})", type_, shape, left, right)
        if left.size is None or right.size is None or {left.type, right.type} != {type_}:
            return term
        size = left.size * right.size if op == "*" else left.size + right.size
        return term.grown(term.text, size)

    def _divide(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        writer = self.writer
        left = operand(type_)
        if is_float(type_):
            right = operand(type_, is_second=True)
            below = right.text if writer.chance(0.3) else f"(abs({right.text}) + 1)"
            op = "%" if left.is_exact and right.is_exact and writer.chance(0.25) else "/"
            return joined(f"({left.text} {op} {below})", type_, shape, left, right)
        op = writer.pick(("/", "%"))
        if writer.chance(0.4):
            return joined(f"({left.text} {op} {writer.divisor(type_)})", type_, shape, left)
        right = operand(type_)
        # What a division by 0 gives is not said; by a constant 0 it is an error.
        below = f"({right.text} | 1)" if shape is None or writer.chance(0.9) else right.text
        return joined(f"({left.text} {op} {below})", type_, shape, left, right)

    def _bitwise(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        left, right = operand(type_), self.other(type_, operand)
        op = self.writer.pick(_BITWISE)
        return joined(f"({left.text} {op} {right.text})", type_, shape, left, right)

    def _shift(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        writer = self.writer
        op, left = writer.pick(("<<", ">>")), operand(type_)
        width = 8 if type_ == INDEX else bits(type_)
        if type_ == INDEX or writer.chance(0.5):
            count = writer.random.randrange(min(width, 3) if type_ == INDEX else width)
            return joined(f"({left.text} {op} {count})", type_, shape, left)
        right = operand(type_)
        # A count of the width or more is an error where it is constant.
        is_masked = shape is None or writer.chance(0.6)
        count = f"({right.text} & {width - 1})" if is_masked else right.text
        return joined(f"({left.text} {op} {count})", type_, shape, left, right)

    def _sign(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        value = operand(type_)
        is_unsigned = type_.startswith("u")
        forms = ["-{}"] if is_float(type_) else ["-{}", "~{}"]
        if not is_unsigned:
            forms.append("abs({})")
        text = self.writer.pick(forms).format(value.text)
        term = joined(f"({text})", type_, shape, value)
        return term.grown(term.text, value.size)

    def _extreme(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        names = ["min", "max"]
        if is_float(type_):
            names += ["minnan", "maxnan"]
        left, right = operand(type_), self.other(type_, operand)
        text = f"{self.writer.pick(names)}({left.text}, {right.text})"
        term = joined(text, type_, shape, left, right)
        if left.size is None or right.size is None or {left.type, right.type} != {type_}:
            return term
        return term.grown(text, max(left.size, right.size))

    def _clamp(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        value = operand(type_)
        low, high = self.writer.literal(type_), self.writer.literal(type_)
        return joined(f"clamp({value.text}, {low.text}, {high.text})", type_, shape, value)

    def _fma(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        if type_ == "bf16":
            return self._arithmetic(type_, shape, operand)  # Not every chip has it.
        parts = [operand(type_, is_second=number > 0) for number in range(3)]
        inside = ", ".join(part.text for part in parts)
        term = joined(f"fma({inside})", type_, shape, *parts)
        return term if type_ != "f64" else _rough(term)

    def _rounded(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        value = operand(type_)
        return joined(f"{self.writer.pick(_ROUNDINGS)}({value.text})", type_, shape, value)

    def _smooth(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        value = operand(type_)
        if self.writer.chance(0.1):
            power = operand(type_, is_second=True)
            text = f"pow(abs({value.text}) + 0.5, {power.text})"
            return _rough(joined(text, type_, shape, value, power))
        name = self.writer.pick(_SMOOTH)
        inside = value.text
        if name in ("log", "log2", "sqrt", "rsqrt") and self.writer.chance(0.8):
            inside = f"abs({inside})"
        term = joined(f"{name}({inside})", type_, shape, value)
        return term if name == "sqrt" else _rough(term)

    def _bits(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        """Functions of bits, and the bits of another type."""
        writer = self.writer
        if type_ == "i32" and writer.chance(0.5):
            value = operand(writer.number(INTEGERS))
            name = writer.pick(("popcount", "clz"))
            return joined(f"{name}({value.text})", type_, shape, value)
        if type_ in INTEGERS and writer.chance(0.4):
            value = operand(type_)
            if type_ in ("i32", "u32") and writer.chance(0.4):
                second, third = operand(type_), operand(type_)
                text = f"byteperm({value.text}, {second.text}, {third.text})"
                return joined(text, type_, shape, value, second, third)
            return joined(f"brev({value.text})", type_, shape, value)
        same = [t for t in NUMBERS if bits(t) == bits(type_) and t != type_]
        value = operand(writer.pick(same))
        if type_ in REALS and value.type in REALS:
            value = operand(writer.pick([t for t in same if t in INTEGERS]))
        return joined(f"bitcast<{type_}>({value.text})", type_, shape, value)

    # Bools and choices ---------------------------------------------------------------------------

    def _compare(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        writer = self.writer
        element = writer.number(NUMBERS)
        if shape is None and writer.chance(0.25):
            element = INDEX
        left, right = operand(element), self.other(element, operand)
        term = joined(
            f"({left.text} {writer.pick(_COMPARISONS)} {right.text})", BOOL, shape, left, right
        )
        if term.is_exact or writer.chance(0.05):
            return term
        return self._compare_whole(shape, operand)

    def _compare_whole(self, shape: Shape | None, operand: Operand) -> Term:
        left = operand(self.writer.number(INTEGERS))
        right = self.other(left.type, operand)
        op = self.writer.pick(_COMPARISONS)
        return joined(f"({left.text} {op} {right.text})", BOOL, shape, left, right)

    def _logic(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        left, right = operand(BOOL), operand(BOOL, is_second=True)
        if self.writer.chance(0.25):
            return joined(f"(!{left.text})", BOOL, shape, left)
        op = self.writer.pick(("&&", "||", "==", "!=", "&", "|", "^"))
        return joined(f"({left.text} {op} {right.text})", BOOL, shape, left, right)

    def _isnan(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        value = operand(self.writer.number(REALS))
        return joined(f"isnan({value.text})", BOOL, shape, value)

    def _where(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        condition, left = operand(BOOL), operand(type_, is_second=True)
        right = operand(type_) if type_ in BYTES else self.other(type_, operand)
        if type_ == BOOL:
            right = operand(BOOL, is_second=True)
        text = f"where({condition.text}, {left.text}, {right.text})"
        term = joined(text, type_, shape, condition, left, right)
        if left.size is None or right.size is None or {left.type, right.type} != {type_}:
            return term
        return term.grown(text, max(left.size, right.size))

    def _convert(self, type_: str, shape: Shape | None, operand: Operand) -> Term:
        writer = self.writer
        sources = [t for t in (BOOL, *NUMBERS, *BYTES) if t != type_]
        if type_ == INDEX:
            value = operand(writer.number(INTEGERS))
            return joined(f"index({value.text} & 7)", type_, shape, value)
        value = operand(writer.number(sources))
        if not value.is_exact and not is_float(type_):
            value = operand(writer.number(INTEGERS))
            if value.type == type_:
                return value
        term = joined(f"{type_}({value.text})", type_, shape, value)
        if is_float(type_) and value.type == BOOL:
            return term.grown(term.text, 1.0)
        return term.grown(term.text, value.size)


def _rough(term: Term) -> Term:
    return Term(term.text, term.type, term.shape, term.level, None, False)
