"""What tiles can be multiplied as: tables that `ph-select-contraction` looks up.

A new shape is a row of `MMA_SHAPES` (phobos/dialects/ptx/matrix.py) and of its namesake in
phobos/layout/fragments.py; a new type of operand is a row of `OPERAND_FORMS` and of one of the
tables here.
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    bf16,
    f16,
)
from xdsl.ir import Attribute

from phobos.dialects.contraction import OPERAND_FORMS, WGMMA, Instruction
from phobos.dialects.ptx.matrix import MMA_SHAPES, WMMA_SHAPES, MmaShape, WmmaShape
from phobos.dialects.ptx.warpgroup import WARPGROUP_ROWS, WGMMA_SHAPES, WgmmaShape
from phobos.layout import fragments
from phobos.layout.contraction import THREAD_EDGE
from phobos.layout.fragments import WARPGROUP_WARPS
from phobos.layout.warpgroup import LEAST_ROW_BYTES
from phobos.record import Record, record
from phobos.targets.ptx.chips import WARP_LANES, Chip


@record
class Form(Record):
    """Operands as an instruction names them, and the element type to convert them to first."""

    a: str
    b: str
    converted: Attribute | None = None


_HALF = Form("f16", "f16", f16)
ASKED: dict[str, Form] = {
    "": _HALF,
    "sync": _HALF,
    "f16": _HALF,
    "bf16": Form("bf16", "bf16", bf16),
    "tf32": Form("tf32", "tf32"),
    "tf32x3": Form("tf32x3", "tf32x3"),
}
"""What `@tensorcore(..)` names, empty without brackets -> what f32 operands are multiplied as."""

SYNC = "sync"
"""The form of `@tensorcore` that asks for `mma.sync`."""
WARPGROUP_THREADS = WARPGROUP_WARPS * WARP_LANES

WMMA = "wmma"
"""The form of `@tensorcore` that loads operands by `wmma`; alone, or in front of another form."""

NEEDED = {"tf32x3": "has_tf32"}
"""What `@tensorcore(..)` names -> what a chip must have to compile it at all."""

_NAMES: dict[type[Attribute], str] = {
    Float16Type: "f16",
    BFloat16Type: "bf16",
    Float32Type: "f32",
    Float64Type: "f64",
    Float8E4M3FNType: "e4m3",
    Float8E5M2Type: "e5m2",
}
SMALL_FLOATS = ("e4m3", "e5m2")


def operand_name(element: Attribute, *, unsigned: bool = False) -> str:
    """What an instruction calls operands of an element type: `f16`, `s8`, ..."""
    if isinstance(element, IntegerType):
        return f"{'u' if unsigned else 's'}{element.width.data}"
    return _NAMES[type(element)]


_ELEMENTS = {"s8": "i8", "s32": "i32", "e4m3": "f8e4m3", "e5m2": "f8e5m2"}


def element_name(operand: str) -> str:
    """What the language calls the elements of operands: `s8` is `i8`."""
    return _ELEMENTS.get(operand, operand)


def forms(a: str, b: str, asked: str | None) -> tuple[Form, ...]:
    """What operands can be multiplied as on tensor cores, the best first.

    `asked` is what the kernel's `@tensorcore` names, None without the attribute: f32 operands are
    rounded only if it is there.
    """
    if a == b == "f32":
        return () if asked is None else (ASKED[asked],)
    if a in SMALL_FLOATS:
        return Form(a, b), _HALF
    return (Form(a, b),)


def mma_for(target: Chip, form: Form, accumulator: str, depth: int) -> MmaShape | None:
    """The deepest `mma` of a chip that is not deeper than the tile; None if there is none.

    A step deeper than the tile would sum copies of its elements.
    """
    a, b = OPERAND_FORMS[form.a].ptx, OPERAND_FORMS[form.b].ptx
    rows = _rows(a, b, accumulator)
    return next((row for row in rows if target.has(row.needs) and row.k <= depth), None)


@lru_cache(maxsize=64)
def _rows(a: str, b: str, accumulator: str) -> tuple[MmaShape, ...]:
    """The `mma` of these types whose fragments have a layout, the deepest first."""
    bits = OPERAND_FORMS[a].bits
    known = {(s.m, s.n, s.k) for s in fragments.MMA_SHAPES if s.operand_bits == bits}
    rows = [row for row in MMA_SHAPES if (row.a, row.b, row.accumulator) == (a, b, accumulator)]
    there = [row for row in rows if (row.m, row.n, row.k) in known]
    return tuple(sorted(there, key=lambda row: (row.k, row.m), reverse=True))


@record
class WarpgroupPiece(Record):
    """A `wgmma` and the warps along M and N that share a tile: each four of them a warpgroup."""

    n: int
    k: int
    accumulator: str
    warps: tuple[int, int]
    part: int = 0
    turned: bool = False
    m: int = WARPGROUP_ROWS


MAX_COLUMNS = 256
"""Of one `wgmma`."""
MAX_PART_COLUMNS = 128
"""Of one `wgmma` whose sums are parts of a total, which is in other registers."""
MAX_PART_DEPTH = 128
"""Of K: so many products of 8-bit floats the hardware sums, as cuBLAS lets it."""
MAX_SUM_REGISTERS = 128
"""Registers of a thread that sums of a warpgroup may take, so that none is spilled."""
OTHER_REGISTERS = 26
"""Registers that ptxas wants beside the sums, or else refuses the kernel."""
MAX_HELD_REGISTERS = 32
"""Registers of a thread that hold an operand's fragments while `wgmma` reads them."""


def rounds_before(form: Form) -> bool:
    """Whether operands in this form are rounded before `wgmma` reads them, as it cuts them."""
    return OPERAND_FORMS[form.a].ptx == "tf32"


def takes_any_side(form: Form) -> bool:
    """Whether `wgmma` reads operands in this form whichever axis they are contiguous along.

    Others lie along K, so that those of shared memory that come another way would be turned.
    """
    return any(row.transposable for row in wgmma_rows(form))


def wgmma_rows(form: Form) -> list[WgmmaShape]:
    """The `wgmma` that multiply operands in this form."""
    a, b = OPERAND_FORMS[form.a], OPERAND_FORMS[form.b]
    if a.parts > 1:
        return []
    return [row for row in WGMMA_SHAPES if (row.a, row.b) == (a.ptx, b.ptx)]


def wgmma_for(
    target: Chip,
    form: Form,
    accumulator: str,
    sizes: tuple[int, int, int],
    threads: int,
    registers: int,
    *,
    exact: bool = True,
    turned: bool = False,
) -> WarpgroupPiece | None:
    """How the warpgroups of a CTA share a product of these sizes, powers of two; None if not.

    They share rows as long as there are 64 for each, as then each reads its own part of A. A thread
    has so many registers, which have to hold its sums, and those of parts if the instruction itself
    sums 8-bit floats in fewer bits than f32 has and the sum is to be `exact` to these. A product
    that is `turned` holds fragments of B as well; its rows and columns are exchanged in `sizes`.
    """
    m, n, depth = sizes
    rows = wgmma_rows(form) if target.has_wgmma else []
    row = next((row for row in rows if row.accumulator == accumulator), None)
    groups = threads // WARPGROUP_THREADS
    if row is None or row.k > depth:
        return None
    if groups * WARPGROUP_THREADS != threads or groups & (groups - 1):
        return None
    along_m = min(groups, m // WARPGROUP_ROWS)
    if not along_m:
        return None
    along_n = groups // along_m
    in_parts = exact and form.a in SMALL_FLOATS and accumulator == "f32"
    columns = min(MAX_PART_COLUMNS if in_parts else MAX_COLUMNS, n // along_n)
    least = LEAST_ROW_BYTES * 8 // OPERAND_FORMS[form.b].bits if row.transposable else row.sizes[0]
    if columns < least:
        return None
    sums = m * row.accumulator_registers(n) * 2 // threads
    others = OTHER_REGISTERS + (row.accumulator_registers(columns) if in_parts else 0)
    if turned:
        others += min(MAX_HELD_REGISTERS, m // along_m * depth // WARPGROUP_THREADS)
    if sums > min(MAX_SUM_REGISTERS, registers - others):
        return None
    part = min(depth, MAX_PART_DEPTH) if in_parts else 0
    warps = WARPGROUP_WARPS * along_m, along_n
    return WarpgroupPiece(columns, row.k, accumulator, warps, part, turned)


def wmma_for(
    target: Chip, form: Form, accumulator: str, sizes: tuple[int, int, int]
) -> WmmaShape | None:
    """The squarest `wmma` of a chip whose pieces fill a tile of these sizes; None if none does."""
    m, n, k = sizes
    for row in WMMA_SHAPES:
        is_of_types = form.a == form.b == row.element and row.accumulator == accumulator
        fits = row.m <= m and row.n <= n and row.k <= k
        if is_of_types and fits and target.has(row.needs):
            return row
    return None


@lru_cache(maxsize=256)
def fault_of(made_of: Instruction, elements: tuple[str, str, str], warps: int) -> str | None:
    """What is wrong with an instruction, as one that is written by hand may be; None if nothing is.

    `elements` are the operands and the sum as instructions call them (`operand_name`); `warps` is
    a power of two.
    """
    forms_of = OPERAND_FORMS[made_of.a], OPERAND_FORMS[made_of.b]
    taken = (*(_WIDE.get(one.ptx, one.ptx) for one in forms_of), made_of.accumulator)
    if taken != elements:
        return f"it takes {', '.join(taken)} and is given {', '.join(elements)}"
    if made_of.turned and (made_of.name, made_of.a) != (WGMMA, "tf32"):
        return "only products of tf32 by wgmma are turned"
    if made_of.shape not in _shapes(made_of):
        return "there is none of this shape and these types"
    along_m, along_n = made_of.warps
    if along_m < 1 or along_m & (along_m - 1) or along_m * along_n != warps:
        return f"the CTA has {warps} warps, each axis a power of two of them"
    if made_of.name == WGMMA and along_m % WARPGROUP_WARPS:
        return f"the {WARPGROUP_WARPS} warps of a warpgroup are one below the other"
    is_summed = made_of.name == WGMMA and made_of.accumulator == "f32" and not made_of.turned
    if made_of.part and (not is_summed or made_of.part % made_of.shape[-1]):
        return "parts are those of wgmma that sums in f32, and multiples of its K"
    return None


_WIDE = {"tf32": "f32"}
"""What an instruction calls elements -> what they are before they are rounded."""


def _shapes(made_of: Instruction) -> list[tuple[int, int, int]]:
    """The shapes (M, N, K) that an instruction of these types can have, powers of two."""
    a, b, accumulator = made_of.a, made_of.b, made_of.accumulator
    match made_of.name:
        case "fma":
            return [(THREAD_EDGE, THREAD_EDGE, 1)]
        case "mma":
            rows = _rows(OPERAND_FORMS[a].ptx, OPERAND_FORMS[b].ptx, accumulator)
            return [(row.m, row.n, row.k) for row in rows]
        case "wmma":
            kinds = [row for row in WMMA_SHAPES if a == b == row.element]
            return [(row.m, row.n, row.k) for row in kinds if row.accumulator == accumulator]
        case _:
            found = [row for row in wgmma_rows(Form(a, b)) if row.accumulator == accumulator]
            sizes = [(row, n) for row in found for n in row.sizes if not n & (n - 1)]
            return [(WARPGROUP_ROWS, n, row.k) for row, n in sizes]
