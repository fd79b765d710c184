"""Compiling to PTX through the kernel cache."""

from __future__ import annotations

from phobos.diagnostics import listening, tell
from phobos.driver.options import CompileOptions
from phobos.runtime.cache import Compiled, default_cache


def compile_cached(
    text: str, name: str, options: CompileOptions, *, cache: bool = True
) -> Compiled:
    """The PTX and the contract of a source, from the kernel cache if that has them.

    What gives warnings is not kept there, so that it gives them again. Raises
    PhobosError with everything that is wrong with the source.
    """
    store = default_cache() if cache else None
    if store is None:
        return _compile(text, name, options)
    with listening() as listener:
        made = store.get_or_make(
            options.key(text, name),
            lambda: _compile(text, name, options),
            keep=lambda: not listener.diagnostics,
        )
    tell(*listener.diagnostics, sources=listener.sources)
    return made


def _compile(text: str, name: str, options: CompileOptions) -> Compiled:
    from phobos.driver.compilation import compile_text

    compilation = compile_text(text, name, options)
    assert compilation.contract is not None
    return compilation.ptx, compilation.contract
