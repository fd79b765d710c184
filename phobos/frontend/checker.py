"""What the checking rules share: the names in scope, the kernel at hand and where errors go.

The rules are functions of a `Checker` and a piece of the syntax tree, one module for each kind
of piece. A rule that finds something wrong reports it and gives a `Poison`, on which every
other rule stays silent, so that one mistake is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from phobos.diagnostics import (
    DiagnosticCollector,
    Location,
    Note,
    SourceMap,
    did_you_mean,
)
from phobos.frontend import ast
from phobos.frontend.foreign import FUNCTIONS, spelling
from phobos.frontend.scopes import Scope, Symbol, place_of
from phobos.frontend.typed import Block, Expr, KernelSettings, Literal, Poison, Role, Variable
from phobos.frontend.types import POISON, element_of
from phobos.record import Record, record


@record
class Frame(Record):
    """A call of a function that is being expanded."""

    function: ast.Function
    call: Location
    is_call: bool = True
    """Whether there is a call; False where an uncalled function is checked on its own."""


@record
class Rules(Record):
    """How expressions and blocks are checked; handed in, since the rules need the checker."""

    expression: Callable[[Checker, ast.Expression], Expr]
    block: Callable[[Checker, ast.Block], Block]


class Checker:
    """The state of checking one kernel."""

    def __init__(self, sources: SourceMap, index_bits: int | None, rules: Rules) -> None:
        self.report = DiagnosticCollector(sources)
        self.index_bits = index_bits or 32
        self.settings = KernelSettings()
        self.program_scope = Scope()
        self.scope = self.program_scope
        self.frames: tuple[Frame, ...] = ()
        self.result: Variable | None = None
        """Where a `return` leaves its value, in a function that returns one."""
        self.called: set[int] = set()
        """The functions that were called, by the id of their declaration."""
        self.loop_depth = 0
        self.in_run_form = False
        self._rules = rules
        self._left_scopes: dict[str, Location] = {}
        """Variables of blocks that ended, for messages about their use outside."""

    def expression(self, node: ast.Expression) -> Expr:
        """Checks an expression; a literal keeps its weak type."""
        return self._rules.expression(self, node)

    def block(self, node: ast.Block) -> Block:
        """Checks the statements of a block, in a scope of their own."""
        return self._rules.block(self, node)

    def error(
        self,
        place: Location,
        message: str,
        *,
        notes: Iterable[Note] = (),
        help: str | None = None,
    ) -> None:
        """Reports an error; in an expanded function, with a note at each call on the way."""
        calls = [
            Note(f"in this call of `{frame.function.name}`", frame.call)
            for frame in reversed(self.frames)
            if frame.is_call
        ]
        self.report.error(place, message, notes=(*notes, *calls), help=help)

    def fail(
        self,
        place: Location,
        message: str,
        *,
        notes: Iterable[Note] = (),
        help: str | None = None,
    ) -> Poison:
        """Reports an error and gives the value that silences what depends on it."""
        self.error(place, message, notes=notes, help=help)
        return Poison(POISON, place)

    def unsupported(self, place: Location, what: str, *, help: str | None = None) -> Poison:
        """Reports a construct that is part of the language and not translated yet."""
        return self.fail(place, f"{what} not supported yet", help=help)

    def unknown_name(self, name: str, place: Location) -> Poison:
        """Reports a name that nothing declares."""
        left = self._left_scopes.get(name)
        if left is not None:
            return self.fail(
                place,
                f"`{name}` is not defined here",
                notes=(Note(f"`{name}` is known only in the block that declares it", left),),
                help=f"declare it before that block: `var {name} = ...`",
            )
        help = spelling(name, FUNCTIONS) or self.near(name)
        if help is None and len(name) > 1 and name.isupper():
            help = f"a constant is declared before the kernel: `@autotune({name} in [64, 256])`"
        return self.fail(place, f"`{name}` is not defined", help=help)

    def near(self, name: str) -> str | None:
        """A line of help that offers the name in scope that a misspelt one is closest to."""
        if len(name) == 1:  # which is close to every short one
            return None
        slack = max(2, len(name) // 3)
        return did_you_mean(
            name, (known for known in self.scope.names() if abs(len(known) - len(name)) <= slack)
        )

    def declare(self, name: str, symbol: Symbol, place: Location) -> None:
        """Declares a name in the innermost block, once."""
        earlier = self.scope.local(name)
        if earlier is None:
            self.scope.declare(name, symbol)
            return
        self.error(
            place,
            f"`{name}` is already declared in this block",
            notes=declared_here(name, earlier),
            help="choose another name, or assign to it with `=` if it is a `var`",
        )

    def declare_global(self, declaration: ast.Kernel | ast.Function) -> None:
        """Declares a kernel or function, once."""
        earlier = self.program_scope.local(declaration.name)
        if earlier is None:
            self.program_scope.declare(declaration.name, declaration)
            return
        self.error(
            declaration.name_span,
            f"`{declaration.name}` is declared twice",
            notes=declared_here(declaration.name, earlier),
        )

    @contextmanager
    def nested_scope(self, parent: Scope | None = None) -> Iterator[Scope]:
        """A block inside the current one, or inside `parent`."""
        outer = self.scope
        self.scope = Scope(outer if parent is None else parent)
        try:
            yield self.scope
        finally:
            for name, symbol in self.scope.declared():
                if isinstance(symbol, Variable):
                    self._left_scopes[name] = symbol.declared
            self.scope = outer
            if parent is not None:
                self._left_scopes.clear()

    @contextmanager
    def inside(self, frame: Frame) -> Iterator[None]:
        """The body of a function that is expanded."""
        outer = self.frames, self.result, self.loop_depth, self.in_run_form
        self.frames, self.result = (*self.frames, frame), None
        self.loop_depth, self.in_run_form = 0, False
        try:
            yield
        finally:
            self.frames, self.result, self.loop_depth, self.in_run_form = outer

    @contextmanager
    def run_form(self, active: bool) -> Iterator[None]:
        """Whether a slice is one thread's run (inside `sum(...)` and its like) or a tile."""
        outer, self.in_run_form = self.in_run_form, active
        try:
            yield
        finally:
            self.in_run_form = outer


def declared_here(name: str, symbol: Symbol) -> tuple[Note, ...]:
    """A note at the declaration of a name, unless nothing in the program declares it."""
    if isinstance(symbol, Variable) and symbol.role is Role.TEMPORARY:
        return ()
    place = place_of(symbol)
    return () if place is None else (Note(f"`{name}` is declared here", place),)


def is_poison(expr: Expr) -> bool:
    """Whether an error was already reported for an expression."""
    return expr.type is POISON


def any_poison(exprs: Iterable[Expr]) -> bool:
    """Whether an error was already reported for one of several expressions."""
    return any(expr.type is POISON for expr in exprs)


def constant_int(expr: Expr) -> int | None:
    """The value of a compile-time integer, or None if it is anything else."""
    if isinstance(expr, Literal) and element_of(expr.type).is_integer:
        return int(expr.value)
    return None
