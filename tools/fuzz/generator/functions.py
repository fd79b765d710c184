"""Functions of a program: of scalars or tiles, with returns under conditions."""

from __future__ import annotations

from tools.fuzz.generator.scalars import Scalars
from tools.fuzz.generator.terms import (
    UNIFORM,
    VARYING,
    FunctionName,
    Shape,
    Term,
    Variable,
)
from tools.fuzz.generator.tiles import Tiles
from tools.fuzz.generator.writer import Writer
from tools.fuzz.scalars import BOOL


def write_function(writer: Writer, scalars: Scalars, tiles: Tiles, shape: Shape | None) -> None:
    """Adds a function to the program that gives a scalar, or a tile of a shape."""
    name = writer.fresh("f")
    type_ = writer.number()
    parameters: list[tuple[str, Shape | None]] = [(type_, shape)]
    for _ in range(writer.random.randint(0, 2)):
        wanted = writer.pick((type_, type_, writer.number(), BOOL))
        parameters.append((wanted, shape if shape is not None and writer.chance(0.3) else None))
    level = VARYING if shape is None else UNIFORM
    terms = [Term(writer.fresh("q"), wanted, extents, level) for wanted, extents in parameters]
    outer = writer.lines, writer.variables, writer.calls, writer.walks
    writer.lines, writer.calls, writer.walks = [], [], {}
    writer.variables = [Variable(term, False) for term in terms]
    writer.is_closed = True
    results = _body(writer, scalars, tiles, type_, shape, level)
    body = writer.lines
    writer.lines, writer.variables, writer.calls, writer.walks = outer
    writer.is_closed = False
    taken = ", ".join(f"{term.text}: {_spelled(term.type, term.shape)}" for term in terms)
    head = f"fn {name}({taken}) -> {_spelled(type_, shape)} {{"
    writer.functions.append("\n".join([head, *body, "}", ""]))
    is_exact = all(result.is_exact for result in results)
    writer.calls.append(FunctionName(name, type_, shape, tuple(parameters), is_exact))


def _body(
    writer: Writer, scalars: Scalars, tiles: Tiles, type_: str, shape: Shape | None, level: int
) -> list[Term]:
    """Writes the statements of a function; gives what it returns."""

    def value(depth: int) -> Term:
        if shape is None:
            return scalars.value(type_, depth, level)
        return tiles.value(type_, shape, depth)

    results = []
    if writer.chance(0.5):
        writer.declare(value(1), is_mutable=False)
    if writer.chance(0.4):
        condition = scalars.value(BOOL, 1, level)
        while not condition.is_exact:
            condition = scalars.value(BOOL, 1, level)
        with writer.block(f"if {condition.text}", condition.level):
            results.append(value(1))
            writer.line(f"return {results[0].text}")
    results.append(value(2))
    writer.line(f"return {results[-1].text}")
    return results


def _spelled(type_: str, shape: Shape | None) -> str:
    return type_ if shape is None else f"tile<{type_}>[{', '.join(map(str, shape))}]"
