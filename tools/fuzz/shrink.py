"""Makes a program that fails smaller while it still fails in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from phobos.frontend import ast, parse
from phobos.frontend.printer import print_program
from tools.fuzz.generator import Case
from tools.fuzz.runner import Outcome, judge

MOST_TRIES = 400


def shrink(case: Case, outcome: Outcome, device: str = "emulator") -> Case:
    """The smallest program found that has the same verdict.

    Statements go, blocks take the place of what is around them, and expressions become one of
    their operands; parameters that nothing names go in the end.
    """
    tries = 0

    def fails(source: str) -> bool:
        nonlocal tries
        tries += 1
        found = judge(replace(case, source=source), device)
        return found.verdict is outcome.verdict and _about(found) == _about(outcome)

    program = parse(case.source, "fuzz.ph")
    is_smaller = True
    while is_smaller and tries < MOST_TRIES:
        is_smaller = False
        for candidate in candidates(program):
            if tries >= MOST_TRIES:
                break
            source = print_program(candidate)
            if fails(source):
                program, is_smaller = candidate, True
                break
    return replace(case, source=print_program(program))


def _about(outcome: Outcome) -> str:
    """What a failure is about: the message without its place."""
    first = outcome.detail.strip().splitlines()[0] if outcome.detail.strip() else ""
    if outcome.verdict == "different":
        return ""
    return "".join(c for c in first.rpartition("error:")[2] if not c.isdigit())[:40]


def candidates(program: ast.Program) -> Iterator[ast.Program]:
    """Programs that are a little smaller, those that lose most first."""
    for number, declaration in enumerate(program.declarations):
        if isinstance(declaration, ast.Function):
            rest = program.declarations[:number] + program.declarations[number + 1 :]
            yield ast.Program(rest)
        for smaller in _declaration(declaration):
            parts = list(program.declarations)
            parts[number] = smaller
            yield ast.Program(tuple(parts))


def _declaration(
    node: ast.Kernel | ast.Function,
) -> Iterator[ast.Kernel | ast.Function]:
    for body in _blocks(node.body):
        yield replace(node, body=body)
    if isinstance(node, ast.Kernel):
        for number, param in enumerate(node.params):
            if not _names(node.body, param.name):
                yield replace(node, params=node.params[:number] + node.params[number + 1 :])
        for number, attribute in enumerate(node.attributes):
            if attribute.name != "launch":
                rest = node.attributes[:number] + node.attributes[number + 1 :]
                yield replace(node, attributes=rest)


def _names(node: ast.Node, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.name == name for part in ast.walk(node))


def _blocks(block: ast.Block) -> Iterator[ast.Block]:
    statements = block.statements
    for number in reversed(range(len(statements))):
        before, behind = statements[:number], statements[number + 1 :]
        yield ast.Block(before + behind)
    for number in reversed(range(len(statements))):
        before, behind = statements[:number], statements[number + 1 :]
        for inner in _inner(statements[number]):
            yield ast.Block(before + inner + behind)
        for smaller in _node(statements[number]):
            assert isinstance(smaller, ast.Statement)
            yield ast.Block((*before, smaller, *behind))


def _inner(node: ast.Statement) -> Iterator[tuple[ast.Statement, ...]]:
    """The blocks of a statement, to take its place."""
    match node:
        case ast.If():
            yield node.then.statements
            if isinstance(node.otherwise, ast.Block):
                yield node.otherwise.statements
                yield (replace(node, otherwise=None),)
        case ast.For() | ast.While():
            yield node.body.statements
        case _:
            pass


def _node(node: ast.Node) -> Iterator[ast.Node]:
    """A node with one smaller part."""
    for entry in fields(node):
        value = getattr(node, entry.name)
        if isinstance(value, ast.Block):
            yield from (replace(node, **{entry.name: block}) for block in _blocks(value))
        elif isinstance(value, ast.Node):
            yield from (replace(node, **{entry.name: part}) for part in _part(value))
        elif isinstance(value, tuple) and value and isinstance(value[0], ast.Node):
            for number, item in enumerate(value):
                for part in _part(item):
                    changed = (*value[:number], part, *value[number + 1 :])
                    yield replace(node, **{entry.name: changed})


def _part(node: ast.Node) -> Iterator[ast.Node]:
    """What may stand in place of an expression: its operands, or it with smaller ones."""
    match node:
        case ast.Binary():
            yield from (node.left, node.right)
        case ast.Unary():
            yield node.operand
        case ast.Call(args=args):
            yield from args
        case _:
            pass
    if not isinstance(node, ast.Type):
        yield from _node(node)
