"""The PTX text of calls that print or report a failed assertion.

A call is a block of its own, in which the parameters and the local memory for the values are
declared. Texts are constants of the module; equal ones are one.
"""

from __future__ import annotations

from collections.abc import Sequence

PRINTF = """\
.extern .func (.param .b32 result) vprintf
(
\t.param .b64 text,
\t.param .b64 values
);"""
ASSERTFAIL = """\
.extern .func __assertfail
(
\t.param .b64 message,
\t.param .b64 file,
\t.param .b32 line,
\t.param .b64 function,
\t.param .b64 size
);"""


class Texts:
    """The constants and declarations that the calls of a module need."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._functions: dict[str, None] = {}

    def name(self, text: str) -> str:
        """The name of the constant that holds a text."""
        return self._names.setdefault(text, f"$text_{len(self._names) + 1}")

    def declare(self, function: str) -> None:
        """Notes that a function is called; `function` is its declaration."""
        self._functions[function] = None

    def definitions(self) -> list[str]:
        """The lines that stand before the kernels."""
        lines = list(self._functions)
        for text, name in self._names.items():
            content = (*text.encode(), 0)
            listed = ", ".join(map(str, content))
            lines.append(f".global .align 1 .b8 {name}[{len(content)}] = {{{listed}}};")
        return lines


def printf_lines(texts: Texts, text: str, values: Sequence[tuple[str, int]]) -> list[str]:
    """A call of vprintf; `values` are registers and their sizes in bytes."""
    texts.declare(PRINTF)
    offsets: list[int] = []
    end = 0
    for _, size in values:
        end = -(-end // size) * size
        offsets.append(end)
        end += size
    lines = [
        f".local .align 8 .b8 values[{max(end, 8)}];",
        ".reg .b64 %place<3>;",
        ".param .b64 first;",
        ".param .b64 second;",
        ".param .b32 result;",
    ]
    for (register, size), offset in zip(values, offsets, strict=True):
        lines.append(f"st.local.b{8 * size} [values+{offset}], {register};")
    lines += [
        "mov.u64 %place0, values;",
        "cvta.local.u64 %place1, %place0;",
        *_address(texts, text, 2),
        "st.param.b64 [first], %place2;",
        "st.param.b64 [second], %place1;",
        "call (result), vprintf, (first, second);",
    ]
    return _scope(lines)


def assertfail_lines(texts: Texts, text: str, file: str, line: int) -> list[str]:
    """A call of __assertfail, which does not come back."""
    texts.declare(ASSERTFAIL)
    lines = [".reg .b64 %place<3>;"]
    types = ("b64", "b64", "b32", "b64", "b64")
    lines += [f".param .{type_} part{number};" for number, type_ in enumerate(types)]
    lines += _address(texts, text, 0)
    lines += _address(texts, file, 1)
    lines += _address(texts, "", 2)
    values = ("%place0", "%place1", str(line), "%place2", "1")
    lines += [
        f"st.param.{type_} [part{number}], {value};"
        for number, (type_, value) in enumerate(zip(types, values, strict=True))
    ]
    lines.append("call __assertfail, (part0, part1, part2, part3, part4);")
    return _scope(lines)


def _address(texts: Texts, text: str, number: int) -> list[str]:
    """Puts the generic address of a text into a register of the block."""
    register = f"%place{number}"
    return [
        f"mov.u64 {register}, {texts.name(text)};",
        f"cvta.global.u64 {register}, {register};",
    ]


def _scope(lines: Sequence[str]) -> list[str]:
    return ["\t{", *(f"\t{line}" for line in lines), "\t}"]
