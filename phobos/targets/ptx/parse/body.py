"""Function bodies: scopes, labels, declarations, `.loc` and instructions."""

from __future__ import annotations

from dataclasses import replace

from phobos.targets.ptx.parse.cursor import Cursor
from phobos.targets.ptx.parse.declarations import STATE_SPACES, parse_type, parse_variables
from phobos.targets.ptx.parse.lexer import Token
from phobos.targets.ptx.parse.operands import OperandParser
from phobos.targets.ptx.parse.records import (
    Guard,
    Instruction,
    Operand,
    Position,
    Register,
    SourcePoint,
    Symbol,
    Variable,
)
from phobos.targets.ptx.parse.scopes import Names, Scope

_BRANCHES = frozenset({"bra", "brx"})


class BodyParser:
    """Parses one function body; the results are its attributes after `parse`."""

    def __init__(self, cursor: Cursor) -> None:
        self.names = Names()
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.tables: dict[str, tuple[str, ...]] = {}
        self.pragmas: list[str] = []
        self._cursor = cursor
        self._operands = OperandParser(cursor, self.names)
        self._source: SourcePoint | None = None
        self._branches: list[tuple[int, Scope, Token]] = []
        self._pending_tables: list[tuple[str, list[Token], Scope]] = []

    def declare_parameter(self, variable: Variable) -> Variable:
        """Make a parameter known to the body; gives it its register if it is in one."""
        name = self.names.unique(variable.name)
        if variable.space == "reg":
            register = Register(name, variable.type, len(self.names.registers))
            self.names.registers.append(register)
            self.names.scope.resolved[variable.name] = register
            return replace(variable, register=register)
        self.names.scope.variables[variable.name] = variable
        return variable

    def parse(self) -> None:
        """Take the body from `{` to the matching `}`."""
        cursor = self._cursor
        cursor.expect("{", "before the body")
        while True:
            token = cursor.token
            if token.kind == "end":
                cursor.fail("expected `}` at the end of this function, got the end of the text")
            if token.text == "}":
                cursor.advance()
                if not self.names.leave():
                    break
                continue
            if token.text == "{":
                cursor.advance()
                self.names.enter()
                continue
            self._statement(token)
        self._resolve_labels()

    def _statement(self, token: Token) -> None:
        cursor = self._cursor
        if token.kind == "word" and cursor.ahead(1).text == ":":
            self._label(token)
        elif token.kind == "directive":
            self._directive(token)
        elif token.kind == "word" or token.text == "@":
            self._instruction()
        elif token.text == ";":
            cursor.advance()
        else:
            cursor.fail(f"expected an instruction or directive, got {cursor.describe()}")

    # Labels --------------------------------------------------------------------------------------

    def _label(self, token: Token) -> None:
        cursor = self._cursor
        cursor.advance()
        cursor.advance()
        if cursor.at(".branchtargets"):
            cursor.advance()
            targets = [cursor.expect_word("a label")]
            while cursor.accept(","):
                targets.append(cursor.expect_word("a label"))
            cursor.expect(";", "behind these labels")
            self._pending_tables.append((token.text, targets, self.names.scope))
            return
        if cursor.at(".callprototype") or cursor.at(".calltargets"):
            self._skip_statement()
            return
        scope = self.names.scope
        if token.text in scope.labels:
            cursor.source.fail(token, f"label `{token.text}` is defined twice")
        unique = self.names.unique(token.text)
        scope.labels[token.text] = unique
        self.labels[unique] = len(self.instructions)

    def _resolve_labels(self) -> None:
        """Turn the label names of branches into unique ones, now that all are known."""
        for name, targets, scope in self._pending_tables:
            self.tables[name] = tuple(self._label_name(t.text, scope, t) for t in targets)
        for index, scope, token in self._branches:
            instruction = self.instructions[index]
            operands: list[Operand] = [
                Symbol(self._label_name(operand.name, scope, token))
                if isinstance(operand, Symbol) and operand.name not in self.tables
                else operand
                for operand in instruction.operands
            ]
            self.instructions[index] = replace(instruction, operands=tuple(operands))

    def _label_name(self, name: str, scope: Scope | None, token: Token) -> str:
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        self._cursor.source.fail(token, f"label `{name}` is not defined in this function")

    # Directives ----------------------------------------------------------------------------------

    def _directive(self, token: Token) -> None:
        cursor = self._cursor
        if token.text == ".reg":
            self._registers()
        elif token.text == ".loc":
            self._loc()
        elif token.text == ".pragma":
            cursor.advance()
            self.pragmas.append(cursor.advance().text.strip('"'))
            cursor.expect(";", "behind this pragma")
        elif token.text.split("::")[0] in STATE_SPACES:
            self._variables(is_extern=False)
        elif token.text == ".extern" and cursor.ahead(1).text in STATE_SPACES:
            cursor.advance()
            self._variables(is_extern=True)
        else:
            cursor.fail(f"directive `{token.text}` cannot stand in a function")

    def _variables(self, *, is_extern: bool) -> None:
        scope = self.names.scope
        plain: list[str] = []

        def unique(name: str) -> str:
            plain.append(name)
            return self.names.unique(name)

        for variable in parse_variables(self._cursor, is_extern=is_extern, unique=unique):
            scope.variables[plain[len(plain) - 1]] = variable
            self.names.variables.append(variable)

    def _registers(self) -> None:
        cursor = self._cursor
        cursor.advance()
        if cursor.token.text in (".v2", ".v4"):
            cursor.fail("vector registers are not supported", "declare one register an element")
        kind = parse_type(cursor)
        scope = self.names.scope
        while True:
            name = cursor.expect_word("the name of a register").text
            if cursor.accept("<"):
                scope.ranges[name] = (cursor.integer("the number of registers"), kind)
                cursor.expect(">", "behind the number of registers")
            else:
                scope.registers[name] = kind
            if not cursor.accept(","):
                break
        cursor.expect(";", "behind this declaration")

    def _loc(self) -> None:
        cursor = self._cursor
        cursor.advance()
        numbers = [cursor.integer("a file number")]
        numbers.append(cursor.integer("a line number"))
        numbers.append(cursor.integer("a column number") if cursor.token.kind == "int" else 0)
        if cursor.accept(","):
            # `function_name $label, inlined_at file line column`: where it was inlined to is
            # of no use to a reader of the inlined line.
            line = cursor.position(cursor.token).line
            while cursor.token.kind != "end" and cursor.position(cursor.token).line == line:
                cursor.advance()
        self._source = SourcePoint(*numbers)

    def _skip_statement(self) -> None:
        while not self._cursor.accept(";"):
            if self._cursor.advance().kind == "end":
                self._cursor.fail("expected `;`, got the end of the text")

    # Instructions --------------------------------------------------------------------------------

    def _instruction(self) -> None:
        cursor = self._cursor
        first = cursor.token
        guard = self._guard() if cursor.accept("@") else None
        token = cursor.expect_word("an instruction")
        opcode, *suffix = token.text.split(".")
        if opcode in _BRANCHES:
            self._branches.append((len(self.instructions), self.names.scope, cursor.token))
        operands = self._operands.operands()
        place: Position = cursor.position(first)
        self.instructions.append(
            Instruction(opcode, tuple(suffix), operands, guard, place, self._source)
        )

    def _guard(self) -> Guard:
        negated = self._cursor.accept("!")
        token = self._cursor.token
        register = self._operands.register()
        if register.type != "pred":
            self._cursor.source.fail(token, f"`{token.text}` guards but is no predicate")
        return Guard(register, negated)
