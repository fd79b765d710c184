"""Statements of per-thread programs: threads part and meet again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tools.fuzz.generator.functions import write_function
from tools.fuzz.generator.runs import Runs
from tools.fuzz.generator.scalars import Scalars
from tools.fuzz.generator.terms import (
    INTEGERS,
    NUMBERS,
    REALS,
    UNIFORM,
    VARYING,
    WARP,
    WHOLE_LIMITS,
    TensorParameter,
    Term,
    Variable,
)
from tools.fuzz.generator.tiles import Tiles
from tools.fuzz.generator.writer import Writer
from tools.fuzz.scalars import BOOL, INDEX

_COMPOUND = ("+=", "-=", "*=")
_ATOMICS = ("atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor")
_ATOMIC_TYPES = ("i32", "u32", "i64", "u64")
MOST_RESULTS = 2


class ThreadProgram:
    """Writes a kernel of statements that each thread executes for itself."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.scalars = Scalars(writer)
        self.kept: TensorParameter | None = None

    def write(self) -> None:
        """The whole body."""
        writer = self.writer
        if writer.chance(0.25):
            write_function(writer, self.scalars, Tiles(writer, self.scalars), None)
        self._declare(0)
        count, nesting = (6, 2) if writer.is_large else (writer.pick((1, 1, 2, 2)), 1)
        self.statements(count, nesting)
        for variable in writer.variables[-writer.random.randint(1, MOST_RESULTS) :]:
            self._result(variable.term)

    def statements(self, count: int, nesting: int) -> None:
        """Several statements, which nest so deep."""
        for _ in range(count):
            self.statement(nesting)

    def statement(self, nesting: int) -> None:
        """A statement."""
        writer = self.writer
        rules: list[Callable[[int], None]] = [self._declare] * 3 + [self._assign] * 3
        rules += [self._atomic, self._run, self._own_elements]
        if nesting > 0:
            rules += [self._if, self._if, self._for, self._while]
        if writer.flow == UNIFORM:
            rules += [self._exchange]
        writer.pick(rules)(nesting)

    def level(self) -> int:
        """How far a value may differ."""
        return self.writer.pick((UNIFORM, WARP, VARYING, VARYING, VARYING))

    def type_(self) -> str:
        """A type for a scalar."""
        return self.writer.number() if self.writer.chance(0.9) else BOOL

    # Statements ----------------------------------------------------------------------------------

    def _declare(self, nesting: int) -> None:
        writer = self.writer
        value = self.scalars.value(self.type_(), self.writer.pick((1, 2, 2, 3)), self.level())
        writer.declare(value, is_mutable=writer.chance(0.6))

    def _assign(self, nesting: int) -> None:
        writer = self.writer
        targets = [v for v in writer.variables if v.is_mutable and v.cap >= writer.flow]
        if not targets:
            self._declare(nesting)
            return
        target = writer.pick(targets)
        value = self.scalars.value(target.term.type, self.writer.pick((1, 2, 2, 3)), target.cap)
        if not value.is_exact and target.term.is_exact:
            return
        op = "="
        if target.term.type in NUMBERS and writer.chance(0.5):
            op = writer.pick(_COMPOUND)
            if target.term.type in INTEGERS and writer.chance(0.3):
                op = writer.pick(("&=", "|=", "^="))
        if op != "=" and writer.chance(0.1):
            writer.line(f"{target.term.text} {writer.compound(target.term.type)}")
            return
        writer.line(f"{target.term.text} {op} {value.text}")

    def _condition(self, level: int) -> Term:
        return self.scalars.value(BOOL, 2, level)

    def _if(self, nesting: int) -> None:
        writer = self.writer

        def some() -> None:
            self.statements(1, nesting - 1)

        writer.branches(self._condition(self.level()), some, some if writer.chance(0.4) else None)

    def _for(self, nesting: int) -> None:
        writer = self.writer
        counter = writer.fresh("at")
        level = self.level()
        stop = self.scalars.inside(4, 1, level)
        text, differs = stop.text, stop.level
        match writer.random.randrange(4):
            case 0:
                start = self.scalars.inside(4, 1, level)
                text, differs = f"{start.text}, {stop.text}", max(start.level, stop.level)
            case 1:
                text = f"0, {stop.text}, {writer.pick((1, 2, 3))}"
            case 2:
                text = f"{stop.text}, -1, -1"
            case _:
                pass
        type_ = INDEX
        if writer.chance(0.2):
            type_, text, differs = self.scalars.typed_range(level)
        exit_ = self._exit(level)
        with writer.block(f"for {counter} in range({text})", max(differs, exit_)):
            cap = max(differs, writer.flow)
            writer.variables.append(Variable(Term(counter, type_, level=cap), False, cap))
            self._loop_body(nesting, exit_)

    def _exit(self, level: int) -> int:
        """How far the condition of a `break` in a loop differs; -1 for a loop without one."""
        return level if self.writer.chance(0.35) else -1

    def _loop_body(self, nesting: int, exit_: int) -> None:
        writer = self.writer
        self._assign(nesting - 1)
        if exit_ >= 0:
            condition = self._condition(exit_)
            with writer.block(f"if {condition.text}", condition.level):
                self._assign(0)
                writer.line(writer.pick(("break", "continue")))
        self.statements(1, nesting - 1)

    def _while(self, nesting: int) -> None:
        writer = self.writer
        counter = writer.fresh("n")
        writer.line(f"var {counter}: i32 = 0")
        level = self.level()
        exit_ = self._exit(level)
        limit = self.scalars.inside(4, 1, level)
        flow = max(limit.level, exit_)
        with writer.block(f"while {counter} < i32({limit.text})", flow):
            writer.line(f"{counter} += 1")
            self._loop_body(nesting, exit_)

    # Memory --------------------------------------------------------------------------------------

    def _own(self) -> tuple[str, int]:
        """A number of the thread in the grid, and how many there are."""
        grid_x, grid_y = self.writer.grid
        block = "(ctx.block.x * ctx.blocks.y + ctx.block.y)"
        return f"{block} * ctx.threads + ctx.thread", grid_x * grid_y * self.writer.threads

    def _result(self, value: Term) -> None:
        """Each thread stores a value at a place of its own."""
        writer = self.writer
        own, count = self._own()
        if writer.chance(0.3):
            extents = (writer.grid[0] * writer.grid[1], writer.threads)
            tensor = writer.tensor("o", value.type, extents, "broad", is_input=False)
            block = "ctx.block.x * ctx.blocks.y + ctx.block.y"
            writer.line(f"{tensor.name}[{block}, ctx.thread] = {value.text}")
            return
        extent = max(1, count + writer.pick((0, 0, 3, -5)))
        tensor = writer.tensor("o", value.type, (extent,), "broad", is_input=False)
        if extent >= count:
            writer.line(f"{tensor.name}[{own}] = {value.text}")
            return
        with writer.block(f"if {own} < extent({tensor.name}, 0)", VARYING):
            writer.line(f"{tensor.name}[{own}] = {value.text}")

    def _atomic(self, nesting: int) -> None:
        """An update whose order does not matter, of a tensor that nothing else touches."""
        writer = self.writer
        type_ = writer.pick((*_ATOMIC_TYPES, "f32", "f16", "f64", "bf16"))
        names = _ATOMICS if type_ in INTEGERS else ("atomic_max", "atomic_min")
        many = 8 * writer.threads * writer.grid[0] * writer.grid[1]
        value = self.scalars.value(type_, 2, VARYING)
        if not value.is_exact:
            return
        limit = WHOLE_LIMITS.get(type_, 0)
        if value.size is not None and value.size * many + 4 <= limit:
            names = ("atomic_add",)
        extent = writer.random.randint(1, 9)
        tensor = writer.tensor("a", type_, (extent,), "whole", is_input=False)
        place = self.scalars.inside(extent, 1, VARYING)
        writer.line(f"{writer.pick(names)}({tensor.name}, {place.text}, {value.text})")

    def _own_elements(self, nesting: int) -> None:
        """Two elements of a tensor that are the thread's own, written and read again."""
        writer = self.writer
        if self.kept is None:
            count = writer.grid[0] * writer.grid[1] * writer.threads
            self.kept = writer.tensor("m", writer.number(), (2 * count,), "whole", is_input=False)
        tensor = self.kept
        own, _ = self._own()
        places = [
            f"{tensor.name}[({own}) * 2 + {self.scalars.inside(2, 1, VARYING).text}]"
            for _ in range(2)
        ]
        value = self.scalars.value(tensor.type, 2, VARYING)
        if value.is_exact:
            writer.line(f"{places[0]} {writer.pick(('=', '=', '+='))} {value.text}")
        if writer.chance(0.6):
            writer.declare(Term(places[1], tensor.type, None, VARYING), is_mutable=False)

    def _exchange(self, nesting: int) -> None:
        """A tile in which each thread leaves a value that another one takes."""
        writer = self.writer
        type_ = writer.pick((*NUMBERS, BOOL))
        value = self.scalars.value(type_, 2, VARYING)
        name = writer.fresh("s")
        writer.line(f"var {name}: tile<{type_}>[{writer.threads}]")
        writer.line(f"{name}[ctx.thread] = {value.text}")
        writer.line("barrier()")
        place = self.scalars.inside(writer.threads, 1, VARYING)
        taken = Term(f"{name}[{place.text}]", type_, None, VARYING, value.size, value.is_exact)
        writer.declare(taken, is_mutable=writer.chance(0.5))

    def _run(self, nesting: int) -> None:
        """Neighbouring elements of one thread, folded or stored."""
        writer = self.writer
        own, count = self._own()
        length = writer.pick((1, 2, 3, 4, 4, 8))
        runs = Runs(writer, self.scalars, length, own, count)
        if writer.chance(0.2):
            self._bytes(runs)
            return
        type_ = writer.number(NUMBERS)
        value = runs.value(type_, writer.pick((0, 1, 1, 2)))
        if writer.chance(0.5):
            total = Term(f"sum({value.text})", type_, None, VARYING, None, value.is_exact)
            if type_ in REALS:
                size = None if value.size is None else value.size * length
                total = total.grown(total.text, size)
                total = total if total.is_whole else replace(total, is_exact=False)
            writer.declare(total, is_mutable=writer.chance(0.5))
            return
        if not value.is_exact and writer.chance(0.7):
            return
        tensor = writer.tensor("o", type_, (count * length,), "whole", is_input=False)
        writer.line(f"store({runs.place(tensor)}, {value.text})")

    def _bytes(self, runs: Runs) -> None:
        """A sum of products of bytes, or bytes packed into words."""
        writer = self.writer
        kinds = ("i8", "u8")
        left, right = (runs.read(writer.pick(kinds)) for _ in range(2))
        text = f"sum(i32({left.text}) * i32({right.text}))"
        if runs.length == 4 and writer.chance(0.5):
            text = f"dp4a(word({left.text}), word({right.text}), {writer.literal('i8').text})"
        writer.declare(Term(text, "i32", None, VARYING), is_mutable=writer.chance(0.5))
