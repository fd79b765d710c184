"""Statements of tile programs: all threads of a CTA go the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from tools.fuzz.generator.functions import write_function
from tools.fuzz.generator.scalars import Scalars
from tools.fuzz.generator.terms import (
    BYTES,
    INTEGERS,
    NUMBERS,
    UNIFORM,
    VARYING,
    Region,
    Shape,
    Term,
    Variable,
)
from tools.fuzz.generator.tiles import Tiles, random_shape
from tools.fuzz.generator.writer import Writer
from tools.fuzz.scalars import BOOL, INDEX, is_float

_SIZES = ((1, 0), (1, 1), (2, 0), (2, 1))
"""How many statements a program has, and how deep they nest."""
_COMPOUND = ("+=", "-=", "*=")
MOST_STORES = 2


class TileProgram:
    """Writes a kernel of tile statements."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.scalars = Scalars(writer)
        self.tiles = Tiles(writer, self.scalars)
        writer_rank = writer.pick((1, 1, 2, 2, 2, 2, 2, 3, 3, 4))
        self.shapes: list[Shape] = [random_shape(writer, writer_rank) for _ in range(2)]
        self.stored = 0

    def write(self) -> None:
        """The whole body."""
        writer = self.writer
        if writer.chance(0.2):
            shape = None if writer.chance(0.3) else writer.pick(self.shapes)
            write_function(writer, self.scalars, self.tiles, shape)
        count, nesting = (6, 2) if writer.is_large else writer.pick(_SIZES)
        if writer.chance(0.25):
            self.add_region()
        self.statements(count, nesting)
        shaped = [v for v in self.writer.variables if v.term.shape is not None]
        for variable in shaped[-writer.random.randint(1, MOST_STORES) :]:
            self.store(variable.term)
        own = [v for v in writer.variables if v.term.shape is None and v.term.level == VARYING]
        for variable in own[-1:]:
            self._store_own(variable.term)
        if not shaped:
            self.store(self.tiles.value(self.type_(), self.shape(), 2))

    def statements(self, count: int, nesting: int) -> None:
        """Several statements, which nest so deep."""
        for _ in range(count):
            self.statement(nesting)

    def statement(self, nesting: int) -> None:
        """A statement."""
        rules: list[Callable[[int], None]] = [self._declare] * 3 + [self._assign] * 2
        rules += [
            self._scalar,
            self._assign_part,
            self._assign_part,
            self._threads_write,
            self._threads_read,
        ]
        if nesting > 0:
            rules += [self._if, self._for, self._while, self._walk, self._walk]
        if nesting > 0 or self.writer.chance(0.3):
            rules += [self._scatter, self._pieces]
        if self.writer.regions:
            rules += [self._write_region] * 4
        self.writer.pick(rules)(nesting)

    # Parts ---------------------------------------------------------------------------------------

    def type_(self) -> str:
        """A type for a tile."""
        if self.writer.chance(0.85):
            return self.writer.number()
        return self.writer.pick((BOOL, BOOL, *BYTES))

    def shape(self) -> Shape:
        """A shape: mostly one that others have, so that tiles meet."""
        writer = self.writer
        if writer.chance(0.75):
            return writer.pick(self.shapes)
        if writer.chance(0.5):
            base = writer.pick(self.shapes)
            return tuple(1 if writer.chance(0.5) else extent for extent in base)
        return random_shape(writer, writer.pick((1, 2, 2, 3)))

    def depth(self) -> int:
        """How deep an expression nests."""
        return self.writer.pick((1, 1, 1, 2, 2, 3))

    def condition(self) -> Term:
        """A bool that all threads agree on."""
        return self.scalars.value(BOOL, 2, UNIFORM)

    # Statements ----------------------------------------------------------------------------------

    def _declare(self, nesting: int) -> None:
        writer = self.writer
        value = self.tiles.value(self.type_(), self.shape(), self.depth())
        written = ""
        if writer.chance(0.15):
            assert value.shape is not None
            written = f": tile<{value.type}>[{', '.join(map(str, value.shape))}]"
        writer.declare(value, is_mutable=writer.chance(0.5), written_type=written)

    def _scalar(self, nesting: int) -> None:
        """A number, sometimes an element of a tile."""
        writer = self.writer
        known = [v for v in writer.variables if v.term.shape is not None]
        if known and writer.chance(0.5):
            tile = writer.pick(known).term
            assert tile.shape is not None
            points = [self.scalars.inside(extent, 1, UNIFORM).text for extent in tile.shape]
            text = f"{tile.text}[{', '.join(points)}]"
            value = Term(text, tile.type, None, UNIFORM, tile.size, tile.is_exact)
        else:
            value = self.scalars.value(writer.pick((*NUMBERS, BOOL)), 2, UNIFORM)
        writer.declare(value, is_mutable=writer.chance(0.4))

    def _targets(self) -> list[Variable]:
        return [v for v in self.writer.variables if v.is_mutable and v.term.shape is not None]

    def _assign(self, nesting: int) -> None:
        writer = self.writer
        targets = [v for v in writer.variables if v.is_mutable]
        if not targets:
            self._declare(nesting)
            return
        target = writer.pick(targets).term
        if target.shape is None:
            value = self.scalars.value(target.type, 2, UNIFORM)
        else:
            value = self.tiles.value(target.type, target.shape, self.depth())
        if not value.is_exact and target.is_exact:
            return
        op = "="
        if target.type in NUMBERS and writer.chance(0.5):
            op = writer.pick(_COMPOUND)
            if target.type in INTEGERS and writer.chance(0.3):
                op = writer.pick(("&=", "|=", "^="))
        if op != "=" and writer.chance(0.1):
            writer.line(f"{target.text} {writer.compound(target.type)}")
            return
        writer.line(f"{target.text} {op} {value.text}")

    def _assign_part(self, nesting: int) -> None:
        """A slice of a tile, or an element that one thread writes."""
        writer = self.writer
        targets = self._targets()
        if not targets:
            tile = self.tiles.value(self.type_(), self.shape(), 1)
            targets = [writer.declare(tile, is_mutable=True)]
        target = writer.pick(targets).term
        assert target.shape is not None
        if writer.chance(0.35):
            points = ", ".join(self.scalars.inside(n, 1, UNIFORM).text for n in target.shape)
            value = self.scalars.value(target.type, 2, UNIFORM)
            if value.is_exact or not target.is_exact:
                # Threads may have read the element before.
                writer.line("barrier()")
                with writer.block("if ctx.thread == 0"):
                    writer.line(f"{target.text}[{points}] = {value.text}")
                writer.line("barrier()")
            return
        shape = tuple(writer.random.randint(1, extent) for extent in target.shape)
        value = self.tiles.value(target.type, shape, 1)
        if not value.is_exact and target.is_exact:
            return
        starts = []
        for extent, length in zip(target.shape, shape, strict=True):
            start = str(writer.random.randint(0, extent - length + 1))
            if writer.chance(0.3):
                start = self.scalars.inside(extent, 1, UNIFORM).text
            starts.append(f"{start} :+ {length}")
        op = "=" if target.type not in NUMBERS or writer.chance(0.6) else "+="
        writer.line(f"{target.text}[{', '.join(starts)}] {op} {value.text}")

    def _if(self, nesting: int) -> None:
        writer = self.writer

        def some() -> None:
            self.statements(1, nesting - 1)

        writer.branches(self.condition(), some, some if writer.chance(0.4) else None)

    def _for(self, nesting: int) -> None:
        writer = self.writer
        counter = writer.fresh("at")
        bounds = self._range()
        unroll = writer.pick(("", "", "", "<unroll> ", "<unroll 2> "))
        type_ = INDEX
        if writer.chance(0.2):
            type_, bounds = self.scalars.typed_range(UNIFORM)[:2]
        with writer.block(f"for {unroll}{counter} in range({bounds})"):
            writer.variables.append(Variable(Term(counter, type_), False, UNIFORM))
            self._loop_body(nesting)

    def _range(self) -> str:
        writer = self.writer
        stop = str(writer.random.randint(1, 3))
        if writer.chance(0.4):
            stop = self.scalars.inside(4, 1, UNIFORM).text
        match writer.random.randrange(4):
            case 0:
                return f"{writer.random.randint(0, 2)}, {stop}"
            case 1:
                return f"0, {stop}, {writer.pick((1, 2, 3))}"
            case 2:
                return f"{stop}, {writer.pick((0, -1))}, -1"
            case _:
                return stop

    def _loop_body(self, nesting: int) -> None:
        writer = self.writer
        self._assign(nesting - 1)
        if writer.chance(0.25):
            with writer.block(f"if {self.condition().text}"):
                self._assign(0)
                writer.line(writer.pick(("break", "continue")))
        self.statements(1, nesting - 1)

    def _while(self, nesting: int) -> None:
        writer = self.writer
        counter = writer.fresh("n")
        writer.line(f"var {counter}: i32 = 0")
        limit = writer.random.randint(1, 3)
        condition = f"{counter} < {limit}"
        if writer.chance(0.3):
            condition += f" && {self.condition().text}"
        with writer.block(f"while {condition}"):
            writer.line(f"{counter} += 1")
            self._loop_body(nesting)

    def _walk(self, nesting: int) -> None:
        """A loop along an axis of a tensor, whose extent only the launch knows."""
        writer = self.writer
        type_ = writer.number()
        if writer.chance(0.3):
            type_ = writer.pick(("i32", "f32", "f32", "f64"))
        step = writer.pick((1, 2, 4, 4, 8, 8, 16))
        rank = writer.pick((1, 2, 2, 2))
        shape = random_shape(writer, rank)
        depth = writer.pick((0, 0, 1))
        if rank == 2 and writer.chance(0.3):
            # What tensor cores multiply.
            shape, step = (writer.pick((8, 16, 32)), writer.pick((8, 16))), writer.pick((8, 16, 32))
            type_, depth = writer.pick(("f32", "f32", "i32", "f64")), 0
        axis = writer.random.randrange(rank)
        start = "0" if writer.chance(0.8) else str(writer.pick((1, 2, step)))
        is_product = rank == 2 and type_ in ("i32", "f32", "f64") and writer.chance(0.6)
        thin = shape if is_product else (*shape[:axis], 1, *shape[axis + 1 :])
        zero = Term(f"full<{type_}>(0, {', '.join(map(writer.extent, thin))})", type_, thin)
        total = writer.declare(zero, is_mutable=True)
        counter = writer.fresh("at")
        extents = [term.text for term in writer.extents()]
        stop = writer.pick(extents) if extents else str(writer.random.randint(1, 20))
        if not extents or writer.chance(0.2):
            stop = str(writer.random.randint(1, 20))
        writer.walks[counter] = step
        if is_product:
            value = self.tiles.product(type_, shape, step, depth)
        else:
            value = self.tiles.value(type_, (*shape[:axis], step, *shape[axis + 1 :]), depth)
            name = "sum" if type_ in INTEGERS or value.is_whole else writer.pick(("max", "min"))
            value = replace(value, text=f"{name}<over {axis}>({value.text})", size=None)
        del writer.walks[counter]
        if not value.is_exact:
            total.term = replace(total.term, is_exact=False)
        with writer.block(f"for {counter} in range({start}, {stop}, {writer.extent(step)})"):
            op = "+=" if is_product or "sum<" in value.text[:4] else "="
            writer.line(f"{total.term.text} {op} {value.text}")
            if writer.chance(0.2):
                with writer.block(f"if {counter} > {writer.pick((0, 1, 4, 8))}"):
                    writer.line(writer.pick(("break", "continue")))

    def _pieces(self, nesting: int) -> None:
        """A tile that starts without a value and is written in two parts."""
        writer = self.writer
        type_, shape = self.type_(), self.shape()
        axis = writer.random.randrange(len(shape))
        if shape[axis] < 2:
            return
        name = writer.fresh("v")
        writer.line(f"var {name}: tile<{type_}>[{', '.join(map(writer.extent, shape))}]")
        first = writer.random.randrange(1, shape[axis])
        is_exact = True
        for start, length in ((0, first), (first, shape[axis] - first)):
            value = self.tiles.value(type_, (*shape[:axis], length, *shape[axis + 1 :]), 1)
            parts = [f"0 :+ {extent}" if writer.chance(0.5) else ":" for extent in shape]
            parts[axis] = f"{start} :+ {length}"
            writer.line(f"{name}[{', '.join(parts)}] = {value.text}")
            is_exact = is_exact and value.is_exact
        writer.variables.append(Variable(Term(name, type_, shape, is_exact=is_exact), True))

    def add_region(self) -> None:
        """A tensor that the program reads and writes, each CTA a part of its own."""
        writer = self.writer
        shape = tuple(max(2, extent + writer.pick((0, 1, 4))) for extent in self.shapes[0])
        count = writer.grid[0] * writer.grid[1]
        extents = (max(1, count * shape[0] - writer.pick((0, 0, 1))), *shape[1:])
        tensor = writer.tensor("m", writer.number(), extents, "whole", is_input=False)
        base = f"(ctx.block.x * ctx.blocks.y + ctx.block.y) * {shape[0]}"
        writer.regions.append(Region(tensor, base, shape))

    def _write_region(self, nesting: int) -> None:
        """A slice of a tensor that other slices of it may be read into."""
        writer = self.writer
        region = writer.pick(writer.regions)
        shape = tuple(writer.random.randint(1, extent) for extent in region.shape)
        value = self.tiles.value(region.tensor.type, shape, writer.pick((0, 1, 1, 2)))
        if value.is_exact:
            op = "=" if writer.chance(0.7) else "+="
            writer.line(f"{self.tiles.region_slice(region, shape)} {op} {value.text}")

    def _scatter(self, nesting: int) -> None:
        """Rows that are written by number, each once; some lie outside."""
        writer = self.writer
        type_ = writer.pick((*NUMBERS, BOOL))
        count, width = writer.pick((4, 8, 16)), writer.pick((1, 3, 4, 8))
        value = self.tiles.value(type_, (count, width), 1)
        numbers = f"(iota({count}) * {writer.pick((1, 3, 5, 7))} + {writer.pick((0, 1, 2))})"
        base = f"i32((ctx.block.x * ctx.blocks.y + ctx.block.y) * {count})"
        rows = f"({numbers} & {count - 1}) + {base}"
        extent = max(1, writer.grid[0] * writer.grid[1] * count + writer.pick((0, 0, -3, 5)))
        extents = (extent, max(1, width + writer.pick((0, 0, -1, 2))))
        tensor = writer.tensor("o", type_, extents, "broad", is_input=False)
        writer.line(f"{tensor.name}[{rows}, 0 :+ {width}] = {value.text}")

    # Threads ---------------------------------------------------------------------------------

    def _places(self, shape: Shape, number: str) -> str:
        """The subscripts of an element by its number."""
        parts, below = [], prod(shape)
        for extent in shape:
            below //= extent
            part = number if below == 1 else f"({number}) / {below}"
            parts.append(part if below * extent == prod(shape) else f"{part} % {extent}")
        return ", ".join(parts)

    def _threads_write(self, nesting: int) -> None:
        """Elements of a tile that threads write, each its own."""
        writer = self.writer
        targets = [v for v in self._targets() if v.term.type not in BYTES]
        if not targets:
            tile = self.tiles.value(writer.number(), self.shape(), 1)
            targets = [writer.declare(tile, is_mutable=True)]
        target = writer.pick(targets).term
        assert target.shape is not None
        count = prod(target.shape)
        number = writer.fresh("e")
        writer.line("barrier()")
        with writer.block(f"for {number} in range(ctx.thread, {count}, ctx.threads)", VARYING):
            writer.variables.append(Variable(Term(number, INDEX, level=VARYING), False))
            value = self.scalars.value(target.type, 2, VARYING)
            while not value.is_exact and target.is_exact:
                value = self.scalars.value(target.type, 1, VARYING)
            at = number if writer.chance(0.6) else f"({count - 1} - {number})"
            op = "=" if target.type not in NUMBERS or writer.chance(0.6) else "+="
            writer.line(f"{target.text}[{self._places(target.shape, at)}] {op} {value.text}")
        if writer.chance(0.6):
            writer.line("barrier()")
            return
        # A tile operation sees what threads wrote without one.
        left = self.tiles.value(target.type, target.shape, 1)
        if left.is_exact or not target.is_exact:
            condition = self.tiles.value(BOOL, target.shape, 1)
            if condition.is_exact:
                text = f"where({condition.text}, {target.text}, {left.text})"
                writer.line(f"{target.text} = {text}")
                return
        writer.line("barrier()")

    def _threads_read(self, nesting: int) -> None:
        """An element of a tile for each thread."""
        writer = self.writer
        known = [v for v in writer.variables if v.term.shape is not None]
        if not known:
            made = self.tiles.value(writer.pick((*NUMBERS, BOOL)), self.shape(), self.depth())
            known = [writer.declare(made, is_mutable=False)]
        tile = writer.pick(known).term
        assert tile.shape is not None
        points = [self.scalars.inside(extent, 1, VARYING).text for extent in tile.shape]
        text = f"{tile.text}[{', '.join(points)}]"
        if tile.type in BYTES:
            text = f"f32({text})"
        type_ = "f32" if tile.type in BYTES else tile.type
        value = Term(text, type_, None, VARYING, tile.size, tile.is_exact)
        writer.declare(value, is_mutable=False)

    def _store_own(self, value: Term) -> None:
        """Each thread stores a number at a place of its own."""
        writer = self.writer
        count = writer.grid[0] * writer.grid[1] * writer.threads
        tensor = writer.tensor("o", value.type, (count,), "broad", is_input=False)
        block = "(ctx.block.x * ctx.blocks.y + ctx.block.y)"
        writer.line(f"{tensor.name}[{block} * ctx.threads + ctx.thread] = {value.text}")

    # Results -------------------------------------------------------------------------------------

    def store(self, value: Term) -> None:
        """Stores a tile into a tensor of its own, where each CTA has a place."""
        writer, shape = self.writer, value.shape
        assert shape is not None
        grid_x, grid_y = writer.grid
        places = [grid_x * grid_y] if len(shape) == 1 else [grid_x, grid_y]
        starts = ["(ctx.block.x * ctx.blocks.y + ctx.block.y)"]
        starts = starts if len(shape) == 1 else ["ctx.block.x", "ctx.block.y"]
        extents, parts = [], []
        for axis, extent in enumerate(shape):
            count = places[axis] if axis < len(places) else 1
            extents.append(max(1, count * extent + writer.pick((0, 0, -1, -extent // 2, 2))))
            base = f"{starts[axis]} * {extent}" if axis < len(starts) else "0"
            parts.append(f"{base} :+ {extent}")
        tensor = writer.tensor("o", value.type, tuple(extents), "broad", is_input=False)
        if is_float(value.type):
            writer.tensors[-1] = tensor
        writer.line(f"{tensor.name}[{', '.join(parts)}] = {value.text}")
