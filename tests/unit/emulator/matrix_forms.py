"""Forms of `mma.sync` for comparing the emulator with a GPU: fragments in, fragments out."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.unit.emulator.forms import _element, _hash

WARPS = 128
"""Warps a form, each with operands of its own."""

WARP = 32


@dataclass(frozen=True)
class MatrixForm:
    """One form: its suffix behind `mma.sync.aligned`, and the types and registers of D, A, B, C.

    Registers are counted in 32 bits, or in 64 where the type is f64.
    """

    suffix: str
    types: tuple[str, str, str, str]
    registers: tuple[int, int, int, int]

    @property
    def is_exact(self) -> bool:
        """Whether results must agree bit for bit: the recording chip emulates the oldest shape."""
        return not (self.suffix.startswith("m8n8k4") and self.types[1] == "f16")

    @property
    def is_wide(self) -> bool:
        """Whether registers have 64 bits."""
        return self.types[0] == "f64"


def _forms() -> list[MatrixForm]:
    found: list[MatrixForm] = []

    def add(
        shape: str,
        d: str,
        a: str,
        b: str,
        registers: tuple[int, int, int, int],
        tail: str = "",
        middle: str = "",
    ) -> None:
        suffix = f"{shape}.row.col{middle}.{d}.{a}.{b}.{d}{tail}"
        found.append(MatrixForm(suffix, (d, a, b, d), registers))

    add("m16n8k8", "f32", "f16", "f16", (4, 2, 1, 4))
    add("m16n8k8", "f16", "f16", "f16", (2, 2, 1, 2))
    add("m16n8k16", "f32", "f16", "f16", (4, 4, 2, 4))
    add("m16n8k16", "f16", "f16", "f16", (2, 4, 2, 2))
    add("m16n8k8", "f32", "bf16", "bf16", (4, 2, 1, 4))
    add("m16n8k16", "f32", "bf16", "bf16", (4, 4, 2, 4))
    add("m16n8k4", "f32", "tf32", "tf32", (4, 2, 1, 4))
    add("m16n8k8", "f32", "tf32", "tf32", (4, 4, 2, 4))
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            add("m8n8k16", "s32", a, b, (2, 1, 1, 2))
            add("m16n8k16", "s32", a, b, (4, 2, 1, 4))
            add("m16n8k32", "s32", a, b, (4, 4, 2, 4))
    add("m16n8k32", "s32", "s8", "s8", (4, 4, 2, 4), middle=".satfinite")
    for a in ("s4", "u4"):
        for b in ("s4", "u4"):
            add("m8n8k32", "s32", a, b, (2, 1, 1, 2))
            add("m16n8k32", "s32", a, b, (4, 2, 1, 4))
            add("m16n8k64", "s32", a, b, (4, 4, 2, 4))
    for operation in ("xor", "and"):
        add("m8n8k128", "s32", "b1", "b1", (2, 1, 1, 2), f".{operation}.popc")
        add("m16n8k128", "s32", "b1", "b1", (4, 2, 1, 4), f".{operation}.popc")
        add("m16n8k256", "s32", "b1", "b1", (4, 4, 2, 4), f".{operation}.popc")
    add("m8n8k4", "f64", "f64", "f64", (2, 1, 1, 2))
    add("m16n8k4", "f64", "f64", "f64", (4, 2, 1, 4))
    add("m16n8k8", "f64", "f64", "f64", (4, 4, 2, 4))
    add("m16n8k16", "f64", "f64", "f64", (4, 8, 4, 4))
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            add("m16n8k32", "f32", a, b, (4, 4, 2, 4))
    add("m16n8k16", "f32", "e4m3", "e4m3", (4, 2, 1, 4))
    add("m16n8k32", "f16", "e4m3", "e5m2", (2, 4, 2, 2))
    for row, column in (("row", "col"), ("row", "row"), ("col", "col"), ("col", "row")):
        suffix = f"m8n8k4.{row}.{column}.f32.f16.f16.f32"
        found.append(MatrixForm(suffix, ("f32", "f16", "f16", "f32"), (8, 2, 2, 8)))
    return found


MATRIX_FORMS = _forms()


def float_words(kind: str, count: int, seed: int) -> np.ndarray:
    """Bit patterns of floats, mostly of middling size so that sums cancel and lose bits."""
    words, picks = _hash(count, 31 * seed + 5), _hash(count, 31 * seed + 6)
    middle = _element(kind, count, seed)
    exponent, mantissa, bits = {
        "f16": (5, 10, 16),
        "bf16": (8, 7, 16),
        "tf32": (8, 23, 32),
        "f32": (8, 23, 32),
        "f64": (11, 52, 64),
        "e4m3": (4, 3, 8),
        "e5m2": (5, 2, 8),
    }[kind]
    bias = (1 << (exponent - 1)) - 1
    span = min(10, 2 * bias - 2)
    power = (words >> np.uint64(53)) % np.uint64(span) + np.uint64(bias - span // 2)
    fraction = words & np.uint64((1 << mantissa) - 1)
    sign = (words >> np.uint64(52)) & np.uint64(1)
    ordinary = fraction | (power << np.uint64(mantissa)) | (sign << np.uint64(bits - 1))
    return np.where(picks % np.uint64(97) == 0, middle, ordinary)


def fragment(kind: str, registers: int, seed: int) -> np.ndarray:
    """Registers of a fragment for all warps, shaped [warp, register, lane]."""
    wide = kind == "f64"
    dtype = np.dtype(np.uint64 if wide else np.uint32)
    count = WARPS * registers * WARP
    shape = (WARPS, registers, WARP)
    if kind in ("f32", "tf32", "f64"):
        return float_words(kind, count, seed).astype(dtype).reshape(shape)
    if kind in ("f16", "bf16", "e4m3", "e5m2"):
        bits = 16 if kind.endswith("16") else 8
        packed = 32 // bits
        elements = float_words(kind, count * packed, seed).reshape(-1, packed)
        shifts = np.arange(packed, dtype=np.uint64) * np.uint64(bits)
        return (elements << shifts).sum(axis=1, dtype=np.uint64).astype(dtype).reshape(shape)
    return _hash(count, seed).astype(dtype).reshape(shape)


def fragments_of(form: MatrixForm) -> list[np.ndarray]:
    """The fragments of A, B and C."""
    seed = zlib.crc32(form.suffix.encode()) & 0xFFFF
    return [
        fragment(kind, registers, seed + 11 * i)
        for i, (kind, registers) in enumerate(zip(form.types[1:], form.registers[1:], strict=True))
    ]


def matrix_kernel(form: MatrixForm, name: str) -> str:
    """One warp a CTA: load the fragments, multiply, store D."""
    width = 64 if form.is_wide else 32
    size = width // 8
    lines = [
        f".visible .entry {name}(.param .u64 p_a, .param .u64 p_b, .param .u64 p_c, "
        ".param .u64 p_d, .param .u32 n)",
        f"{{ .reg .b32 %i<9>; .reg .b64 %l<9>; .reg .b{width} %x<64>;",
        "mov.u32 %i1,%ctaid.x; mov.u32 %i2,%tid.x;",
    ]
    vectors = []
    start = 0
    for letter, registers in zip("dabc", form.registers, strict=True):
        names = [f"%x{start + i}" for i in range(registers)]
        start += registers
        vectors.append("{" + ",".join(names) + "}")
        if letter != "d":
            lines.append(_pointer(letter, registers, size))
            lines += [f"ld.global.b{width} {n},[%l1+{i * 32 * size}];" for i, n in enumerate(names)]
    lines.append(f"mma.sync.aligned.{form.suffix} {', '.join(vectors)};")
    lines.append(_pointer("d", form.registers[0], size))
    lines += [f"st.global.b{width} [%l1+{i * 32 * size}],%x{i};" for i in range(form.registers[0])]
    return "\n".join([*lines, "ret; }"])


def _pointer(letter: str, registers: int, size: int) -> str:
    return (
        f"ld.param.u64 %l1,[p_{letter}]; cvta.to.global.u64 %l1,%l1; "
        f"mad.lo.u32 %i3,%i1,{registers * 32},%i2; mul.wide.u32 %l2,%i3,{size}; "
        "add.u64 %l1,%l1,%l2;"
    )


def matrix_module(forms: Sequence[MatrixForm]) -> str:
    """One module with kernels `matrix_0`, `matrix_1`, ..."""
    header = ".version 8.7\n.target sm_90\n.address_size 64\n"
    return header + "\n".join(matrix_kernel(f, f"matrix_{i}") for i, f in enumerate(forms))
