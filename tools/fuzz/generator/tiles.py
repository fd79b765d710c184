"""Tile expressions: slices, elementwise operations, folds, shapes, products and gathers."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tools.fuzz.generator.elements import Elements
from tools.fuzz.generator.scalars import Scalars
from tools.fuzz.generator.terms import (
    BYTES,
    INTEGERS,
    NUMBERS,
    REALS,
    UNIFORM,
    Region,
    Shape,
    TensorParameter,
    Term,
    joined,
)
from tools.fuzz.generator.writer import Writer
from tools.fuzz.scalars import BOOL, is_float

EXTENTS = (1, 2, 3, 4, 4, 5, 7, 8, 8, 12, 16, 16, 17, 32, 33, 64, 128)


def random_shape(writer: Writer, rank: int) -> Shape:
    """The extents of a tile that is small enough."""
    while True:
        shape = tuple(writer.pick(EXTENTS) for _ in range(rank))
        if prod(shape) <= writer.most_elements:
            return shape


def _is_within(shape: Shape, whole: Shape) -> bool:
    pairs = zip(shape, whole, strict=False)
    return len(shape) == len(whole) and all(one <= other for one, other in pairs)


class Tiles(Elements):
    """Writes expressions of tiles of a type and shape."""

    def __init__(self, writer: Writer, scalars: Scalars) -> None:
        super().__init__(writer)
        self.scalars = scalars

    def value(self, type_: str, shape: Shape, depth: int) -> Term:
        """A tile expression."""
        writer = self.writer
        if depth <= 0 or writer.chance(0.12):
            return self.leaf(type_, shape)
        if writer.chance(0.4):
            term = self._shaped(type_, shape, depth)
            if term is not None:
                return term

        def operand(wanted: str, *, is_second: bool = False) -> Term:
            if is_second and writer.chance(0.2):
                return self._thin(wanted, shape, depth - 1)
            return self.value(wanted, shape, depth - 1)

        return self.operation(type_, shape, operand)

    def _thin(self, type_: str, shape: Shape, depth: int) -> Term:
        """A scalar or a tile that is broadcast to a shape."""
        writer = self.writer
        if type_ not in BYTES and writer.chance(0.4):
            return self.scalars.value(type_, 1, UNIFORM)
        thin = tuple(1 if writer.chance(0.6) else extent for extent in shape)
        return self.value(type_, thin, depth)

    def leaf(self, type_: str, shape: Shape) -> Term:
        """A variable, a slice of a tensor, or a tile of one number."""
        writer = self.writer
        known = writer.known(type_, shape, UNIFORM)
        if known and writer.chance(0.9 if writer.is_closed else 0.6):
            return writer.pick(known).term
        if type_ == "i32" and writer.chance(0.15):
            return self._iota(shape)
        regions = [
            region
            for region in writer.regions
            if region.tensor.type == type_ and _is_within(shape, region.shape)
        ]
        if regions and not writer.is_closed and writer.chance(0.6):
            return Term(self.region_slice(writer.pick(regions), shape), type_, shape)
        if writer.chance(0.12) or writer.is_closed:
            return self._full(type_, shape)
        return self.slice(type_, shape)

    def _iota(self, shape: Shape) -> Term:
        if len(shape) == 1:
            return Term(f"iota({self.writer.extent(shape[0])})", "i32", shape)
        axis = self.writer.random.randrange(len(shape))
        return Term(f"iota<{axis}>({self._extents(shape)})", "i32", shape)

    def _extents(self, shape: Shape) -> str:
        return ", ".join(map(self.writer.extent, shape))

    def _full(self, type_: str, shape: Shape) -> Term:
        extents = self._extents(shape)
        value = self.scalars.leaf(type_, UNIFORM)
        if self.writer.chance(0.5) and type_ != BOOL:
            value = self.writer.literal(type_)
        return Term(f"full<{type_}>({value.text}, {extents})", type_, shape, size=value.size)

    # Slices --------------------------------------------------------------------------------------

    def slice(self, type_: str, shape: Shape) -> Term:
        """A slice of a tensor, of which some may lie outside."""
        writer = self.writer
        tensor = writer.input(type_, tuple(extent + writer.pick((0, 0, 3)) for extent in shape))
        text = self._slice_text(tensor, shape)
        size = 4.0 if tensor.content == "whole" and is_float(type_) else None
        return self._padded(tensor, text, Term(text, type_, shape, size=size))

    def _padded(self, tensor: TensorParameter, text: str, term: Term) -> Term:
        writer = self.writer
        if writer.chance(0.9) or term.type in BYTES:
            return term
        other = writer.literal(term.type)
        if is_float(term.type) and writer.chance(0.3):
            other = Term("(-inf)", term.type)
        whole = Term(f"pad({text}, {other.text})", term.type, term.shape, size=None)
        return whole if term.size is None or other.size is None else whole.grown(whole.text, 4.0)

    def _slice_text(self, tensor: TensorParameter, shape: Shape) -> str:
        parts = [self._axis(tensor, axis, extent) for axis, extent in enumerate(shape)]
        if all(":" not in part for part in parts):
            parts[-1] += " :+ 1"
        return f"{tensor.name}[{', '.join(parts)}]"

    def _axis(self, tensor: TensorParameter, axis: int, extent: int) -> str:
        writer = self.writer
        if tensor.dims[axis] == str(extent) and writer.chance(0.7):
            return ":"
        if extent == 1 and writer.chance(0.3):
            return self.scalars.inside(tensor.extents[axis], 0, UNIFORM).text
        walks = [name for name, step in writer.walks.items() if step == extent]
        if walks and writer.chance(0.7):
            return f"{writer.pick(walks)} :+ {writer.extent(extent)}"
        start = writer.pick((0, 0, 0, 1, 2, 3))
        if writer.chance(0.08):
            start = -writer.pick((1, 2, 5))
        if writer.chance(0.06):
            start = self.scalars.value(writer.pick(("i8", "u8", "i16", "i32")), 1, UNIFORM).text
            start = f"({start}) % 9" if writer.chance(0.6) else f"i8({start})"
            return f"{start} :+ {writer.extent(extent)}"
        if writer.chance(0.4):
            base = writer.pick(("ctx.block.x", "ctx.block.y", *self._counters()))
            length = writer.extent(extent)
            return f"{base} * {length} + {start} :+ {length}"
        if writer.chance(0.3) and start >= 0:
            return f"{start} : {start + extent}"
        return f"{start} :+ {writer.extent(extent)}"

    def _counters(self) -> list[str]:
        return [
            v.term.text
            for v in self.writer.known("index", None, UNIFORM)
            if v.term.text.startswith("at")
        ]

    def region_slice(self, region: Region, shape: Shape) -> str:
        """A slice of the rows that are the CTA's own."""
        parts = []
        for axis, (extent, whole) in enumerate(zip(shape, region.shape, strict=True)):
            start = str(self.writer.random.randint(0, whole - extent))
            if self.writer.chance(0.4):
                start = self.scalars.inside(whole - extent + 1, 1, UNIFORM).text
            base = f"{region.base} + " if axis == 0 else ""
            parts.append(f"{base}{start} :+ {self.writer.extent(extent)}")
        return f"{region.tensor.name}[{', '.join(parts)}]"

    # Shapes --------------------------------------------------------------------------------------

    def _shaped(self, type_: str, shape: Shape, depth: int) -> Term | None:
        """A tile out of tiles of other shapes; None where the rule that was drawn does not fit."""
        writer = self.writer
        rules = [self._broadcast, self._broadcast, self._reshape, self._cat, self._part]
        if len(shape) >= 2:
            rules += [self._transpose]
        if type_ not in BYTES:
            if len(shape) >= 2:
                rules += [self._triangle]
            if 1 in shape:
                rules += [self._fold, self._fold]
            if type_ != BOOL:
                rules += [self._scan]
            elif not writer.is_closed:
                rules += [self._valid]
            if type_ == "i32" and 1 in shape:
                rules += [self._position]
            if len(shape) == 2 and type_ in ("i32", "f32", "f64"):
                rules += [self._dot] * 3
        if not writer.is_closed:
            rules += [self._gather]
        if writer.calls:
            rules += [self._call, self._call]
        return writer.pick(rules)(type_, shape, depth - 1)

    def _broadcast(self, type_: str, shape: Shape, depth: int) -> Term | None:
        """A tile of the shape with a scalar or a tile that has extent 1 somewhere."""
        writer = self.writer
        if type_ in BYTES or type_ == BOOL:
            return None
        left = self.value(type_, shape, depth)
        right = self._thin(type_, shape, depth)
        op = writer.pick(("+", "-", "*"))
        pair = (left, right) if writer.chance(0.6) else (right, left)
        term = joined(f"({pair[0].text} {op} {pair[1].text})", type_, shape, left, right)
        if left.size is None or right.size is None:
            return term
        return term.grown(term.text, left.size * right.size + left.size + right.size)

    def _transpose(self, type_: str, shape: Shape, depth: int) -> Term:
        value = self.value(type_, (*shape[:-2], shape[-1], shape[-2]), depth)
        return self._moved(f"transpose({value.text})", shape, value)

    def _moved(self, text: str, shape: Shape, value: Term) -> Term:
        return Term(text, value.type, shape, value.level, value.size, value.is_exact)

    def _reshape(self, type_: str, shape: Shape, depth: int) -> Term:
        writer, count = self.writer, prod(shape)
        first = writer.pick([n for n in range(1, count + 1) if count % n == 0])
        other: Shape = (count,) if writer.chance(0.3) else (first, count // first)
        value = self.value(type_, other, depth)
        if len(shape) == 1 and writer.chance(0.6):
            return self._moved(f"flat({value.text})", shape, value)
        return self._moved(f"reshape({value.text}, {self._extents(shape)})", shape, value)

    def _cat(self, type_: str, shape: Shape, depth: int) -> Term | None:
        axis = self.writer.random.randrange(len(shape))
        if shape[axis] < 2:
            return None
        first = self.writer.random.randrange(1, shape[axis])
        parts = [
            self.value(type_, (*shape[:axis], extent, *shape[axis + 1 :]), depth)
            for extent in (first, shape[axis] - first)
        ]
        text = f"cat<{axis}>({', '.join(part.text for part in parts)})"
        term = joined(text, type_, shape, *parts)
        if any(part.size is None for part in parts):
            return term
        return term.grown(text, max(part.size or 0 for part in parts))

    def _part(self, type_: str, shape: Shape, depth: int) -> Term | None:
        """A slice of a tile, possibly at a place known at run time, in part outside of it."""
        writer = self.writer
        larger = tuple(extent + writer.pick((0, 1, 3)) for extent in shape)
        if prod(larger) > 2 * self.writer.most_elements:
            return None
        value = self.value(type_, larger, min(depth, 1))
        starts = []
        for extent in shape:
            start = str(writer.pick((0, 0, 1, 2)))
            if writer.chance(0.3):
                start = self.scalars.inside(4, 1, UNIFORM).text
            starts.append(f"{start} :+ {extent}")
        return self._moved(f"{value.text}[{', '.join(starts)}]", shape, value)

    def _triangle(self, type_: str, shape: Shape, depth: int) -> Term:
        writer = self.writer
        value = self.value(type_, shape, depth)
        diagonal = "" if writer.chance(0.5) else f", {writer.literal('i8').text}"
        return self._moved(f"{writer.pick(('tril', 'triu'))}({value.text}{diagonal})", shape, value)

    # Folds ---------------------------------------------------------------------------------------

    def _fold(self, type_: str, shape: Shape, depth: int) -> Term | None:
        writer = self.writer
        axes = [axis for axis, extent in enumerate(shape) if extent == 1]
        chosen = sorted(writer.random.sample(axes, writer.random.randint(1, len(axes))))
        larger = tuple(
            writer.pick(EXTENTS) if axis in chosen else extent for axis, extent in enumerate(shape)
        )
        if prod(larger) > 2 * self.writer.most_elements:
            return None
        over = ", ".join(map(str, chosen))
        if type_ == BOOL:
            value = self.value(BOOL, larger, depth)
            return self._moved(
                f"{writer.pick(('any', 'all'))}<over {over}>({value.text})", shape, value
            )
        if type_ == "i32" and writer.chance(0.3):
            value = self.value(BOOL, larger, depth)
            name = writer.pick(("count", "sum"))
            return joined(f"{name}<over {over}>({value.text})", type_, shape, value)
        name = writer.pick(("sum", "sum", "prod", "max", "min"))
        value = self.value(type_, larger, depth)
        if len(shape) == 2 and chosen == [1] and name != "prod" and writer.chance(0.4):
            text = f"row{name}({value.text})"
        else:
            text = f"{name}<over {over}>({value.text})"
        return self._folded(name, text, shape, value, prod(larger) // prod(shape))

    def _folded(self, name: str, text: str, shape: Shape, value: Term, count: int) -> Term:
        if value.type not in REALS or name in ("max", "min"):
            return self._moved(text, shape, value)
        term = joined(text, value.type, shape, value)
        if name == "sum" and value.size is not None:
            grown = term.grown(text, value.size * count)
            if grown.is_whole:
                return grown
        return Term(text, value.type, shape, value.level, None, False)

    def _scan(self, type_: str, shape: Shape, depth: int) -> Term | None:
        writer = self.writer
        if type_ not in NUMBERS:
            return None
        axis = writer.random.randrange(len(shape))
        value = self.value(type_, shape, depth)
        if writer.chance(0.3):
            return self._moved(f"scanmax<over {axis}>({value.text})", shape, value)
        text = f"scan<over {axis}>({value.text})"
        if axis == 0 and writer.chance(0.5):
            text = f"cumsum({value.text})"
        return self._folded("sum", text, shape, value, shape[axis])

    def _position(self, type_: str, shape: Shape, depth: int) -> Term | None:
        writer = self.writer
        axis = writer.pick([axis for axis, extent in enumerate(shape) if extent == 1])
        larger = (*shape[:axis], writer.pick(EXTENTS), *shape[axis + 1 :])
        if prod(larger) > 2 * self.writer.most_elements:
            return None
        value = self.value(writer.number(NUMBERS), larger, depth)
        if not value.is_exact:
            value = self.leaf("i32", larger)
        name = writer.pick(("argmax", "argmin"))
        if len(shape) == 2 and axis == 1 and name == "argmax" and writer.chance(0.5):
            return joined(f"rowargmax({value.text})", "i32", shape, value)
        return joined(f"{name}<over {axis}>({value.text})", "i32", shape, value)

    def _valid(self, type_: str, shape: Shape, depth: int) -> Term:
        tensor = self.writer.input(self.writer.number(NUMBERS), shape)
        return Term(f"valid({self._slice_text(tensor, shape)})", BOOL, shape)

    # Products and gathers ------------------------------------------------------------------------

    def _dot(self, type_: str, shape: Shape, depth: int) -> Term | None:
        inner = self.writer.pick((1, 2, 3, 4, 8, 16))
        if max(shape) * inner > 2 * self.writer.most_elements:
            return None
        return self.product(type_, shape, inner, depth)

    def product(self, type_: str, shape: Shape, inner: int, depth: int) -> Term:
        """A product of matrices of some type with so many terms."""
        writer = self.writer
        rows, columns = shape
        operands = {
            "i32": ("i8", "u8"),
            "f32": ("f16", "bf16", "f32", *BYTES),
            "f64": ("f64",),
        }[type_]
        name = writer.pick(("dot", "dot_t", "t_dot"))
        first = (inner, rows) if name == "t_dot" else (rows, inner)
        second = (columns, inner) if name == "dot_t" else (inner, columns)
        kind = writer.pick(operands)
        other = kind if kind in BYTES or writer.chance(0.7) else writer.pick(operands)
        a, b = self.value(kind, first, min(depth, 1)), self.value(other, second, min(depth, 1))
        text = f"{name}({a.text}, {b.text})"
        term = joined(text, type_, shape, a, b)
        if type_ == "i32":
            return term
        if a.size is not None and b.size is not None:
            grown = term.grown(text, a.size * b.size * inner)
            if grown.is_whole:
                return grown
        return Term(text, type_, shape, term.level, None, False)

    def _gather(self, type_: str, shape: Shape, depth: int) -> Term | None:
        """Rows by number, or a number for each element."""
        writer = self.writer
        axis = writer.random.randrange(len(shape))
        extents = tuple(max(1, extent + writer.random.randint(-1, 3)) for extent in shape)
        tensor = writer.input(type_, extents)
        numbers_type = writer.pick(("i32", "i32", "i64", "u8", "i16", "u32"))
        size = 4.0 if tensor.content == "whole" and is_float(type_) else None
        mask = f" & {writer.pick((3, 7, 15))}" if writer.chance(0.7) else ""
        if writer.chance(0.5):
            numbers = self.value(numbers_type, (shape[axis],), depth)
            parts = [self._axis(tensor, i, extent) for i, extent in enumerate(shape)]
            parts[axis] = f"({numbers.text}{mask})"
            return Term(f"{tensor.name}[{', '.join(parts)}]", type_, shape, size=size)
        numbers = self.value(numbers_type, shape, depth)
        text = f"gather({tensor.name}, ({numbers.text}{mask}), {axis})"
        return Term(text, type_, shape, size=size)

    # Functions -----------------------------------------------------------------------------------

    def _call(self, type_: str, shape: Shape, depth: int) -> Term | None:
        """A call of a function that gives such a tile."""
        fitting = [
            function
            for function in self.writer.calls
            if function.type == type_ and function.shape == shape
        ]
        if not fitting:
            return None
        function = self.writer.pick(fitting)
        parts = [
            self.scalars.value(wanted, 1, UNIFORM)
            if extents is None
            else self.value(wanted, extents, depth)
            for wanted, extents in function.parameters
        ]
        term = joined(f"{function.name}({', '.join(p.text for p in parts)})", type_, shape, *parts)
        return term if function.is_exact else replace(term, is_exact=False)


__all__ = ["INTEGERS", "Tiles", "random_shape"]
