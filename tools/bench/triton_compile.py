"""Triton's compile times for the kernels that the cases have, without a GPU."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from phobos.targets.ptx.chips import chip as chip_of
from tools.bench.case import Choices, Problem, TritonKernel
from tools.bench.compile_time import PTXAS, TOTAL
from tools.bench.registry import all_cases
from tools.bench.triton_language import is_installed

_TYPES = {
    "f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64",
    "f8e4m3": "fp8e4nv", "f8e5m2": "fp8e5",
    "i8": "i8", "u8": "u8", "i16": "i16", "i32": "i32", "i64": "i64", "bool": "i1",
}  # fmt: skip
"""Triton's names of the language's types."""
_OPTIONS = frozenset({"num_warps", "num_stages"})
_ALIGNMENT = 16
_ASSEMBLY_STAGE = "cubin"


def kernels_by_example() -> dict[Path, Problem]:
    """For each program that a case runs as it is: that case's problem. Empty without Triton."""
    found: dict[Path, Problem] = {}
    if not is_installed():
        return found
    for case in all_cases().values():
        for dtype in case.dtypes:
            source = case.phobos.source(dtype)
            if isinstance(source, Path) and case.triton is not None:
                found.setdefault(source.resolve(), Problem(case, dtype, case.sizes[0]))
    return found


def compile_in_triton(problem: Problem, chip: str, repeats: int) -> dict[str, list[float]]:
    """Seconds of each compilation with an empty cache, split at PTX; by step.

    The first compilation of the process warms up and does not count.
    """
    kernel = problem.case.triton
    assert kernel is not None
    samples: dict[str, list[float]] = {TOTAL: [], PTXAS: []}
    choices = kernel.search[0]
    _compile_once(kernel, problem, choices, chip)
    for _ in range(repeats):
        total, assembly = _compile_once(kernel, problem, choices, chip)
        samples[TOTAL].append(total - assembly)
        samples[PTXAS].append(assembly)
    return samples


def _compile_once(
    kernel: TritonKernel, problem: Problem, choices: Choices, chip: str
) -> tuple[float, float]:
    """Seconds of one compilation, and of ptxas as part of it."""
    import triton  # pyright: ignore[reportMissingImports]
    from triton.backends.compiler import GPUTarget  # pyright: ignore[reportMissingImports]

    assembly = 0.0

    def listen(*, times: Any, **_: Any) -> None:
        nonlocal assembly
        assembly = sum(us for name, us in times.lowering_stages if name == _ASSEMBLY_STAGE) * 1e-6

    options = {name: value for name, value in choices.items() if name in _OPTIONS}
    target = GPUTarget("cuda", chip_of(chip).number, 32)
    source = _source(kernel, problem, choices)
    knobs = triton.knobs
    with tempfile.TemporaryDirectory() as folder, knobs.cache.scope(), knobs.compilation.scope():
        knobs.cache.dir = folder
        knobs.compilation.listener = listen
        started = time.perf_counter()
        triton.compile(source, target=target, options=options)
        return time.perf_counter() - started, assembly


def _source(kernel: TritonKernel, problem: Problem, choices: Choices) -> Any:
    """What Triton compiles when it is launched on the problem's arrays."""
    from triton.compiler import ASTSource  # pyright: ignore[reportMissingImports]

    arrays = {array.name: array for array in problem.case.arrays}
    extents = problem.extents
    signature: dict[str, str] = {}
    attributes: dict[tuple[int, ...], list[list[object]]] = {}
    # What Triton itself learns from a launch: pointers and integers that 16 divides.
    divisible: list[list[object]] = [["tt.divisibility", _ALIGNMENT]]
    names = kernel.function.arg_names
    for place, (name, argument) in enumerate(zip(names, kernel.arguments, strict=False)):
        if argument in arrays:
            signature[name] = "*" + _TYPES[problem.dtype_of(arrays[argument])]
            attributes[(place,)] = divisible
        elif argument in extents:
            signature[name] = "i32"
            if extents[argument] % _ALIGNMENT == 0:
                attributes[(place,)] = divisible
        else:
            signature[name] = "fp32"
    constants = {name: value for name, value in choices.items() if name not in _OPTIONS}
    signature.update(dict.fromkeys(constants, "constexpr"))
    return ASTSource(kernel.function, signature, constants, attributes)
