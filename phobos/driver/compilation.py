"""Compiling a source: each level of the way can be had, each step is timed.

text --parse--> ast --check, emit--> tile --passes--> dist --passes--> ptx-ir --print--> ptx
"""

from __future__ import annotations

import gc
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING

from phobos.diagnostics import (
    Diagnostic,
    PhobosError,
    SourceMap,
    did_you_mean,
    listening,
    tell,
)
from phobos.driver.levels import Level
from phobos.driver.options import CompileOptions
from phobos.faults import diagnose, verify_located
from phobos.record import Record, record
from phobos.targets.ptx.contract import Contract, KernelContract

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
    from xdsl.passes import ModulePass

    from phobos.explain import Explainer, Explanation


FIRST_PTX_PASS = "ph-lower-to-ptx"
"""The pass before which the IR is at level `dist`."""

DEFAULT_LEVELS = frozenset({Level.PTX, Level.CONTRACT})


@record
class StepTime(Record):
    """How long one step of a compilation took."""

    name: str
    seconds: float


@dataclass
class Compilation:
    """What came out of a compilation.

    Attributes:
        options: how the source was compiled.
        name: the name of the source.
        sources: its text and spans, for the excerpts of diagnostics.
        levels: the text of each level that was asked for; `cubin` is bytes.
        contract: how to launch the kernels, if the compilation went as far as PTX.
        diagnostics: warnings and notes, which whoever listens is told as well.
        times: the steps in order, with what each took.
        explanation: why the kernels became what they are, if that was asked for.
    """

    options: CompileOptions
    name: str
    sources: SourceMap
    levels: dict[Level, str | bytes] = field(default_factory=dict)
    contract: Contract | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    times: list[StepTime] = field(default_factory=list)
    explanation: Explanation | None = None

    @property
    def ptx(self) -> str:
        """The PTX text; only where the levels asked for need it."""
        text = self.levels[Level.PTX]
        assert isinstance(text, str)
        return text

    def timing_table(self) -> str:
        """The steps with their times, a line each, and the total."""
        total = StepTime("total", sum(step.seconds for step in self.times))
        return "\n".join(f"{1e3 * one.seconds:9.2f} ms  {one.name}" for one in (*self.times, total))


def compile_text(
    text: str,
    name: str,
    options: CompileOptions,
    *,
    levels: Collection[Level] = DEFAULT_LEVELS,
    passes: tuple[ModulePass, ...] | None = None,
    verify_each: bool = False,
    explain: bool = False,
) -> Compilation:
    """Compile a source as far as the last of `levels` needs.

    `name` stands for the source in diagnostics, line information and the contract. `passes` are
    run in place of the default ones. With `verify_each` the module is verified after the front
    end and after every pass. With `explain` the compilation has an explanation, of the machine
    code too if that is among the levels. Raises PhobosError with everything that is wrong with
    the source.
    """
    sources = SourceMap()
    sources.add(name, text)
    compilation = Compilation(options, name, sources)
    run = _Run(compilation, text, frozenset(levels), passes, verify_each)
    if explain:
        from phobos.explain import Explainer

        run.explainer = Explainer(name, options.chip, sources, tensor_maps=options.tensor_maps)
    try:
        with listening() as listener, _collected_later():
            run.go()
        compilation.diagnostics = tuple(listener.diagnostics)
        if run.explainer is not None:
            compilation.explanation = run.explainer.explanation
        tell(*compilation.diagnostics, sources=sources)
    except PhobosError as error:
        error.with_sources(sources)
        raise
    except BaseException as fault:  # xDSL's ArgSpecParseError is no Exception
        raise diagnose(fault, run.step).with_sources(sources) from fault
    return compilation


@contextmanager
def _collected_later() -> Iterator[None]:
    """Keep the garbage collector from walking the growing IR again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Run:
    """One compilation; while it goes, `step` says what it is doing."""

    def __init__(
        self,
        compilation: Compilation,
        text: str,
        levels: frozenset[Level],
        passes: tuple[ModulePass, ...] | None,
        verify_each: bool,
    ) -> None:
        self.result = compilation
        self.options = compilation.options
        self.passes = passes
        self.step = ""
        self.text = text
        self.levels = levels
        self.verify_each = verify_each
        self.last = max(levels, key=list(Level).index)
        self.explainer: Explainer | None = None
        self.explained_ptx = ""
        """The PTX with its source lines, by which loops of the machine code are named."""

    def go(self) -> None:
        """Go through the steps, up to the last level that was asked for."""
        if Level.AST in self.levels:
            self.parse()
            if self.last is Level.AST:
                return
        passes = self.start()
        module = self.build()
        kernels = self.describe(module)
        if self.last is Level.TILE or not self.run_passes(passes, module):
            return
        self.print_ptx(module, kernels)
        if Level.CUBIN in self.levels:
            self.assemble()

    @contextmanager
    def timed(self, name: str, step: str) -> Iterator[None]:
        self.step = step
        start = time.perf_counter()
        yield
        self.result.times.append(StepTime(name, time.perf_counter() - start))

    def start(self) -> tuple[ModulePass, ...]:
        """Import what the compilation needs, so that this does not count as another step."""
        with self.timed("imports", "at the start"):
            import phobos.driver.contracts
            import phobos.frontend.translate

            if self.last is Level.TILE:
                return ()
            import phobos.targets.ptx.printer  # noqa: F401
            from phobos.pipeline import default_pipeline

            return default_pipeline(self.options) if self.passes is None else self.passes

    def parse(self) -> None:
        from phobos.frontend import parse
        from phobos.frontend.printer import print_program

        with self.timed("parse", "in the parser"):
            program = parse(self.text, self.result.name)
        self.result.levels[Level.AST] = print_program(program)

    def build(self) -> ModuleOp:
        from xdsl.dialects.builtin import IntegerAttr, i32

        from phobos.driver.index_width import WIDE_INDEX, needs_wide_index
        from phobos.frontend import FrontendOptions, to_ir
        from phobos.ir.kernel import EXTENT_MULTIPLE, EXTENT_MULTIPLES

        options = self.options

        def translate(index_bits: int | None) -> ModuleOp:
            return to_ir(
                self.text,
                self.result.name,
                FrontendOptions(
                    constants=dict(options.constants),
                    kernel=options.kernel,
                    index_bits=index_bits,
                    assertions=options.assertions,
                    sources=self.result.sources,
                ),
            )

        with self.timed("frontend", "in the front end"):
            module = translate(options.index_bits)
            if options.index_bits != WIDE_INDEX and needs_wide_index(module, options.chip):
                module = translate(WIDE_INDEX)
        module.attributes[EXTENT_MULTIPLE] = IntegerAttr(options.extent_multiple, i32)
        if options.extent_multiples:
            module.attributes[EXTENT_MULTIPLES] = _of_dims(module, options.extent_multiples)
        self.verify(module)
        self.keep(Level.TILE, module)
        return module

    def describe(self, module: ModuleOp) -> tuple[KernelContract, ...]:
        from phobos.driver.contracts import kernel_contracts

        with self.timed("contract", "in the launch contract"):
            return kernel_contracts(module)

    def run_passes(self, passes: tuple[ModulePass, ...], module: ModuleOp) -> bool:
        """Apply the passes; whether to go on to PTX after that."""
        context = _context()
        for one in passes:
            if one.name == FIRST_PTX_PASS and Level.DIST in self.levels:
                self.keep(Level.DIST, module)
                if self.last is Level.DIST:
                    return False
            if self.explainer is not None:
                self.step = f"explaining the module before `{one.name}`"
                self.explainer.before(one.name, module)
            with self.timed(one.name, f"in pass `{one.name}`"):
                one.apply(context, module)
            self.verify(module)
        if self.explainer is not None:
            self.explainer.finish(module)
        if all(one.name != FIRST_PTX_PASS for one in passes):
            self.keep(Level.DIST, module)
        self.keep(Level.PTX_IR, module)
        return self.last not in (Level.DIST, Level.PTX_IR)

    def verify(self, module: ModuleOp) -> None:
        if self.verify_each:
            with self.timed("verify", f"{self.step}, which leaves what is not valid"):
                verify_located(module)

    def keep(self, level: Level, module: ModuleOp) -> None:
        """Print the module as the text of a level, if that level was asked for."""
        if level not in self.levels:
            return
        from xdsl.printer import Printer

        stream = StringIO()
        Printer(stream).print_op(module)
        self.result.levels[level] = stream.getvalue() + "\n"

    def print_ptx(self, module: ModuleOp, kernels: tuple[KernelContract, ...]) -> None:
        from phobos.driver.contracts import complete_contract
        from phobos.targets.ptx.printer import print_module

        with self.timed("print", "in the PTX printer"):
            text = print_module(module, line_info=self.options.line_info)
        self.result.levels[Level.PTX] = text
        if self.explainer is not None:
            self.explained_ptx = print_module(module, line_info=True)
        contract = complete_contract(module, text, kernels, self.options, self.result.name)
        self.result.contract = contract
        self.result.levels[Level.CONTRACT] = contract.dumps()

    def assemble(self) -> None:
        from phobos.targets.ptx.assembler import assemble

        with self.timed("ptxas", "in ptxas"):
            assembled = assemble(self.result.ptx, self.options.chip, ("-v",))
        tell(
            *(
                Diagnostic.warning(
                    f"ptxas spills {stores} bytes of each thread of `{kernel}` to memory, which is"
                    " slow",
                    help="use smaller tiles or more threads (@launch), or walk the tile in a loop",
                    group="fallback",
                )
                for kernel, stores in assembled.spills.items()
            ),
            *(
                Diagnostic.warning(f"ptxas says: {remark}", group="fallback")
                for remark in assembled.remarks
            ),
        )
        self.result.levels[Level.CUBIN] = assembled.cubin
        if self.explainer is not None:
            explained = assemble(self.explained_ptx, self.options.chip, ("-v",))
            self.explainer.assembled(explained.log, explained.cubin)


def _of_dims(module: ModuleOp, multiples: tuple[tuple[str, int], ...]) -> DictionaryAttr:
    """Extent multiples by dim, as an attribute; PhobosError for a dim that no tensor has."""
    from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, i32

    from phobos.ir.kernel import dim_names, kernels

    known = {
        dim
        for kernel in kernels(module)
        for position in range(len(kernel.body.blocks[0].args))
        for dim in dim_names(kernel, position)
        if isinstance(dim, str)
    }
    for name, _ in multiples:
        if name not in known:
            raise PhobosError.at(
                None,
                f"an extent multiple was given for `{name}`, which is no dim of a tensor",
                help=did_you_mean(name, known) or f"the dims are {', '.join(sorted(known))}",
            )
    return DictionaryAttr({name: IntegerAttr(multiple, i32) for name, multiple in multiples})


def _context() -> Context:
    """A context that knows every dialect that a pass may ask for; none is loaded yet."""
    from xdsl.context import Context
    from xdsl.dialects import get_all_dialects

    from phobos.universe import PHOBOS_UNIVERSE

    context = Context()
    for name, factory in {**get_all_dialects(), **PHOBOS_UNIVERSE.all_dialects}.items():
        context.register_dialect(name, factory)
    return context
