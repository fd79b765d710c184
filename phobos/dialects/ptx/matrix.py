"""Matrix fragments: mma, and the loads and stores that move fragments (PTX manual, warp-level
matrix instructions)."""

from __future__ import annotations

from dataclasses import dataclass

from phobos.dialects.ptx.forms import Form, Version
from phobos.dialects.ptx.instruction import Effect, Instruction


@dataclass(frozen=True, slots=True)
class MmaShape:
    """One row of the table of mma.sync: D = A * B + C with A of m x k and B of k x n.

    ``a``, ``b`` and ``accumulator`` are the types of the elements; the register counts are those
    of one lane. A is stored row by row and B column by column unless ``layouts`` says otherwise.
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    accumulator: str
    a_registers: int
    b_registers: int
    accumulator_registers: int
    needs: str | None = None
    since: Version = (6, 5)
    satfinite: bool = False
    tail: str = ""
    """What follows the types: how bits are combined."""
    layouts: str = "row.col"

    @property
    def name(self) -> str:
        """The shape as PTX spells it: ``m16n8k16``."""
        return f"m{self.m}n{self.n}k{self.k}"

    @property
    def suffix(self) -> str:
        """The suffix of the instruction, without ``.satfinite``."""
        types = f"{self.accumulator}.{self.a}.{self.b}.{self.accumulator}{self.tail}"
        return f"sync.aligned.{self.name}.{self.layouts}.{types}"

    def form(self) -> Form:
        """The row as a form."""
        pattern = self.suffix
        if self.satfinite:
            pattern = pattern.replace(self.layouts, f"{self.layouts}.satfinite?")
        register = "f64" if self.a == "f64" else "b32"
        accumulator = "b32" if self.accumulator == "f16" else self.accumulator
        only = "!" if self.accumulator == "f16" else ""
        total = f"{accumulator}{only}{{{self.accumulator_registers}}}"
        return Form(
            pattern,
            f"{total} = {register}!{{{self.a_registers}}}, "
            f"{register}!{{{self.b_registers}}}, {total}",
            self.needs,
            self.since,
        )


def _mma_rows() -> tuple[MmaShape, ...]:
    k16, fp8 = "has_mma_k16", "has_fp8"
    rows = [
        MmaShape(16, 8, 8, "f16", "f16", "f32", 2, 1, 4),
        MmaShape(16, 8, 8, "f16", "f16", "f16", 2, 1, 2),
        MmaShape(16, 8, 16, "f16", "f16", "f32", 4, 2, 4, k16, (7, 0)),
        MmaShape(16, 8, 16, "f16", "f16", "f16", 4, 2, 2, k16, (7, 0)),
        MmaShape(16, 8, 8, "bf16", "bf16", "f32", 2, 1, 4, k16, (7, 0)),
        MmaShape(16, 8, 16, "bf16", "bf16", "f32", 4, 2, 4, k16, (7, 0)),
        MmaShape(16, 8, 4, "tf32", "tf32", "f32", 2, 1, 4, k16, (7, 0)),
        MmaShape(16, 8, 8, "tf32", "tf32", "f32", 4, 2, 4, k16, (7, 0)),
        MmaShape(8, 8, 4, "f64", "f64", "f64", 1, 1, 2, "has_double_mma", (7, 0)),
        MmaShape(16, 8, 4, "f64", "f64", "f64", 2, 1, 4, "has_double_mma_m16", (7, 8)),
        MmaShape(16, 8, 8, "f64", "f64", "f64", 4, 2, 4, "has_double_mma_m16", (7, 8)),
        MmaShape(16, 8, 16, "f64", "f64", "f64", 8, 4, 4, "has_double_mma_m16", (7, 8)),
    ]
    for layouts in ("row.col", "row.row", "col.row", "col.col"):
        rows.append(MmaShape(8, 8, 4, "f16", "f16", "f32", 2, 2, 8, since=(6, 4), layouts=layouts))
    for a, b in (("s8", "s8"), ("s8", "u8"), ("u8", "s8"), ("u8", "u8")):
        rows += [
            MmaShape(8, 8, 16, a, b, "s32", 1, 1, 2, satfinite=True),
            MmaShape(16, 8, 16, a, b, "s32", 2, 1, 4, k16, (7, 0), satfinite=True),
            MmaShape(16, 8, 32, a, b, "s32", 4, 2, 4, k16, (7, 0), satfinite=True),
        ]
    for a, b in (("s4", "s4"), ("s4", "u4"), ("u4", "s4"), ("u4", "u4")):
        rows += [
            MmaShape(8, 8, 32, a, b, "s32", 1, 1, 2, satfinite=True),
            MmaShape(16, 8, 32, a, b, "s32", 2, 1, 4, k16, (7, 0), satfinite=True),
            MmaShape(16, 8, 64, a, b, "s32", 4, 2, 4, k16, (7, 0), satfinite=True),
        ]
    for a, b in (("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e5m2", "e5m2")):
        rows += [
            MmaShape(16, 8, 32, a, b, "f32", 4, 2, 4, fp8, (8, 4)),
            MmaShape(16, 8, 16, a, b, "f32", 2, 1, 4, fp8, (8, 7)),
            MmaShape(16, 8, 32, a, b, "f16", 4, 2, 2, fp8, (8, 7)),
            MmaShape(16, 8, 16, a, b, "f16", 2, 1, 2, fp8, (8, 7)),
        ]
    rows += [
        MmaShape(8, 8, 128, "b1", "b1", "s32", 1, 1, 2, since=(7, 0), tail=".xor.popc"),
        MmaShape(16, 8, 128, "b1", "b1", "s32", 2, 1, 4, k16, (7, 0), tail=".xor.popc"),
        MmaShape(16, 8, 256, "b1", "b1", "s32", 4, 2, 4, k16, (7, 0), tail=".xor.popc"),
        MmaShape(16, 8, 256, "b1", "b1", "s32", 4, 2, 4, k16, (7, 1), tail=".and.popc"),
    ]
    return tuple(rows)


MMA_SHAPES: tuple[MmaShape, ...] = _mma_rows()
"""All shapes and types of mma.sync."""


class MmaOp(Instruction):
    """D = A * B + C on fragments that the lanes of a warp hold together."""

    name = "ptx.mma"
    effect = Effect.CONVERGENT
    forms = tuple(row.form() for row in MMA_SHAPES)


class LdmatrixOp(Instruction):
    """Load 8x8 matrices of 16-bit elements; lane 8j + i gives the address of row i of matrix j."""

    name = "ptx.ldmatrix"
    effect = Effect.CONVERGENT
    forms = (
        Form("sync.aligned.m8n8.{x1|x2|x4}.trans?.shared.b16", "b32* = [shared]", since=(6, 5)),
    )


class StmatrixOp(Instruction):
    """Store 8x8 matrices of 16-bit elements, addressed like those of ldmatrix."""

    name = "ptx.stmatrix"
    effect = Effect.WRITE
    forms = (
        Form(
            "sync.aligned.m8n8.{x1|x2|x4}.trans?.shared.b16",
            "[shared], b32!*",
            "has_stmatrix",
            (7, 8),
        ),
    )


class MovmatrixOp(Instruction):
    """Transpose an 8x8 matrix of 16-bit elements that the lanes hold."""

    name = "ptx.movmatrix"
    effect = Effect.CONVERGENT
    forms = (Form("sync.aligned.m8n8.trans.b16", "b32 = b32!", since=(7, 8)),)


# wmma: fragments whose layout PTX does not tell ---------------------------------------------------

_LAYOUT = "{row|col}"
_SPACE = "{global|shared}?"
_HALF_SHAPES = "{m16n16k16|m32n8k16|m8n32k16}"


@dataclass(frozen=True, slots=True)
class WmmaShape:
    """One row of the table of wmma: shape, types, and the registers of A, B and accumulator."""

    m: int
    n: int
    k: int
    element: str
    accumulator: str
    registers: tuple[int, int, int]
    needs: str | None = None
    since: Version = (6, 3)

    @property
    def shape(self) -> str:
        """The shape as PTX spells it: ``m16n16k16``."""
        return f"m{self.m}n{self.n}k{self.k}"

    @property
    def register(self) -> str:
        """The class of the registers of a fragment."""
        return "b64" if self.element == "f64" else "b32"

    @property
    def types(self) -> str:
        """The types as wmma.mma spells them: D and C alone for f16 factors."""
        if self.element == "f16":
            return f"{self.accumulator}.{self.accumulator}"
        return f"{self.accumulator}.{self.element}.{self.element}.{self.accumulator}"


_BY_SHAPE = (
    WmmaShape(16, 16, 16, "bf16", "f32", (4, 4, 8), "has_mma_k16", (7, 0)),
    WmmaShape(32, 8, 16, "bf16", "f32", (8, 2, 8), "has_mma_k16", (7, 0)),
    WmmaShape(8, 32, 16, "bf16", "f32", (2, 8, 8), "has_mma_k16", (7, 0)),
    WmmaShape(16, 16, 8, "tf32", "f32", (4, 4, 8), "has_mma_k16", (7, 0)),
    *(
        WmmaShape(m, n, 16, element, "s32", registers)
        for element in ("s8", "u8")
        for m, n, registers in ((16, 16, (2, 2, 8)), (32, 8, (4, 1, 8)), (8, 32, (1, 4, 8)))
    ),
    WmmaShape(8, 8, 4, "f64", "f64", (1, 1, 2), "has_double_mma", (7, 0)),
)
"""Types whose fragments differ in size with the shape; f16 fragments do not."""

WMMA_SHAPES: tuple[WmmaShape, ...] = (
    *(
        WmmaShape(m, n, 16, "f16", total, (8, 8, registers))
        for total, registers in (("f32", 8), ("f16", 4))
        for m, n in ((16, 16), (32, 8), (8, 32))
    ),
    *_BY_SHAPE,
)
"""Shapes and types of wmma, the squarest of a type first."""


def _wmma_load_forms() -> tuple[Form, ...]:
    forms = [
        Form(f"{{a|b}}.sync.aligned.{_LAYOUT}.{_HALF_SHAPES}.{_SPACE}.f16", "b32{8} = [], u32"),
    ]
    for row in _BY_SHAPE:
        for operand, registers in zip("ab", row.registers[:2], strict=True):
            forms.append(
                Form(
                    f"{operand}.sync.aligned.{_LAYOUT}.{row.shape}.{_SPACE}.{row.element}",
                    f"{row.register}{{{registers}}} = [], u32",
                    row.needs,
                    row.since,
                )
            )
    forms += [
        Form(
            f"c.sync.aligned.{_LAYOUT}.{shape}.{_SPACE}.{kind}", f"{count} = [], u32", needs, since
        )
        for shape, kind, count, needs, since in _WMMA_ACCUMULATORS
    ]
    return tuple(forms)


_WMMA_ACCUMULATORS: tuple[tuple[str, str, str, str | None, Version], ...] = (
    (_HALF_SHAPES, "{f32|s32}", "b32{8}", None, (6, 3)),
    (_HALF_SHAPES, "f16", "b32{4}", None, (6, 3)),
    ("m16n16k8", "f32", "b32{8}", "has_mma_k16", (7, 0)),
    ("m8n8k4", "f64", "b64{2}", "has_double_mma", (7, 0)),
)


class WmmaLoadOp(Instruction):
    """Load a fragment of A, B or C: address of element (0, 0), stride in elements."""

    name = "ptx.wmma.load"
    effect = Effect.CONVERGENT
    forms = _wmma_load_forms()


class WmmaStoreOp(Instruction):
    """Store a fragment of D: address of element (0, 0), registers, stride in elements."""

    name = "ptx.wmma.store"
    effect = Effect.WRITE
    forms = tuple(
        Form(
            f"d.sync.aligned.{_LAYOUT}.{shape}.{_SPACE}.{kind}",
            f"[], {count.replace('{', '!{')}, u32",
            needs,
            since,
        )
        for shape, kind, count, needs, since in _WMMA_ACCUMULATORS
    )


def _wmma_mma_forms() -> tuple[Form, ...]:
    head = f"sync.aligned.{_LAYOUT}.{_LAYOUT}"
    registers = {"f32": "b32!{8}", "f16": "b32!{4}"}
    forms = [
        Form(
            f"{head}.{_HALF_SHAPES}.{d}.{c}",
            f"{registers[d]} = b32!{{8}}, b32!{{8}}, {registers[c]}",
        )
        for d in registers
        for c in registers
    ]
    for row in _BY_SHAPE:
        a, b, c = (f"{row.register}!{{{count}}}" for count in row.registers)
        satfinite = ".satfinite?" if row.accumulator == "s32" else ""
        forms.append(
            Form(
                f"{head}.{row.shape}.{row.types}{satfinite}",
                f"{c} = {a}, {b}, {c}",
                row.needs,
                row.since,
            )
        )
    return tuple(forms)


class WmmaMmaOp(Instruction):
    """D = A * B + C on fragments loaded with wmma.load."""

    name = "ptx.wmma.mma"
    effect = Effect.CONVERGENT
    forms = _wmma_mma_forms()
