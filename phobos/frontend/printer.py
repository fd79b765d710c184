"""Prints a syntax tree as source text.

`print_program` gives the one canonical layout of a program: two spaces of indentation, spaces
around infix operators, as few parentheses as the precedences allow. Parsing the text gives an
equal tree, and printing that gives the same text. Comments are not part of the tree and are lost.
"""

from __future__ import annotations

from typing import assert_never

from phobos.frontend import ast
from phobos.frontend.operators import POSTFIX_PRECEDENCE, UNARY_PRECEDENCE

_INDENT = "  "
_WIDTH = 100
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})


def print_program(program: ast.Program) -> str:
    """The source text of a program, with a blank line between two declarations."""
    return "\n".join(print_declaration(entry) for entry in program.declarations)


def print_declaration(declaration: ast.Kernel | ast.Function) -> str:
    """The source text of a kernel or function, with a newline at its end."""
    lines: list[str] = []
    if isinstance(declaration, ast.Kernel):
        lines.extend(_attribute(attribute) for attribute in declaration.attributes)
    lines.extend(_header(declaration))
    return "\n".join(_with_block(lines, declaration.body, "")) + "\n"


def print_statement(statement: ast.Statement) -> str:
    """The source text of a statement, without a newline at its end."""
    return "\n".join(_statement(statement, ""))


def print_expression(expression: ast.Expression) -> str:
    """The source text of an expression, on one line."""
    return _expression(expression)


def print_type(written: ast.Type) -> str:
    """The source text of a type."""
    match written:
        case ast.ScalarType(name=name):
            return name
        case ast.ShapedType(kind=kind, element=element, dims=dims):
            return f"{kind}<{element.name}>[{', '.join(map(_dim, dims))}]"
        case _:
            assert_never(written)


# Declarations ------------------------------------------------------------------------------------


def _header(declaration: ast.Kernel | ast.Function) -> list[str]:
    """The lines from the keyword to the `)` or result type; parameters get lines if too many."""
    is_kernel = isinstance(declaration, ast.Kernel)
    result = None if is_kernel else declaration.result
    opening = f"{'kernel' if is_kernel else 'fn'} {declaration.name}("
    closing = ")" if result is None else f") -> {print_type(result)}"
    params = [f"{param.name}: {print_type(param.type)}" for param in declaration.params]
    line = f"{opening}{', '.join(params)}{closing}"
    if len(line) + len(" {") <= _WIDTH or not params:
        return [line]
    commas = [","] * (len(params) - 1) + [""]
    body = [f"{_INDENT * 2}{param}{comma}" for param, comma in zip(params, commas, strict=True)]
    return [opening, *body, closing]


def _attribute(attribute: ast.Attribute) -> str:
    if not attribute.args:
        return f"@{attribute.name}"
    return f"@{attribute.name}({', '.join(map(_attribute_argument, attribute.args))})"


def _attribute_argument(argument: ast.AttributeArgument) -> str:
    match argument:
        case ast.ChoiceArgument(name=name, values=values):
            return f"{name} in [{', '.join(str(literal.value) for literal in values)}]"
        case ast.NamedArgument(name=name, value=value):
            return f"{name} = {_expression(value)}"
        case ast.PositionalArgument(value=value):
            return _expression(value)
        case _:
            assert_never(argument)


def _dim(dim: ast.Dim) -> str:
    return dim.name if isinstance(dim, ast.DimName) else str(dim.value)


# Statements --------------------------------------------------------------------------------------


def _with_block(lines: list[str], block: ast.Block, indent: str) -> list[str]:
    """The lines of a header with a block behind the last of them."""
    if not block.statements:
        return [*lines[:-1], f"{lines[-1]} {{}}"]
    out = [*lines[:-1], f"{lines[-1]} {{"]
    for statement in block.statements:
        out.extend(_statement(statement, indent + _INDENT))
    out.append(f"{indent}}}")
    return out


def _statement(statement: ast.Statement, indent: str) -> list[str]:
    match statement:
        case ast.For(body=body):
            return _with_block([f"{indent}{_for_header(statement)}"], body, indent)
        case ast.While(condition=condition, body=body):
            return _with_block([f"{indent}while {_expression(condition)}"], body, indent)
        case ast.If():
            return _if(statement, indent)
        case _:
            return [indent + _simple_statement(statement)]


def _simple_statement(
    statement: ast.Declaration | ast.Assign | ast.Break | ast.Continue | ast.Return | ast.Evaluate,
) -> str:
    match statement:
        case ast.Declaration(mutable=mutable, name=name, type=written, value=value):
            colon = "" if written is None else f": {print_type(written)}"
            equals = "" if value is None else f" = {_expression(value)}"
            return f"{'var' if mutable else 'let'} {name}{colon}{equals}"
        case ast.Assign(target=target, op=op, value=value):
            return f"{_expression(target)} {op} {_expression(value)}"
        case ast.Break():
            return "break"
        case ast.Continue():
            return "continue"
        case ast.Return(value=value):
            return "return" if value is None else f"return {_expression(value)}"
        case ast.Evaluate(expression=expression):
            return _expression(expression)
        case _:
            assert_never(statement)


def _for_header(loop: ast.For) -> str:
    unroll = ""
    if loop.unroll is not None:
        factor = loop.unroll.factor
        unroll = "<unroll> " if factor is None else f"<unroll {factor}> "
    bounds = [bound for bound in (loop.start, loop.stop, loop.step) if bound is not None]
    return f"for {unroll}{loop.variable} in range({', '.join(map(_expression, bounds))})"


def _if(statement: ast.If, indent: str) -> list[str]:
    """An `if` with its chain of `else if`, in a loop since chains may be long."""
    header = f"{indent}if {_expression(statement.condition)}"
    lines = _with_block([header], statement.then, indent)
    otherwise = statement.otherwise
    while isinstance(otherwise, ast.If):
        header = f"{lines.pop()} else if {_expression(otherwise.condition)}"
        lines.extend(_with_block([header], otherwise.then, indent))
        otherwise = otherwise.otherwise
    if otherwise is not None:
        lines.extend(_with_block([f"{lines.pop()} else"], otherwise, indent))
    return lines


# Expressions -------------------------------------------------------------------------------------


def _expression(node: ast.Expression, minimum: int = 0) -> str:
    """An expression, in parentheses if it binds less tightly than `minimum`."""
    text, precedence = _bare_expression(node)
    return f"({text})" if precedence < minimum else text


def _bare_expression(node: ast.Expression) -> tuple[str, int]:
    """An expression's text and how tightly it binds."""
    match node:
        case ast.Name(name=name):
            return name, POSTFIX_PRECEDENCE
        case ast.Binary(op=op, left=left, right=right):
            level = op.precedence
            # Operators group to the left; comparisons do not group at all.
            left_text = _expression(left, level + 1 if op.is_comparison else level)
            return f"{left_text} {op} {_expression(right, level + 1)}", level
        case ast.Unary(op=op, operand=operand):
            return f"{op}{_expression(operand, UNARY_PRECEDENCE)}", UNARY_PRECEDENCE
        case ast.IntLiteral(value=value):
            return str(value), POSTFIX_PRECEDENCE
        case ast.FloatLiteral(value=value):
            return repr(value), POSTFIX_PRECEDENCE
        case ast.BoolLiteral(value=value):
            return "true" if value else "false", POSTFIX_PRECEDENCE
        case ast.StringLiteral(value=value):
            return f'"{value.translate(_ESCAPES)}"', POSTFIX_PRECEDENCE
        case ast.Member(base=base, name=name):
            return f"{_expression(base, POSTFIX_PRECEDENCE)}.{name}", POSTFIX_PRECEDENCE
        case ast.Subscript(base=base, indices=indices):
            inner = ", ".join(map(_index, indices))
            return f"{_expression(base, POSTFIX_PRECEDENCE)}[{inner}]", POSTFIX_PRECEDENCE
        case ast.Call(callee=callee, args=args, generic=generic):
            name = _expression(callee, POSTFIX_PRECEDENCE) + _generic(generic)
            return f"{name}({', '.join(map(_expression, args))})", POSTFIX_PRECEDENCE
        case _:
            assert_never(node)


def _index(index: ast.Index) -> str:
    match index:
        case ast.Point(index=value):
            return _expression(value)
        case ast.FullAxis():
            return ":"
        case ast.Range(start=start, stop=stop):
            before = "" if start is None else f"{_expression(start)} "
            return f"{before}: {_expression(stop)}"
        case ast.Span(start=start, length=length):
            return f"{_expression(start)} :+ {_expression(length)}"
        case _:
            assert_never(index)


def _generic(generic: ast.Generic | None) -> str:
    match generic:
        case None:
            return ""
        case ast.OverScope(scope=scope):
            return f"<over {scope}>"
        case ast.OverAxes(axes=axes):
            return f"<over {', '.join(map(str, axes))}>"
        case ast.TypeArgument(type=written):
            return f"<{print_type(written)}>"
        case ast.IntArgument(value=value):
            return f"<{value}>"
        case _:
            assert_never(generic)
