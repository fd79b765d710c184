"""Statements of tile programs: all threads of a CTA go the same way."""

from __future__ import annotations

from collections.abc import Callable

from tools.fuzz.generator.scalars import Scalars
from tools.fuzz.generator.terms import BYTES, INTEGERS, NUMBERS, UNIFORM, Shape, Term, Variable
from tools.fuzz.generator.tiles import Tiles, random_shape
from tools.fuzz.generator.writer import Writer
from tools.fuzz.scalars import BOOL, INDEX, is_float

_COMPOUND = ("+=", "-=", "*=")
MOST_STORES = 2


class TileProgram:
    """Writes a kernel of tile statements."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.scalars = Scalars(writer)
        self.tiles = Tiles(writer, self.scalars)
        writer_rank = writer.pick((1, 2, 2, 2, 3))
        self.shapes: list[Shape] = [random_shape(writer, writer_rank) for _ in range(2)]
        self.stored = 0

    def write(self) -> None:
        """The whole body."""
        writer = self.writer
        is_large = writer.chance(0.04)
        count, nesting = (5, 2) if is_large else (writer.pick((1, 1, 2, 2, 3)), writer.pick((0, 1)))
        self.statements(count, nesting)
        shaped = [v for v in self.writer.variables if v.term.shape is not None]
        for variable in shaped[-writer.random.randint(1, MOST_STORES) :]:
            self.store(variable.term)
        if not shaped:
            self.store(self.tiles.value(self.type_(), self.shape(), 2))

    def statements(self, count: int, nesting: int) -> None:
        """Several statements, which nest so deep."""
        for _ in range(count):
            self.statement(nesting)

    def statement(self, nesting: int) -> None:
        """A statement."""
        rules: list[Callable[[int], None]] = [self._declare] * 4 + [self._assign] * 3
        rules += [self._scalar, self._assign_part]
        if nesting > 0:
            rules += [self._if, self._for, self._while]
        self.writer.pick(rules)(nesting)

    # Parts ---------------------------------------------------------------------------------------

    def type_(self) -> str:
        """A type for a tile."""
        return self.writer.pick((*NUMBERS, "i32", "f32", "f32", "f16", BOOL, BOOL, *BYTES))

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
        writer.line(f"{target.text} {op} {value.text}")

    def _assign_part(self, nesting: int) -> None:
        """A slice of a tile, or an element that one thread writes."""
        writer = self.writer
        targets = self._targets()
        if not targets:
            self._declare(nesting)
            return
        target = writer.pick(targets).term
        assert target.shape is not None
        if writer.chance(0.35):
            points = ", ".join(self.scalars.inside(n, 1, UNIFORM).text for n in target.shape)
            value = self.scalars.value(target.type, 2, UNIFORM)
            if value.is_exact or not target.is_exact:
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
        with writer.block(f"for {unroll}{counter} in range({bounds})"):
            writer.variables.append(Variable(Term(counter, INDEX), False, UNIFORM))
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
