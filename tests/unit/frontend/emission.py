"""Helpers for tests of emitted IR."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import Block, Operation, SSAValue

from phobos.frontend import FrontendOptions, to_ir

DEFAULT_PARAMETERS = (
    "x: tensor<f32>[N], A: tensor<f32>[M, K], h: tensor<f16>[N], b: tensor<bf16>[N],"
    " n: tensor<i32>[N], q: tensor<i8>[M, K], u: tensor<u8>[N], alpha: f32, count: i32,"
    " small: i8, wide: i64, mask: u32"
)


def module(text: str, **options: object) -> ModuleOp:
    """The verified module of a program."""
    result = to_ir(text, "test.ph", FrontendOptions(**options))  # pyright: ignore[reportArgumentType]
    result.verify()
    check_dominance(result)
    check_locations(result)
    return result


def kernel_text(body: str, parameters: str = DEFAULT_PARAMETERS, header: str = "") -> str:
    """A program of one kernel with the given statements."""
    return f"{header}\nkernel k({parameters}) {{\n{body}\n}}\n"


def emitted(
    body: str, parameters: str = DEFAULT_PARAMETERS, header: str = "", **options: object
) -> str:
    """The printed operations of a kernel with the given statements, one a line."""
    text = str(module(kernel_text(body, parameters, header), **options))
    lines = [line.strip() for line in text.splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("^bb0"))
    end = next(i for i, line in enumerate(lines) if "gpu.return" in line)
    return "\n".join(lines[start + 1 : end])


def operations(body: str, **options: object) -> list[str]:
    """The names of the operations of a kernel, constants left out, in order."""
    top = module(kernel_text(body), **options)
    inner = [op.name for op in top.walk()]
    start = inner.index("gpu.func") + 1
    return [name for name in inner[start:] if name not in ("arith.constant", "gpu.return")]


def check_locations(top: Operation) -> None:
    """Every operation and block argument says where it comes from."""
    for op in top.walk():
        assert not isinstance(op.location, UnknownLoc), f"{op.name} has no location"
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    assert not isinstance(argument.location, UnknownLoc), f"in {op.name}"


def check_dominance(top: Operation) -> None:
    """Every operand is defined before its use, in the same block or one around it."""
    for region in top.regions:
        for block in region.blocks:
            _check_block(block, set())


def _check_block(block: Block, outer: set[SSAValue]) -> None:
    visible = outer | set(block.args)
    for op in block.ops:
        for operand in op.operands:
            assert operand in visible, f"{op.name} uses a value that is not defined yet"
        for region in op.regions:
            for inner in region.blocks:
                _check_block(inner, visible)
        visible.update(op.results)
