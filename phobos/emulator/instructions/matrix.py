"""`mma.sync`: products of matrix fragments."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phobos.emulator.decode import Operands, Step
from phobos.emulator.instructions.narrow_matrix import decode_kind
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.instructions.warps import check_whole_warps, read_warps, write_warps
from phobos.emulator.tensor import products
from phobos.emulator.tensor.elements import (
    ELEMENT_BITS,
    INTEGERS,
    SMALL_FLOATS,
    pack,
    per_register,
    unpack,
)
from phobos.emulator.tensor.fragments import (
    Fragment,
    QuadPair,
    fragment_a,
    fragment_b,
    fragment_c,
    quad_pair_a,
    quad_pair_b,
    quad_pair_c,
)
from phobos.emulator.types import B32, B64, Selection
from phobos.emulator.wave import Wave

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_SHAPES: dict[str, frozenset[str]] = {
    "f16": frozenset({"m8n8k4", "m16n8k8", "m16n8k16"}),
    "bf16": frozenset({"m16n8k8", "m16n8k16"}),
    "tf32": frozenset({"m16n8k4", "m16n8k8"}),
    "e4m3": frozenset({"m16n8k16", "m16n8k32"}),
    "e5m2": frozenset({"m16n8k16", "m16n8k32"}),
    "s8": frozenset({"m8n8k16", "m16n8k16", "m16n8k32"}),
    "u8": frozenset({"m8n8k16", "m16n8k16", "m16n8k32"}),
    "s4": frozenset({"m8n8k32", "m16n8k32", "m16n8k64"}),
    "u4": frozenset({"m8n8k32", "m16n8k32", "m16n8k64"}),
    "b1": frozenset({"m8n8k128", "m16n8k128", "m16n8k256"}),
    "f64": frozenset({"m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"}),
}
_NATIVE_8_BIT = frozenset({89, 120, 121})
"""Chips, by number, that multiply 8-bit floats without going through f16."""

Gather = Fragment | QuadPair
Multiply = Callable[[npt.NDArray, npt.NDArray, npt.NDArray], npt.NDArray]


@dataclass(frozen=True)
class _Form:
    """The suffix of `mma` taken apart."""

    rows: int
    columns: int
    depth: int
    a_by_row: bool
    b_by_row: bool
    types: tuple[str, str, str, str]
    saturates: bool
    operation: str

    @property
    def is_quad_pair(self) -> bool:
        return self.depth == 4 and self.types[1] == "f16"


def _form(ops: Operands) -> _Form:
    suffix = list(ops.instruction.suffix)
    if suffix[:1] == ["sp"] or suffix[:1] == ["sp::ordered_metadata"]:
        ops.refuse("sparse products are not supported")
    shape = next((part for part in suffix if _SHAPE.fullmatch(part)), None)
    layouts = [part for part in suffix if part in ("row", "col")]
    types = [part for part in suffix if part in ELEMENT_BITS]
    if shape is None or len(layouts) != 2 or len(types) != 4:
        ops.refuse("needs a shape, two layouts and four types")
    d, a, b, c = types
    numbers = _SHAPE.fullmatch(shape)
    assert numbers is not None
    rows, columns, depth = (int(number) for number in numbers.groups())
    form = _Form(
        rows,
        columns,
        depth,
        layouts[0] == "row",
        layouts[1] == "row",
        (d, a, b, c),
        "satfinite" in suffix,
        next((part for part in suffix if part in ("xor", "and")), "xor"),
    )
    _check_form(ops, form, shape, layouts)
    return form


def _check_form(ops: Operands, form: _Form, shape: str, layouts: list[str]) -> None:
    d, a, b, c = form.types
    if shape not in _SHAPES.get(a, frozenset()):
        ops.refuse(f"there is no shape .{shape} for .{a}")
    if layouts != ["row", "col"] and not form.is_quad_pair:
        ops.refuse("A must be .row and B .col")
    mixes = a != b and not (
        {a, b} <= SMALL_FLOATS or ({a, b} <= INTEGERS and ELEMENT_BITS[a] == ELEMENT_BITS[b])
    )
    if mixes:
        ops.refuse(f"cannot multiply .{a} by .{b}")
    wanted = {"f64": {"f64"}, "b1": {"s32"}, "tf32": {"f32"}, "bf16": {"f32"}}.get(
        a, {"s32"} if a in INTEGERS else {"f16", "f32"}
    )
    if d not in wanted or (c != d and not form.is_quad_pair) or c not in wanted:
        ops.refuse(f"cannot accumulate .{a} in .{d} and .{c}")


@decodes("mma")
def _mma(ops: Operands) -> Step:
    if any(part.startswith("kind::") for part in ops.instruction.suffix):
        return decode_kind(ops)
    ops.expect_count(4)
    form = _form(ops)
    gathers = _gathers(form)
    kind = B64 if form.types[0] == "f64" else B32
    vectors = [
        _registers(ops, index, gather, element)
        for index, (gather, element) in enumerate(zip(gathers, form.types, strict=True))
    ]
    writers = [ops.writer(element, kind) for element in vectors[0]]
    readers = [[ops.reader(element, kind) for element in vector] for vector in vectors[1:]]
    multiply = _multiplication(ops, form)
    d, a, b, c = form.types

    def step(wave: Wave, sel: Selection) -> None:
        check_whole_warps(ops, wave, sel)
        matrices = [
            gather.gather(unpack(read_warps(wave, sel, operand), element))
            for gather, operand, element in zip(gathers[1:], readers, (a, b, c), strict=True)
        ]
        result = multiply(matrices[0], matrices[1], matrices[2])
        write_warps(wave, sel, writers, pack(gathers[0].scatter(result), d))

    return step


def _registers(ops: Operands, index: int, gather: Gather, element: str) -> tuple:
    fragment = gather.fragment if isinstance(gather, QuadPair) else gather
    wanted = fragment.elements // per_register(element)
    elements = ops.elements(ops.operand(index))
    if len(elements) != wanted:
        name = "DABC"[index]
        ops.refuse(f"{name} takes {wanted} registers, got {len(elements)}")
    return elements


def _gathers(form: _Form) -> tuple[Gather, Gather, Gather, Gather]:
    """The fragments of D, A, B and C."""
    d, a, b, c = form.types
    if form.is_quad_pair:
        return (
            quad_pair_c(single=d == "f32"),
            quad_pair_a(by_row=form.a_by_row),
            quad_pair_b(by_row=form.b_by_row),
            quad_pair_c(single=c == "f32"),
        )
    # One-bit elements are handled 32 at a time, as words.
    depth = form.depth // 32 if a == "b1" else form.depth
    result = fragment_c(form.rows)
    return (
        result,
        fragment_a(form.rows, depth, per_register(a)),
        fragment_b(form.columns, depth, per_register(b)),
        result,
    )


def _multiplication(ops: Operands, form: _Form) -> Multiply:
    d, a, _, _ = form.types
    if a == "f64":
        return products.multiply_doubles
    if a == "b1":
        combine = np.bitwise_xor if form.operation == "xor" else np.bitwise_and
        return lambda x, y, z: products.multiply_bits(x, y, z, combine)
    if a in INTEGERS:
        return lambda x, y, z: products.multiply_integers(x, y, z, saturate=form.saturates)
    if a in SMALL_FLOATS and not _multiplies_8_bits(ops):
        return lambda x, y, z: products.multiply_small_floats(x, y, z, d)
    return lambda x, y, z: products.multiply_floats(x, y, z, d)


def _multiplies_8_bits(ops: Operands) -> bool:
    digits = "".join(c for c in ops.environment.module.chip if c.isdigit())
    return digits != "" and int(digits) in _NATIVE_8_BIT
