"""Names of a function body: registers, variables and labels in nested scopes."""

from __future__ import annotations

import re

from phobos.targets.ptx.parse.records import Register, Variable

_NUMBERED = re.compile(r"(.*?)(0|[1-9]\d*)")


class Scope:
    """One `{ ... }` of a function body. Register ranges `%r<64>` are kept as ranges."""

    def __init__(self, parent: Scope | None) -> None:
        self.parent = parent
        self.registers: dict[str, str] = {}
        self.ranges: dict[str, tuple[int, str]] = {}
        self.variables: dict[str, Variable] = {}
        self.labels: dict[str, str] = {}
        self.resolved: dict[str, Register] = {}

    def declared_type(self, name: str) -> str | None:
        """The type of a register that this very scope declares, or None."""
        if name in self.registers:
            return self.registers[name]
        match = _NUMBERED.fullmatch(name)
        if match is None or match.group(1) not in self.ranges:
            return None
        count, kind = self.ranges[match.group(1)]
        return kind if int(match.group(2)) < count else None


class Names:
    """All scopes of one function; gives registers their numbers and scoped names unique ones."""

    def __init__(self) -> None:
        self.scope = Scope(None)
        self.registers: list[Register] = []
        self.variables: list[Variable] = []
        self._used: dict[str, int] = {}

    def enter(self) -> None:
        """Open a scope."""
        self.scope = Scope(self.scope)

    def leave(self) -> bool:
        """Close the innermost scope; False if it is the function's own."""
        if self.scope.parent is None:
            return False
        self.scope = self.scope.parent
        return True

    def unique(self, name: str) -> str:
        """`name`, or `name@n` if another scope used it already."""
        count = self._used.get(name, 0)
        self._used[name] = count + 1
        return f"{name}@{count}" if count else name

    def register(self, name: str) -> Register | None:
        """The register that `name` means here, or None if no scope declares it."""
        scope: Scope | None = self.scope
        while scope is not None:
            found = scope.resolved.get(name)
            if found is not None:
                return found
            kind = scope.declared_type(name)
            if kind is not None:
                register = Register(self.unique(name), kind, len(self.registers))
                self.registers.append(register)
                scope.resolved[name] = register
                return register
            scope = scope.parent
        return None

    def variable(self, name: str) -> Variable | None:
        """The variable of the function that `name` means here, or None."""
        scope: Scope | None = self.scope
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name]
            scope = scope.parent
        return None
