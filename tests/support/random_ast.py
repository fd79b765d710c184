"""Random syntax trees: any tree that the grammar allows, whether or not it means something."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from phobos.frontend import ast

Drawn = TypeVar("Drawn")

_NAMES = ("x", "acc", "BLOCK", "over", "unroll", "range", "tile", "tensor", "ctx", "f32", "e5", "_")
_TYPES = ("f32", "i8", "f8e4m3", "BLOCK")
_INTS = (0, 1, 7, 255, 2**31, 2**64 - 1)
_FLOATS = (0.0, 1.0, 0.5, 1e-5, 1e22, 1.7976931348623157e308, 5e-324, 3.141592653589793)
_STRINGS = ("", "x = %d\n", 'a "quoted" \\ word', "tab\tcr\r", "// no comment", "Größe 日本")


class RandomAst:
    """Draws trees from a seeded generator; `depth` bounds how far they nest."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def program(self) -> ast.Program:
        """A program of one to three declarations."""
        return ast.Program(self._some(lambda: self.declaration(4), 1, 3))

    def declaration(self, depth: int) -> ast.Kernel | ast.Function:
        """A kernel or function."""
        name, params = self._name(), self._some(self._param, 0, 6)
        body = self.block(depth)
        if self._random.random() < 0.3:
            return ast.Function(name, params, self._maybe(self.type), body)
        return ast.Kernel(name, params, body, self._some(self._attribute, 0, 3))

    def block(self, depth: int) -> ast.Block:
        """A block of up to four statements."""
        return ast.Block(self._some(lambda: self.statement(depth - 1), 0, 4))

    def statement(self, depth: int) -> ast.Statement:
        """A statement of any kind; a simple one at depth 0."""
        simple = (self._declaration, self._assign, self._return, self._evaluate, self._jump)
        nested = (self._for, self._while, self._if)
        make = self._random.choice(simple if depth <= 0 else simple + nested)
        return make(depth)

    def expression(self, depth: int = 4) -> ast.Expression:
        """An expression of any kind; a name or literal at depth 0."""
        if depth <= 0 or self._random.random() < 0.2:
            return self._leaf()
        make = self._random.choice(
            (self._binary, self._binary, self._unary, self._member, self._subscript, self._call)
        )
        return make(depth - 1)

    def type(self) -> ast.Type:
        """A scalar, tensor or tile type."""
        element = ast.ScalarType(self._random.choice(_TYPES))
        if self._random.random() < 0.5:
            return element
        kind = self._random.choice(tuple(ast.ShapedKind))
        return ast.ShapedType(kind, element, self._some(self._dim, 1, 5))

    # Parts ---------------------------------------------------------------------------------------

    def _some(self, make: Callable[[], Drawn], least: int, most: int) -> tuple[Drawn, ...]:
        return tuple(make() for _ in range(self._random.randint(least, most)))

    def _maybe(self, make: Callable[[], Drawn]) -> Drawn | None:
        return make() if self._random.random() < 0.5 else None

    def _name(self) -> str:
        return self._random.choice(_NAMES)

    def _int(self) -> int:
        return self._random.choice(_INTS)

    def _dim(self) -> ast.Dim:
        if self._random.random() < 0.5:
            return ast.DimName(self._name())
        return ast.DimSize(self._int())

    def _param(self) -> ast.Param:
        return ast.Param(self._name(), self.type())

    def _attribute(self) -> ast.Attribute:
        return ast.Attribute(self._name(), self._some(self._attribute_argument, 0, 3))

    def _attribute_argument(self) -> ast.AttributeArgument:
        match self._random.randrange(3):
            case 0:
                values = self._some(lambda: ast.IntLiteral(self._int()), 1, 3)
                return ast.ChoiceArgument(self._name(), values)
            case 1:
                return ast.NamedArgument(self._name(), self.expression(2))
            case _:
                return ast.PositionalArgument(self.expression(2))

    # Statements ----------------------------------------------------------------------------------

    def _declaration(self, depth: int) -> ast.Declaration:
        mutable = self._random.random() < 0.5
        value = self._maybe(self.expression)
        return ast.Declaration(mutable, self._name(), self._maybe(self.type), value)

    def _assign(self, depth: int) -> ast.Assign:
        target = self._subscript(2) if self._random.random() < 0.5 else ast.Name(self._name())
        return ast.Assign(target, self._random.choice(tuple(ast.AssignOp)), self.expression())

    def _return(self, depth: int) -> ast.Return:
        return ast.Return(self._maybe(self.expression))

    def _evaluate(self, depth: int) -> ast.Evaluate:
        return ast.Evaluate(self.expression())

    def _jump(self, depth: int) -> ast.Break | ast.Continue:
        return self._random.choice((ast.Break(), ast.Continue()))

    def _for(self, depth: int) -> ast.For:
        start = self._maybe(self.expression)
        step = None if start is None else self._maybe(self.expression)
        unroll = self._maybe(lambda: ast.Unroll(self._maybe(self._int)))
        stop = self.expression()
        return ast.For(self._name(), start, stop, step, self.block(depth), unroll)

    def _while(self, depth: int) -> ast.While:
        return ast.While(self.expression(), self.block(depth))

    def _if(self, depth: int) -> ast.If:
        otherwise: ast.Block | ast.If | None = None
        if depth > 0:
            otherwise = self._random.choice((self.block, self._if))(depth - 1)
        return ast.If(self.expression(), self.block(depth), self._maybe(lambda: otherwise))

    # Expressions ---------------------------------------------------------------------------------

    def _leaf(self) -> ast.Expression:
        match self._random.randrange(8):
            case 0:
                return ast.IntLiteral(self._int())
            case 1:
                return ast.FloatLiteral(self._random.choice(_FLOATS))
            case 2:
                return ast.BoolLiteral(self._random.random() < 0.5)
            case 3:
                return ast.StringLiteral(self._random.choice(_STRINGS))
            case _:
                return ast.Name(self._name())

    def _binary(self, depth: int) -> ast.Binary:
        op = self._random.choice(tuple(ast.BinaryOp))
        return ast.Binary(op, self.expression(depth), self.expression(depth))

    def _unary(self, depth: int) -> ast.Unary:
        return ast.Unary(self._random.choice(tuple(ast.UnaryOp)), self.expression(depth))

    def _member(self, depth: int) -> ast.Member:
        return ast.Member(self.expression(depth), self._name())

    def _subscript(self, depth: int) -> ast.Subscript:
        return ast.Subscript(self.expression(depth), self._some(lambda: self._index(depth), 1, 3))

    def _index(self, depth: int) -> ast.Index:
        match self._random.randrange(4):
            case 0:
                return ast.Point(self.expression(depth))
            case 1:
                return ast.FullAxis()
            case 2:
                start = self._maybe(lambda: self.expression(depth))
                return ast.Range(start, self.expression(depth))
            case _:
                return ast.Span(self.expression(depth), self.expression(depth))

    def _call(self, depth: int) -> ast.Call:
        args = self._some(lambda: self.expression(depth), 0, 3)
        if self._random.random() < 0.5:
            return ast.Call(ast.Name(self._name()), args, self._generic())
        return ast.Call(self.expression(depth), args)

    def _generic(self) -> ast.Generic:
        match self._random.randrange(4):
            case 0:
                return ast.OverScope(self._random.choice(tuple(ast.Scope)))
            case 1:
                return ast.OverAxes(self._some(self._int, 1, 3))
            case 2:
                return ast.TypeArgument(self.type())
            case _:
                return ast.IntArgument(self._int())
