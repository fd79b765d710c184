"""Instruction forms and operands for comparing the emulator with a GPU, or with a reference.

A form is a line of PTX with `{d}` for the result and `{a}`, `{b}`, ... for the operands; `{g}` is
the address of 8 bytes of global memory of the thread's own, `{s}` of 16 bytes of shared memory. The
kernels of all forms make one module; each thread loads its operands, runs the line and stores
the result. Operands are drawn by a fixed integer hash, so that a GPU and the emulator see the same.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

COUNT = 10_240
"""Operand tuples a form: whole CTAs, for the forms in which threads meet."""

THREADS = 256
"""Threads of a CTA."""

APPROXIMATE = 4000
"""Results that are kept of an approximate form."""

_BITS = {"pred": 32, "f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32, "tf32": 32}


def bits_of(kind: str) -> int:
    """Width of a type's register."""
    if kind in _BITS:
        return _BITS[kind]
    if kind.endswith("x2"):
        return 16
    return int("".join(c for c in kind if c.isdigit()))


_GUARD = re.compile(r"^@!?%p\d+ ")
_SUBJECTS = frozenset(
    {
        "atom",
        "red",
        "ldmatrix",
        "stmatrix",
        "movmatrix",
        "cp",
        "shfl",
        "vote",
        "match",
        "redux",
        "elect",
    }
)


@dataclass(frozen=True)
class Form:
    """One form. Approximate ones need not be equal bit for bit.

    Types of operands decide how they are drawn; `pred` operands become predicates.
    """

    line: str
    result: str
    operands: tuple[str, ...]
    is_exact: bool = True

    @property
    def opcode(self) -> str:
        """The instruction that the form is about: the last, unless others only frame it."""
        parts = [_GUARD.sub("", part) for part in self.line.split("; ")]
        words = [part.split(".")[0].split(" ")[0] for part in parts]
        return next((word for word in words if word in _SUBJECTS), words[-1])


# Operands ----------------------------------------------------------------------------------------

_FLOATS = {
    "f16": (5, 10),
    "bf16": (8, 7),
    "f32": (8, 23),
    "tf32": (8, 23),
    "f64": (11, 52),
    "e4m3": (4, 3),
    "e5m2": (5, 2),
}


def _hash(count: int, seed: int) -> np.ndarray:
    """Uniform 64-bit words (splitmix64)."""
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = z + np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _float_specials(kind: str) -> list[int]:
    exponent, mantissa = _FLOATS[kind]
    bias, top = (1 << (exponent - 1)) - 1, (1 << exponent) - 1
    one = bias << mantissa
    magnitudes = [
        0,
        1,
        2,
        (1 << mantissa) - 1,
        1 << mantissa,
        (1 << mantissa) + 1,
        one,
        one - 1,
        one + 1,
        one + (1 << (mantissa - 1)),
        one - (1 << mantissa),
        one + (1 << mantissa),
        one + (3 << (mantissa - 1)),
        (top << mantissa) - 1,
        top << mantissa,
        (top << mantissa) + 1,
        (top << mantissa) | (1 << (mantissa - 1)),
        (1 << (exponent + mantissa)) - 1,
        (bias + min(31, bias)) << mantissa,
        (bias + min(63, bias)) << mantissa,
        (bias + min(8, bias)) << mantissa,
        ((bias + min(7, bias)) << mantissa) | 1,
    ]
    sign = 1 << (exponent + mantissa)
    return magnitudes + [m | sign for m in magnitudes]


def _integer_specials(bits: int) -> list[int]:
    top = 1 << (bits - 1)
    values = [
        0,
        1,
        2,
        3,
        7,
        8,
        15,
        16,
        31,
        32,
        33,
        63,
        64,
        127,
        128,
        255,
        256,
        top - 1,
        top,
        top + 1,
        -1,
        -2,
        -3,
        -8,
        0x5555555555555555,
        0xAAAAAAAAAAAAAAAA,
        0x0102040810204080,
    ]
    return [v & ((1 << bits) - 1) for v in values]


def _element(kind: str, count: int, seed: int) -> np.ndarray:
    """Bit patterns of one element type, as uint64."""
    words, picks = _hash(count, 2 * seed), _hash(count, 2 * seed + 1)
    bits = 8 if kind in ("e4m3", "e5m2") else bits_of(kind)
    mask = np.uint64((1 << bits) - 1)
    is_float = kind in _FLOATS
    specials = _float_specials(kind) if is_float else _integer_specials(bits)
    table = np.array(specials, dtype=np.uint64)
    special = table[(picks >> np.uint64(8)) % np.uint64(len(table))]
    middle = _moderate(kind, words, bits)
    which = picks & np.uint64(7)
    result = np.where(which < 3, special, np.where(which < 5, middle, words))
    return result & mask


def _moderate(kind: str, words: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of middling size: floats with exponents near 0, small integers."""
    if kind not in _FLOATS:
        small = words & np.uint64(0x3FF)
        return np.where(words >> np.uint64(63) != 0, np.uint64(0) - small, small)
    exponent, mantissa = _FLOATS[kind]
    bias = (1 << (exponent - 1)) - 1
    span = min(16, 2 * bias - 2)
    power = (words >> np.uint64(53)) % np.uint64(span) + np.uint64(bias - span // 2)
    fraction = words & np.uint64((1 << mantissa) - 1)
    sign = (words >> np.uint64(52)) & np.uint64(1)
    return fraction | (power << np.uint64(mantissa)) | (sign << np.uint64(bits - 1))


def operand(kind: str, count: int, seed: int) -> np.ndarray:
    """Bit patterns of `count` operands, in an unsigned type of the register's width."""
    dtype = np.dtype(f"u{bits_of(kind) // 8}")
    if kind == "pred":
        return (_hash(count, seed) & np.uint64(1)).astype(dtype)
    if kind.endswith("x2") and kind != "f32x2":
        element = kind[:-2]
        half = bits_of(kind) // 2
        low, high = _element(element, count, 2 * seed), _element(element, count, 2 * seed + 1)
        return (low | (high << np.uint64(half))).astype(dtype)
    return _element(kind, count, seed).astype(dtype)


def result_array(form: Form, count: int = COUNT) -> np.ndarray:
    """Room for the results of a form; the second half is 8 bytes of each thread's own."""
    size = bits_of(form.result) // 8
    return np.zeros(16 * count // size, dtype=f"u{size}")


def operands_of(form: Form, count: int = COUNT) -> list[np.ndarray]:
    """All operands of a form."""
    seed = zlib.crc32(form.line.encode()) & 0xFFFF
    return [operand(kind, count, seed + 7 * i) for i, kind in enumerate(form.operands)]


def digest(result: np.ndarray) -> str:
    """What is recorded of the results of an exact form."""
    return hashlib.sha256(result.tobytes()).hexdigest()[:24]


# Kernels -----------------------------------------------------------------------------------------

_REGISTERS = {8: "%c", 16: "%h", 32: "%r", 64: "%l"}


def kernel_text(form: Form, name: str) -> str:
    """The kernel of a form: parameters are one pointer an operand, then the result's."""
    names = "abcefg"[: len(form.operands)]
    parameters = ", ".join(f".param .u64 p_{n}" for n in (*names, "d"))
    lines = [
        f".visible .entry {name}({parameters}, .param .u32 n)",
        "{",
        ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<16>,%m<8>; .reg .b64 %l<32>;",
        f".shared .align 16 .b8 s[{16 * THREADS}];",
        "mov.u32 %r10,%ctaid.x; mov.u32 %r11,%ntid.x; mov.u32 %r12,%tid.x;",
        "mad.lo.u32 %r10,%r10,%r11,%r12; ld.param.u32 %r11,[n];",
        "setp.ge.u32 %p8,%r10,%r11; @%p8 bra DONE;",
        "mov.u32 %r13,s; mad.lo.u32 %r13,%r12,16,%r13; ld.param.u64 %l24,[p_d];",
        "cvta.to.global.u64 %l24,%l24; add.u32 %r14,%r10,%r11; mul.wide.u32 %l25,%r14,8;",
        "add.u64 %l24,%l24,%l25;",
    ]
    fields: dict[str, str] = {"g": "%l24", "s": "%r13"}
    for i, (letter, kind) in enumerate(zip(names, form.operands, strict=True)):
        fields[letter] = _load(lines, letter, kind, i)
    width = bits_of(form.result)
    fields["d"] = "%p7" if form.result == "pred" else f"{_REGISTERS[width]}8"
    lines.append(form.line.format(**fields) + ";")
    stored = fields["d"]
    if form.result == "pred":
        lines.append("selp.u32 %r8,1,0,%p7;")
        stored = "%r8"
    lines.append(_address("d", width) + f" st.global.b{width} [%l20],{stored};")
    lines += ["DONE: ret;", "}"]
    return "\n".join(lines)


def _address(letter: str, width: int) -> str:
    return (
        f"ld.param.u64 %l20,[p_{letter}]; cvta.to.global.u64 %l20,%l20; "
        f"mul.wide.u32 %l21,%r10,{width // 8}; add.u64 %l20,%l20,%l21;"
    )


def _load(lines: list[str], letter: str, kind: str, index: int) -> str:
    width = bits_of(kind)
    register = f"{_REGISTERS[max(width, 16)]}{index}"
    lines.append(_address(letter, width) + f" ld.global.b{width} {register},[%l20];")
    if kind == "pred":
        lines.append(f"setp.ne.u32 %p{index},{register},0;")
        return f"%p{index}"
    return register


def module_text(forms: Sequence[Form], target: str = "sm_90", version: str = "8.1") -> str:
    """One module with kernels `form_0`, `form_1`, ..."""
    header = f".version {version}\n.target {target}\n.address_size 64\n"
    return header + "\n".join(kernel_text(form, f"form_{i}") for i, form in enumerate(forms))
