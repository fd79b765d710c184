"""Kernels that apply one operation of the math dialect to arrays.

Each is a program of the language with a stand-in (`floor` or `max`) for the operation, which is
put in its place before the passes run: the language has not got all of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from phobos.driver.compilation import compile_text
from phobos.driver.options import make_options
from phobos.pipeline import default_pipeline
from phobos.runtime.module import Module

TILE = 1024
BINARY = (arith.DivfOp, math.PowFOp)
"""The operations of two arguments."""

_SINGLES = """
@aligned(N = {tile})
{attribute}
kernel apply(x: tensor<{kind}>[N], out: tensor<{kind}>[N]) {{
    let i = ctx.block.x * {tile}
    out[i :+ {tile}] = floor(x[i :+ {tile}])
}}
"""
_PAIRS = """
@aligned(N = {tile})
{attribute}
kernel apply(x: tensor<{kind}>[N], y: tensor<{kind}>[N], out: tensor<{kind}>[N]) {{
    let i = ctx.block.x * {tile}
    out[i :+ {tile}] = max(x[i :+ {tile}], y[i :+ {tile}])
}}
"""
_POINTS = """
{attribute}
kernel apply(x: tensor<{kind}>[N], out: tensor<{kind}>[N]) {{
    let i = ctx.block.x * {tile} + ctx.thread
    if i < N {{ out[i] = floor(x[i]) }}
}}
"""


@dataclass(frozen=True)
class _PutInPlace(ModulePass):
    """Replaces the stand-ins by the operation that is meant."""

    name = "put-in-place"
    operation: type[Operation] = Operation

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replace all of them."""
        for old in list(op.walk()):
            if not isinstance(old, math.FloorOp | arith.MaxnumfOp):
                continue
            new = self.operation.create(
                operands=old.operands, result_types=[old.result.type], location=old.location
            )
            block = old.parent
            assert block is not None
            block.insert_op_before(new, old)
            old.result.replace_all_uses_with(new.results[0])
            old.detach()
            old.erase()


@dataclass(frozen=True)
class Variant:
    """How an operation is compiled: element type, chip, whether with fast_math, in which form."""

    operation: type[Operation]
    kind: str = "f32"
    chip: str = "sm_80"
    is_fast: bool = False
    tile: int = TILE
    by_points: bool = False


@cache
def compiled(variant: Variant) -> Module:
    """The module of a variant."""
    of_tiles = _PAIRS if variant.operation in BINARY else _SINGLES
    source = _POINTS if variant.by_points else of_tiles
    attribute = "@fast_math" if variant.is_fast else ""
    tile = 256 if variant.by_points else variant.tile
    text = source.format(tile=tile, kind=variant.kind, attribute=attribute)
    options = make_options(chip=variant.chip)
    passes = (_PutInPlace(variant.operation), *default_pipeline(options))
    compilation = compile_text(text, "apply.ph", options, passes=passes)
    assert compilation.contract is not None
    return Module(compilation.ptx, compilation.contract)


def apply(variant: Variant, *arguments: np.ndarray, device: str = "emulator") -> np.ndarray:
    """The operation of 1-d arrays, which are filled up to whole tiles for the launch."""
    count = len(arguments[0])
    padded = [np.resize(one, -(-count // variant.tile) * variant.tile) for one in arguments]
    names = ("x", "y")[: len(padded)]
    out = np.zeros_like(padded[0])
    kernel = compiled(variant)["apply"]
    grid = (len(out) // (256 if variant.by_points else variant.tile),)
    kernel(**dict(zip(names, padded, strict=True)), out=out, grid=grid, device=device)
    return out[:count]


def instructions(variant: Variant) -> list[str]:
    """The instructions of one application, as ordinary arguments meet them, without operands.

    Two elements more in each thread add them twice. Moving data does not count.
    """
    few, many = (_opcodes(replace(variant, tile=tile)) for tile in (512, 1024))
    added = Counter(many) - Counter(few)
    for opcode in [opcode for opcode in added if opcode.startswith(("ld.", "st.", "mov."))]:
        del added[opcode]
    assert all(count % 2 == 0 for count in added.values()), added
    return sorted(opcode for opcode, count in added.items() for _ in range(count // 2))


def _opcodes(variant: Variant) -> list[str]:
    """The opcodes of a kernel, less those that a forward branch may jump over."""
    opcodes: list[str] = []
    skipped_to: str | None = None
    for line in compiled(variant).ptx.partition("{")[2].splitlines():
        text = line.strip().rstrip(";")
        if text == f"{skipped_to}:":
            skipped_to = None
        words = text.removeprefix("@").split()
        if skipped_to or not line.startswith("\t") or text.startswith("."):
            continue
        if "bra" in words:
            skipped_to = words[-1]
        else:
            opcodes.append(words[1 if text.startswith("@") else 0])
    return opcodes
