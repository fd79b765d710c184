"""Operands of instructions."""

from __future__ import annotations

from phobos.targets.ptx.parse.cursor import Cursor
from phobos.targets.ptx.parse.records import (
    Address,
    Arguments,
    FloatImmediate,
    Immediate,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    SpecialRegister,
    Symbol,
    Vector,
)
from phobos.targets.ptx.parse.scopes import Names

_VECTORS_OF_THREE = (
    *("tid", "ntid", "ctaid", "nctaid"),
    *("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"),
)
_SCALARS = (
    *("laneid", "warpid", "nwarpid", "smid", "nsmid", "gridid"),
    *("clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi"),
    *("dynamic_smem_size", "total_smem_size", "aggr_smem_size"),
    *(f"reserved_smem_offset_{which}" for which in ("begin", "end", "cap")),
    *("cluster_ctarank", "cluster_nctarank", "is_explicit_cluster", "current_graph_exec"),
    *(f"lanemask_{relation}" for relation in ("eq", "lt", "le", "gt", "ge")),
    *(f"pm{index}" for index in range(8)),
    *(f"pm{index}_64" for index in range(8)),
    *(f"envreg{index}" for index in range(32)),
)
_SPECIAL_REGISTERS = frozenset(
    (*_SCALARS, *(f"{name}.{axis}" for name in _VECTORS_OF_THREE for axis in "xyz"))
)


class OperandParser:
    """Parses operands at a cursor, resolving names through `names`."""

    def __init__(self, cursor: Cursor, names: Names) -> None:
        self._cursor = cursor
        self._names = names

    def operands(self) -> tuple[Operand, ...]:
        """The operands up to the `;`, which is taken too."""
        cursor = self._cursor
        if cursor.accept(";"):
            return ()
        found = [self.operand()]
        while cursor.accept(","):
            found.append(self.operand())
        cursor.expect(";", "behind this instruction")
        return tuple(found)

    def operand(self) -> Operand:
        """One operand, with the second half of a pair."""
        first = self._single()
        if self._cursor.accept("|"):
            return Pair(first, self._single())
        return first

    def _single(self) -> Operand:
        cursor = self._cursor
        if cursor.at("{"):
            return Vector(self._list("{", "}"))
        if cursor.at("["):
            return self._address()
        if cursor.token.kind == "word" and cursor.token.text != "WARP_SZ":
            return self._named()
        if cursor.at("!") and cursor.ahead(1).kind == "word":
            cursor.advance()
            return Negated(self.register())
        if cursor.at("(") and cursor.ahead(1).kind == "word":
            return Arguments(self._list("(", ")"))
        if cursor.at("(") and cursor.ahead(1).text == ")":
            return Arguments(self._list("(", ")"))
        if cursor.at_number():
            return cursor.constant()
        cursor.fail(f"expected an operand, got {cursor.describe()}")

    def _list(self, opening: str, closing: str) -> tuple[Operand, ...]:
        cursor = self._cursor
        cursor.expect(opening, "before these operands")
        if cursor.accept(closing):
            return ()
        found = [self.operand()]
        while cursor.accept(","):
            found.append(self.operand())
        cursor.expect(closing, "behind these operands")
        return tuple(found)

    def _named(self) -> Operand:
        cursor = self._cursor
        token = cursor.advance()
        name = token.text
        if name == "_":
            return Sink()
        register = self._names.register(name)
        if register is not None:
            return register
        if name.startswith("%"):
            if name[1:] in _SPECIAL_REGISTERS:
                return SpecialRegister(name[1:])
            if self._names.variable(name) is None:
                cursor.source.fail(token, f"`{name}` is no declared or special register")
        return self._symbol(name)

    def _symbol(self, name: str) -> Symbol:
        variable = self._names.variable(name)
        unique = name if variable is None else variable.name
        return Symbol(unique, self._offset())

    def _offset(self) -> int:
        cursor = self._cursor
        if cursor.accept("+"):
            return cursor.integer("an offset")
        if cursor.at("-"):
            return cursor.integer("an offset")
        return 0

    def register(self) -> Register:
        """A register and nothing else."""
        cursor = self._cursor
        token = cursor.expect_word("a register")
        register = self._names.register(token.text)
        if register is None:
            cursor.source.fail(token, f"`{token.text}` is no declared register")
        return register

    def _address(self) -> Address:
        cursor = self._cursor
        cursor.expect("[", "before this address")
        if cursor.at_number():
            address = Address(Immediate(cursor.integer("an address")))
        else:
            address = self._named_address()
        cursor.expect("]", "behind this address")
        return address

    def _named_address(self) -> Address:
        cursor = self._cursor
        token = cursor.token
        base = self._named()
        if isinstance(base, Symbol):
            address = Address(Symbol(base.name), base.offset)
        elif isinstance(base, Register):
            if cursor.at("-"):
                cursor.fail("PTX has no `-` in an address; write the offset as `+-4`")
            address = Address(base, self._offset())
        else:
            cursor.source.fail(token, f"`{token.text}` cannot be an address")
        if not cursor.accept(","):
            return address
        coordinates = self._list("{", "}")
        return Address(address.base, address.offset, coordinates)


def is_constant(operand: Operand) -> bool:
    """Whether an operand is a literal."""
    return isinstance(operand, Immediate | FloatImmediate)
