"""Calls: of functions, conversions and built-ins, and which rule checks each."""

from __future__ import annotations

from phobos.frontend import ast
from phobos.frontend.builtins import (
    DEBUGGING,
    ELEMENTWISE,
    FOLDS,
    PLANNED,
    POSITIONS,
    RUN_FORMS,
    SCANS,
    SHARED_MEMORY,
    SPECIAL,
    TILE_BUILTINS,
    Special,
)
from phobos.frontend.check_atomics import (
    STATEMENTS,
    check_shared_memory,
    check_shared_memory_statement,
)
from phobos.frontend.check_builtins import (
    STATEMENT_RULES,
    VALUE_RULES,
    apply_elementwise,
    check_conversion,
)
from phobos.frontend.check_debugging import check_debugging
from phobos.frontend.check_folds import check_over_axes, check_over_threads
from phobos.frontend.check_functions import expand_call
from phobos.frontend.check_tiles import check_tile_builtin
from phobos.frontend.checker import Checker, any_poison, declared_here
from phobos.frontend.foreign import METHODS, spelling
from phobos.frontend.scopes import BUILTINS, Builtin, Poisoned, TensorParameter
from phobos.frontend.typed import Evaluate, Expr, Poison, Stmt
from phobos.frontend.types import NAMED, POISON, VOID


def check_call(checker: Checker, node: ast.Call) -> Expr:
    """A call whose value is used."""
    value = _call(checker, node)
    if value.type is VOID:
        return checker.fail(node.span, f"`{_callee(node)}` returns nothing that could be used here")
    return value


def check_call_statement(checker: Checker, node: ast.Call) -> list[Stmt]:
    """A call that stands alone as a statement."""
    name = _builtin_name(checker, node)
    if name in STATEMENTS:
        return check_shared_memory_statement(checker, node, name)
    if name in DEBUGGING:
        return check_debugging(checker, node, name)
    special = SPECIAL.get(name)
    if special is None or not special.is_statement:
        return [Evaluate(ast.anchor(node), _call(checker, node))]
    if not _has_arity(checker, node, special.usage, special.arity):
        return []
    return STATEMENT_RULES[special.name](checker, node)


def _builtin_name(checker: Checker, node: ast.Call) -> str:
    """The name of the built-in that is called, or nothing if it is another function."""
    if not isinstance(node.callee, ast.Name):
        return ""
    symbol = checker.scope.lookup(node.callee.name)
    return node.callee.name if isinstance(symbol, Builtin) and node.generic is None else ""


def _callee(node: ast.Call) -> str:
    return node.callee.name if isinstance(node.callee, ast.Name) else "this"


def _call(checker: Checker, node: ast.Call) -> Expr:
    callee = node.callee
    if not isinstance(callee, ast.Name):
        return _no_function(checker, callee)
    symbol = checker.scope.lookup(callee.name)
    match symbol:
        case Builtin():
            return _builtin(checker, node, callee.name)
        case ast.Function():
            if node.generic is not None:
                return checker.fail(node.span, f"`{callee.name}` takes nothing in `< >`")
            return expand_call(checker, node, symbol)
        case None:
            _check_anyway(checker, node)
            return checker.unknown_name(callee.name, callee.span)
        case Poisoned():
            return Poison(POISON, ast.anchor(node))
        case ast.Kernel():
            return checker.fail(
                node.span,
                f"`{callee.name}` is a kernel, which only a launch can start",
                notes=declared_here(callee.name, symbol),
                help="make what both need a function: `fn name(...) -> type { ... }`",
            )
        case _:
            help = None
            if callee.name in BUILTINS:
                help = f"it hides the built-in `{callee.name}`; give it another name"
            elif isinstance(symbol, TensorParameter):
                help = f"elements are written `{callee.name}[...]`"
            return checker.fail(
                callee.span,
                f"`{callee.name}` is not a function",
                notes=declared_here(callee.name, symbol),
                help=help,
            )


def _builtin(checker: Checker, node: ast.Call, name: str) -> Expr:
    if name in NAMED:
        return check_conversion(checker, node, NAMED[name])
    match node.generic:
        case ast.OverScope():
            return check_over_threads(checker, node, node.generic)
        case ast.OverAxes():
            return check_over_axes(checker, node, node.generic)
        case None:
            pass
        case _ if name == "bitcast" or name in PLANNED or _takes(name, node.generic):
            pass
        case _:
            return checker.fail(node.generic.span, f"`{name}` takes nothing of this kind in `< >`")
    if name in PLANNED:
        return _planned(checker, node, f"`{name}` is")
    if name in TILE_BUILTINS:
        return check_tile_builtin(checker, node, TILE_BUILTINS[name])
    if name in STATEMENTS:
        return _no_value(checker, node, SHARED_MEMORY[name])
    if name in DEBUGGING:
        return _no_value(checker, node, DEBUGGING[name])
    if name in SHARED_MEMORY:
        return check_shared_memory(checker, node, name)
    if name in ELEMENTWISE:
        row = ELEMENTWISE[name]
        if not _has_arity(checker, node, row.usage, row.arity):
            return Poison(POISON, ast.anchor(node))
        return apply_elementwise(checker, node, row, _arguments(checker, node))
    if name in SPECIAL:
        return _special(checker, node, SPECIAL[name])
    if name in FOLDS or name in POSITIONS or name in SCANS:
        return checker.fail(
            node.span,
            f"`{name}` does not say what it folds over",
            help=f"along an axis of a tile it is `{name}<over 0>(t)`, over the threads of the CTA"
            f" `{name}<over ctx.thread>(x)`",
        )
    return checker.fail(node.callee.span, f"`{name}` is not a function")


def _takes(name: str, generic: ast.Generic) -> bool:
    """Whether a built-in may have this in `< >`."""
    builtin = TILE_BUILTINS.get(name)
    return builtin is not None and builtin.generic is type(generic)


def _no_value(checker: Checker, node: ast.Call, usage: str) -> Expr:
    return checker.fail(
        node.span,
        f"`{_callee(node)}` gives no value",
        help=f"write `{usage}` as a statement of its own",
    )


def _special(checker: Checker, node: ast.Call, special: Special) -> Expr:
    place = ast.anchor(node)
    if special.is_statement:
        return _no_value(checker, node, special.usage)
    if not _has_arity(checker, node, special.usage, special.arity):
        return Poison(POISON, place)
    if special.name == "extent":
        return VALUE_RULES["extent"](checker, node, [])
    with checker.run_form(checker.in_run_form or special.name in RUN_FORMS):
        arguments = _arguments(checker, node)
    if any_poison(arguments):
        return Poison(POISON, place)
    return VALUE_RULES[special.name](checker, node, arguments)


def _arguments(checker: Checker, node: ast.Call) -> list[Expr]:
    return [checker.expression(argument) for argument in node.args]


def _has_arity(checker: Checker, node: ast.Call, usage: str, wanted: int) -> bool:
    got = len(node.args)
    if got == wanted:
        return True
    counted = "no argument" if wanted == 0 else f"{wanted} argument{'' if wanted == 1 else 's'}"
    name = _callee(node)
    help = f"write `{usage}`"
    if name in FOLDS:
        help += f"; along an axis of a tile it is `{name}<over 0>(t)`"
    checker.error(node.span, f"`{name}` takes {counted}, not {got}", help=help)
    return False


def _planned(checker: Checker, node: ast.Call, what: str) -> Expr:
    """A built-in that is not translated yet."""
    _check_anyway(checker, node)
    return checker.unsupported(node.span, what)


def _check_anyway(checker: Checker, node: ast.Call) -> None:
    """Reports what is wrong with arguments although they have no call to go to.

    Tensors and texts may be what the call wants.
    """
    for argument in node.args:
        is_tensor = isinstance(argument, ast.Name) and isinstance(
            checker.scope.lookup(argument.name), TensorParameter
        )
        if not is_tensor and not isinstance(argument, ast.StringLiteral):
            checker.expression(argument)


def _no_function(checker: Checker, callee: ast.Expression) -> Expr:
    help = None
    if isinstance(callee, ast.Member):
        help = spelling(callee.name, METHODS)
        help = (
            help or f"there are no methods: write `{callee.name}(...)` if there is such a function"
        )
    return checker.fail(callee.span, "only functions, built-ins and types can be called", help=help)
