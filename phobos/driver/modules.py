"""`phobos.compile`: from a source to a module whose kernels can be launched."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from phobos.diagnostics import PhobosError, PhobosWarning, SourceMap, listening, render
from phobos.driver.cached import compile_cached
from phobos.driver.options import CompileOptions, make_options
from phobos.driver.sources import read_source
from phobos.runtime.arrays import type_phrase
from phobos.runtime.cache import OFF
from phobos.runtime.module import Module, Variant
from phobos.runtime.multiples import Multiples
from phobos.targets.ptx.chips import chip
from phobos.targets.ptx.contract import Contract

TENSOR_MAPS_VARIABLE = "PHOBOS_TENSOR_MAPS"

TEXT_NAME = "<string>"
"""What a source that is passed as text is called in diagnostics."""


def compile(
    source: str | Path,
    chip: str | None = None,
    constants: Mapping[str, int | float] | None = None,
    index_bits: int | None = None,
    extent_multiple: int = 4,
    *,
    extent_multiples: Mapping[str, int] | None = None,
    kernel: str | None = None,
    check_bounds: bool = False,
    assertions: bool = False,
    line_info: bool = False,
    tensor_maps: bool | None = None,
    name: str | None = None,
    cache: bool = True,
) -> Module:
    """Compile a source to PTX.

    Args:
        source: the text of a program, or the path of a file as a `pathlib.Path`.
        chip: the chip, such as "sm_80"; by default PHOBOS_CHIP, the machine's GPU, or sm_80.
        constants: values for `@autotune` names; the others take their first value.
        index_bits: 32 or 64; by default 32 unless the source needs 64.
        extent_multiple: what divides the extents that `.ptx` is compiled for: 1, 2, 4, 8 or 16.
        extent_multiples: by the name of a dim, what divides its extent in place of that.
        kernel: the one kernel to compile; by default all.
        check_bounds: make an access outside its tensor trap.
        assertions: keep `assert` and `print`.
        line_info: name source lines in the PTX, for profilers and debuggers.
        tensor_maps: whether kernels may take tensor maps on chips that copy by them. By default
            those that are launched through the module may, unless PHOBOS_TENSOR_MAPS is 0, and
            `.ptx` has none; True is about `.ptx` too.
        name: what to call the source in diagnostics.
        cache: whether the kernel cache on disk may be used.

    Returns a module with `.ptx`, `.contract` and the kernels by name. The extent multiples and the
    default index width concern `.ptx` and `.contract` alone: a launch through the module takes
    the variant of the source that its extents allow, and compiles it on first use.

    Raises PhobosError, whose text is the diagnostic, if the source or an option is wrong. What is
    only doubtful is a PhobosWarning of Python's `warnings`.
    """
    text = _text_of(source)
    options = make_options(
        chip=chip,
        constants=constants,
        kernel=kernel,
        index_bits=index_bits,
        extent_multiple=extent_multiple,
        extent_multiples=extent_multiples,
        check_bounds=check_bounds,
        assertions=assertions,
        line_info=line_info,
        tensor_maps=bool(tensor_maps),
    )
    default_name = str(source) if isinstance(source, Path) else TEXT_NAME
    with listening() as listener:
        module = compile_module(
            text, name or default_name, options, tensor_maps=tensor_maps, cache=cache
        )
    for one in listener.diagnostics:
        warnings.warn(render(one, listener.sources), PhobosWarning, stacklevel=2)
    return module


def _text_of(source: str | Path) -> str:
    if isinstance(source, Path):
        return read_source(source)
    if not isinstance(source, str):
        raise PhobosError.at(None, f"a source is text or a Path, not {type_phrase(source)}")
    if source.endswith(".ph") and "\n" not in source:
        raise PhobosError.at(
            None,
            f"the source is the text of a program, and the name of a file was passed: {source}",
            help=f"Path({source!r}) has it read",
        )
    return source


def compile_module(
    text: str,
    name: str,
    options: CompileOptions,
    *,
    tensor_maps: bool | None = None,
    cache: bool = True,
) -> Module:
    """The module of a source, compiled with these options; see `compile`."""
    compiler = _Compiler(text, name, options, cache)
    multiples = Multiples(options.extent_multiple, options.extent_multiples)
    variant = Variant(multiples, options.index_bits, options.line_info, options.tensor_maps)
    ptx, contract = compiler.compile(variant)
    sources = SourceMap()
    sources.add(name, text)
    return Module(
        ptx,
        contract,
        variant=variant,
        compile=compiler.compile,
        tensor_maps=_launches_by_maps(options.chip) if tensor_maps is None else tensor_maps,
        sources=sources,
    )


def _launches_by_maps(chip_name: str) -> bool:
    """Whether launches use tensor maps where nobody has said so."""
    switch = os.environ.get(TENSOR_MAPS_VARIABLE, "").lower()
    return chip(chip_name).has_bulk_copy and switch not in OFF


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Compiles variants of one source, through the cache on disk."""

    text: str
    name: str
    options: CompileOptions
    cache: bool

    def compile(self, variant: Variant) -> tuple[str, Contract]:
        options = replace(
            self.options,
            extent_multiple=variant.multiples.common,
            extent_multiples=variant.multiples.named,
            index_bits=variant.index_bits,
            line_info=variant.line_info,
            tensor_maps=variant.tensor_maps,
        )
        return compile_cached(self.text, self.name, options, cache=self.cache)
