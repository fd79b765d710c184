"""The front end and the target through which xDSL's tools reach ours.

Both are thin: they turn xDSL's calls and `name{option=value}` specifications into calls of the
front end and the PTX printer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.utils.frontend import Frontend
from xdsl.utils.target import Target

from phobos.diagnostics import PhobosError, SourceMap
from phobos.faults import PhParseError
from phobos.ir.kernel import DEFAULT_EXTENT_MULTIPLE, EXTENT_MULTIPLE


@dataclass(frozen=True)
class PhFrontend(Frontend):
    """Reads a `.ph` program as a module of tile-level IR.

    Options, as in `-f 'ph{kernel=saxpy set="BLOCK=64"}'`: `kernel` takes one kernel of the file,
    `index_bits` is 32 or 64, each `set` overrides an `@autotune` constant, and `extent_multiple`
    divides every extent that a launch gives.
    """

    name = "ph"

    kernel: str | None = None
    index_bits: int | None = None
    set: tuple[str, ...] | str = ()
    extent_multiple: int = DEFAULT_EXTENT_MULTIPLE

    def parse(self, ctx: Context, input: IO[bytes], input_name: str) -> ModuleOp:
        """Read the stream; a wrong program raises `PhParseError`."""
        text = input.read().decode()
        try:
            return self.translate(text, input_name, SourceMap())
        except PhobosError as error:
            raise PhParseError(error, text, input_name) from error

    def translate(self, text: str, name: str, sources: SourceMap) -> ModuleOp:
        """The module of a program; spans for later errors are left in `sources`.

        Raises PhobosError if the program or a `set` option is wrong.
        """
        from phobos.frontend import FrontendOptions, to_ir

        sources.add(name, text)
        options = FrontendOptions(
            constants=self.constants(),
            kernel=self.kernel,
            index_bits=self.index_bits,
            sources=sources,
        )
        module = to_ir(text, name, options)
        if self.extent_multiple != DEFAULT_EXTENT_MULTIPLE:
            module.attributes[EXTENT_MULTIPLE] = IntegerAttr(self._checked_multiple(), i32)
        return module

    def check(self) -> None:
        """Raise PhobosError for options that no program makes right."""
        self.constants()
        self._checked_multiple()

    def constants(self) -> dict[str, int | float]:
        """The overrides of `@autotune` constants; PhobosError if one is written wrong."""
        settings = (self.set,) if isinstance(self.set, str) else self.set
        return dict(map(_parse_setting, settings))

    def _checked_multiple(self) -> int:
        if self.extent_multiple < 1:
            raise PhobosError.at(
                None, f"the extent multiple is {self.extent_multiple}, and must be at least 1"
            )
        return self.extent_multiple


@dataclass(frozen=True)
class PtxTarget(Target):
    """Prints a module of the `ptx` dialect as PTX text.

    `line_info` adds `.loc` directives, which name the source line of each instruction.
    """

    name = "ph-ptx"

    line_info: bool = False

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the PTX of the one `ptx.module` in `module`.

        Raises PhobosError if there is none, or more than one: a PTX file is one module.
        """
        from phobos.targets.ptx.printer import print_module

        output.write(print_module(module, line_info=self.line_info))


def _parse_setting(setting: str) -> tuple[str, int | float]:
    """The name and value of `NAME=VALUE`."""
    name, equals, value = setting.partition("=")
    if name and equals:
        for number in (int, float):
            try:
                return name, number(value)
            except ValueError:
                continue
    raise PhobosError.at(
        None, f"`{setting}` does not set a constant", help="write it as NAME=NUMBER"
    )
