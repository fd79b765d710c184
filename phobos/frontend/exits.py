"""Turns `break`, `continue` and `return` into structured control flow.

    if done { return }              if done { } else {
    rest                      -->     rest
                                    }

Where a branch always leaves, what follows moves into the other branch. Where it may or may not
leave, it sets a flag, and what follows runs under a test of the flag. A loop that `break` or
`return` can leave tests its flag in its condition; a `for` among them becomes a `while`.

Precondition: a checked block. Postcondition: no Break, Continue or Return in it. Linear in the
size of the program times its nesting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto

from phobos.diagnostics import Location, PhobosError
from phobos.frontend.operations import has_effects
from phobos.frontend.operators import BinaryOp, UnaryOp
from phobos.frontend.typed import (
    Arithmetic,
    Assign,
    Block,
    Break,
    Compare,
    Continue,
    Convert,
    Declare,
    Expr,
    For,
    If,
    Literal,
    Logic,
    Prefix,
    Read,
    Return,
    Role,
    Select,
    Stmt,
    Variable,
    While,
)
from phobos.frontend.types import BOOL, ScalarType

MAX_NESTING = 50
"""Ways out of one block that may follow each other, since what follows each nests deeper."""


class Exit(Enum):
    """A way out of a block other than its end."""

    BREAK = auto()
    CONTINUE = auto()
    RETURN = auto()


_EXIT_OF: dict[type[Stmt], Exit] = {
    Break: Exit.BREAK,
    Continue: Exit.CONTINUE,
    Return: Exit.RETURN,
}
_FLAG_NAMES = {Exit.BREAK: "broken", Exit.CONTINUE: "continued", Exit.RETURN: "returned"}
_NOTHING: frozenset[Exit] = frozenset()


def exits_of(stmts: Iterable[Stmt]) -> frozenset[Exit]:
    """The ways in which statements may leave the block that they stand in."""
    found = _NOTHING
    for stmt in stmts:
        found |= _exits_of_one(stmt)
    return found


def _exits_of_one(stmt: Stmt) -> frozenset[Exit]:
    match stmt:
        case If():
            return exits_of(stmt.then.statements) | exits_of(stmt.otherwise.statements)
        case For() | While():
            return exits_of(stmt.body.statements) & {Exit.RETURN}
        case Break() | Continue() | Return():
            return frozenset({_EXIT_OF[type(stmt)]})
        case _:
            return _NOTHING


def always_leaves(stmts: Iterable[Stmt]) -> bool:
    """Whether the end of a block is never reached."""
    return any(map(_always_leaves_at, stmts))


def _always_leaves_at(stmt: Stmt) -> bool:
    match stmt:
        case If():
            return always_leaves(stmt.then.statements) and always_leaves(stmt.otherwise.statements)
        case While(condition=Literal(value=True)):
            return Exit.BREAK not in exits_of(stmt.body.statements)
        case Break() | Continue() | Return():
            return True
        case _:
            return False


def structure(body: Block, result: Variable | None = None) -> Block:
    """The same block without ways out; a `return` in it gives `result` its value.

    Raises PhobosError if more than `MAX_NESTING` ways out follow each other.
    """
    scope = _Function(result)
    stmts = scope.sequence(body.statements, None, 0)
    declared = scope.flags.declare()
    return Block((*declared, *stmts))


class _Flags:
    """The flags of one loop or function, made when first needed."""

    def __init__(self, exits: Iterable[Exit]) -> None:
        self._exits = frozenset(exits)
        self._made: dict[Exit, Variable] = {}

    def owns(self, exit: Exit) -> bool:
        return exit in self._exits

    def flag(self, exit: Exit, place: Location) -> Variable:
        """The flag of a way out; nothing tests it until `tested` says so."""
        made = self._made.get(exit)
        if made is None:
            made = Variable(_FLAG_NAMES[exit], BOOL, Role.TEMPORARY, place, unused=True)
            self._made[exit] = made
        return made

    def declare(self, only: Exit | None = None) -> list[Stmt]:
        """The declarations of the flags that something tests, all false."""
        return [
            Declare(variable.declared, variable, Literal(BOOL, variable.declared, False))
            for exit, variable in self._made.items()
            if not variable.unused and (only is None or exit is only)
        ]


class _Function:
    """Structures one kernel or one expanded function."""

    def __init__(self, result: Variable | None) -> None:
        self.result = result
        self.flags = _Flags((Exit.RETURN,))

    def sequence(self, stmts: Sequence[Stmt], loop: _Flags | None, depth: int) -> list[Stmt]:
        """Statements of a block, structured; `loop` has the flags of the loop around them."""
        out: list[Stmt] = []
        for position, stmt in enumerate(stmts):
            match stmt:
                case Break() | Continue() | Return():
                    out += self._leave(stmt, loop)
                    return out  # what follows cannot be reached
                case If():
                    rest = stmts[position + 1 :]
                    if not _exits_of_one(stmt):
                        out.append(self._plain_if(stmt, loop, depth))
                        continue
                    return out + self._leaving_if(stmt, rest, loop, depth)
                case For() | While():
                    out += self._loop(stmt, depth)
                    if Exit.RETURN in _exits_of_one(stmt):
                        rest = stmts[position + 1 :]
                        return out + self._guarded(stmt, {Exit.RETURN}, rest, loop, depth)
                case _:
                    out.append(stmt)
        return out

    def _flag(self, exit: Exit, loop: _Flags | None, place: Location) -> Variable:
        owner = loop if loop is not None and loop.owns(exit) else self.flags
        return owner.flag(exit, place)

    def _leave(self, stmt: Break | Continue | Return, loop: _Flags | None) -> list[Stmt]:
        place = stmt.place
        flag = self._flag(_EXIT_OF[type(stmt)], loop, place)
        out: list[Stmt] = []
        if isinstance(stmt, Return) and stmt.value is not None and self.result is not None:
            out.append(Assign(place, self.result, stmt.value))
        out.append(Assign(place, flag, Literal(BOOL, place, True)))
        return out

    def _plain_if(self, stmt: If, loop: _Flags | None, depth: int) -> If:
        then = self.sequence(stmt.then.statements, loop, depth)
        otherwise = self.sequence(stmt.otherwise.statements, loop, depth)
        return If(stmt.place, stmt.condition, Block(tuple(then)), Block(tuple(otherwise)))

    def _leaving_if(
        self, stmt: If, rest: Sequence[Stmt], loop: _Flags | None, depth: int
    ) -> list[Stmt]:
        then, otherwise = stmt.then.statements, stmt.otherwise.statements
        if always_leaves(then):
            otherwise, rest = (*otherwise, *rest), ()
        elif always_leaves(otherwise):
            then, rest = (*then, *rest), ()
        _check_nesting(stmt.place, depth)
        joined = If(stmt.place, stmt.condition, Block(tuple(then)), Block(tuple(otherwise)))
        structured = self._plain_if(joined, loop, depth + 1)
        if not rest:
            return [structured]
        return [structured, *self._guarded(stmt, _exits_of_one(stmt), rest, loop, depth)]

    def _guarded(
        self,
        stmt: Stmt,
        exits: Iterable[Exit],
        rest: Sequence[Stmt],
        loop: _Flags | None,
        depth: int,
    ) -> list[Stmt]:
        """What follows a statement that may have left, under a test of its flags."""
        if not rest:
            return []
        _check_nesting(stmt.place, depth)
        left = self._any_set(exits, loop, stmt.place)
        inner = self.sequence(rest, loop, depth + 1)
        return [If(stmt.place, negate(left), Block(tuple(inner)), Block(()))]

    def _any_set(self, exits: Iterable[Exit], loop: _Flags | None, place: Location) -> Expr:
        flags = [self._flag(exit, loop, place) for exit in Exit if exit in set(exits)]
        test: Expr | None = None
        for flag in flags:
            flag.unused = False
            read = Read(BOOL, place, flag)
            test = read if test is None else Logic(BOOL, place, BinaryOp.OR, test, read, False)
        assert test is not None, "a guard needs a way out"
        return test

    # Loops ---------------------------------------------------------------------------------------

    def _loop(self, stmt: For | While, depth: int) -> list[Stmt]:
        exits = exits_of(stmt.body.statements)
        flags = _Flags((Exit.BREAK, Exit.CONTINUE))
        leaving = exits & {Exit.BREAK, Exit.RETURN}
        test = negate(self._any_set(leaving, flags, stmt.place)) if leaving else None
        inner = self.sequence(stmt.body.statements, flags, depth)
        body = Block((*flags.declare(Exit.CONTINUE), *inner))
        outside = flags.declare(Exit.BREAK)
        if isinstance(stmt, While):
            condition = stmt.condition if test is None else _both(test, stmt.condition)
            return [*outside, While(stmt.place, condition, body)]
        if test is None and stmt.direction != 0:
            return [For(*_for_parts(stmt), body=body, unroll=stmt.unroll)]
        return [*outside, *_counting_while(stmt, test, body)]


def _for_parts(stmt: For) -> tuple:
    return (
        stmt.place,
        stmt.variable,
        stmt.start,
        stmt.stop,
        stmt.step,
        stmt.direction,
        stmt.counter,
    )


def _check_nesting(place: Location, depth: int) -> None:
    if depth >= MAX_NESTING:
        raise PhobosError.at(
            place,
            f"more than {MAX_NESTING} ways out of one block follow each other",
            help="join conditions with `||`, or move a part of the block into an `fn`",
        )


def negate(condition: Expr) -> Expr:
    """The opposite of a bool."""
    return Prefix(BOOL, condition.place, UnaryOp.NOT, condition)


def _both(first: Expr, second: Expr) -> Expr:
    """`first && second`; `second` is not evaluated if it may not be."""
    if isinstance(second, Literal) and second.value is True:
        return first
    return Logic(BOOL, second.place, BinaryOp.AND, first, second, lazy=has_effects(second))


def _counting_while(stmt: For, test: Expr | None, body: Block) -> list[Stmt]:
    """A `for` that something leaves, or whose direction is known at run time only, as a `while`."""
    place, counter = stmt.place, stmt.counter
    position = Variable(stmt.variable.name, counter, Role.TEMPORARY, place)
    stop, step = (
        Variable(f"{stmt.variable.name}_{what}", counter, Role.TEMPORARY, place)
        for what in ("stop", "step")
    )
    here, end, by = (Read(counter, place, v) for v in (position, stop, step))
    inside = _inside(stmt, here, end, by)
    condition = inside if test is None else _both(test, inside)
    moved = Arithmetic(counter, place, BinaryOp.ADD, here, by)
    return [
        Declare(place, position, stmt.start),
        Declare(place, stop, stmt.stop),
        Declare(place, step, stmt.step),
        While(
            place,
            condition,
            Block(
                (
                    Declare(place, stmt.variable, _narrowed(here, stmt.variable)),
                    *body.statements,
                    Assign(place, position, moved),
                )
            ),
        ),
    ]


def _inside(stmt: For, here: Expr, end: Expr, by: Expr) -> Expr:
    """Whether the position has not reached the end; a step of 0 goes nowhere, so not at all."""
    place = stmt.place
    below = Compare(BOOL, place, BinaryOp.LESS, here, end)
    above = Compare(BOOL, place, BinaryOp.GREATER, here, end)
    if stmt.direction:
        return below if stmt.direction > 0 else above
    zero = Literal(stmt.counter, place, 0)
    forward = Compare(BOOL, place, BinaryOp.GREATER, by, zero)
    backward = Compare(BOOL, place, BinaryOp.LESS, by, zero)
    downward = Logic(BOOL, place, BinaryOp.AND, backward, above, lazy=False)
    return Select(BOOL, place, forward, below, downward)


def _narrowed(here: Expr, variable: Variable) -> Expr:
    if here.type is variable.type:
        return here
    assert isinstance(variable.type, ScalarType)
    return Convert(variable.type, here.place, here)
