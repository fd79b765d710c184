"""`mma.sync` with a kind: 8-, 6- and 4-bit floats, plain or with scales for blocks along k.

In `f8f6f4` kinds every element has a byte: 6-bit ones in its low bits, 4-bit ones in bits 5 to 2.
In `mxf4` kinds 4-bit elements are packed. A scale register holds up to four scales, a byte each;
the byte selector says which are meant, the thread selector which lanes of each group of four give
them: lanes 2t and 2t + 1 for rows g and g + 8 of A, lane t for column g of B.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phobos.emulator.arithmetic.conversions import decode_scale
from phobos.emulator.arithmetic.formats import FORMATS, decode
from phobos.emulator.decode import Operands, Reader, Step
from phobos.emulator.instructions.warps import check_whole_warps, read_warps, write_warps
from phobos.emulator.tensor import products
from phobos.emulator.tensor.elements import pack, unpack
from phobos.emulator.tensor.fragments import fragment_a, fragment_b, fragment_c
from phobos.emulator.types import B32, U16, Selection
from phobos.emulator.wave import WARP, Wave
from phobos.targets.ptx.parse.records import Vector

_BYTE_TYPES = frozenset({"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"})
_ROWS, _COLUMNS = 16, 8


@dataclass(frozen=True)
class _Kind:
    """What one kind takes: types, depth, elements of a register and lengths of scaled blocks."""

    types: frozenset[str]
    depth: int
    per_register: int
    blocks: Mapping[str, int]


_KINDS: Mapping[str, _Kind] = {
    "kind::f8f6f4": _Kind(_BYTE_TYPES, 32, 4, {}),
    "kind::mxf8f6f4": _Kind(_BYTE_TYPES, 32, 4, {"1X": 1}),
    "kind::mxf4": _Kind(frozenset({"e2m1"}), 64, 8, {"2X": 2}),
    "kind::mxf4nvf4": _Kind(frozenset({"e2m1"}), 64, 8, {"2X": 2, "4X": 4}),
}
_SCALE_TYPES = frozenset({"ue8m0", "ue4m3"})


@dataclass(frozen=True)
class _Form:
    kind: _Kind
    a: str
    b: str
    accumulator: str
    blocks: int
    scale: str


def _form(ops: Operands) -> _Form:
    suffix = ops.instruction.suffix
    name = next(part for part in suffix if part.startswith("kind::"))
    kind = _KINDS.get(name)
    if kind is None:
        ops.refuse(f"`.{name}` is not supported")
    types = [part for part in suffix if part in _BYTE_TYPES]
    results = [part for part in suffix if part in ("f16", "f32")]
    if len(types) != 2 or not set(types) <= kind.types or len(set(results)) != 1:
        ops.refuse("needs two element types of its kind and one type for C and D")
    if f"m16n8k{kind.depth}" not in suffix:
        ops.refuse(f"has the shape .m16n8k{kind.depth} only")
    blocks, scale = 0, ""
    if "block_scale" in suffix:
        vector = next((p.removeprefix("scale_vec::") for p in suffix if "scale_vec" in p), None)
        blocks = kind.blocks.get(vector or next(iter(kind.blocks), ""), 0)
        scale = next((part for part in suffix if part in _SCALE_TYPES), "")
        if not blocks or not scale:
            ops.refuse("needs a scale vector and a scale type of its kind")
    return _Form(kind, types[0], types[1], results[0], blocks, scale)


def decode_kind(ops: Operands) -> Step:
    """The step of an `mma` with a kind."""
    form = _form(ops)
    ops.expect_count(8 if form.blocks else 4)
    kind = form.kind
    result = fragment_c(_ROWS)
    left = fragment_a(_ROWS, kind.depth, kind.per_register)
    right = fragment_b(_COLUMNS, kind.depth, kind.per_register)
    per_result = 2 if form.accumulator == "f16" else 1
    counts = [
        result.elements // per_result,
        left.elements // kind.per_register,
        right.elements // kind.per_register,
        result.elements // per_result,
    ]
    vectors = []
    for index, count in enumerate(counts):
        elements = ops.elements(ops.operand(index))
        if len(elements) != count:
            ops.refuse(f"{'DABC'[index]} takes {count} registers, got {len(elements)}")
        vectors.append(elements)
    writers = [ops.writer(element, B32) for element in vectors[0]]
    readers = [[ops.reader(element, B32) for element in vector] for vector in vectors[1:]]
    scales = _Scales(ops, form) if form.blocks else None

    def step(wave: Wave, sel: Selection) -> None:
        check_whole_warps(ops, wave, sel)
        a = left.gather(_numbers(read_warps(wave, sel, readers[0]), form.a, kind))
        b = right.gather(_numbers(read_warps(wave, sel, readers[1]), form.b, kind))
        c = result.gather(unpack(read_warps(wave, sel, readers[2]), form.accumulator))
        if scales is not None:
            a = a * scales.of_rows(wave, sel)
            b = b * scales.of_columns(wave, sel)
        product = products.multiply_floats(a, b, c, form.accumulator)
        write_warps(wave, sel, writers, pack(result.scatter(product), form.accumulator))

    return step


def _numbers(registers: npt.NDArray, element: str, kind: _Kind) -> npt.NDArray:
    """Elements [warp, lane, element] as float64."""
    bits = 32 // kind.per_register
    shifts = np.arange(kind.per_register, dtype=np.uint32) * np.uint32(bits)
    fields = (registers[..., None] >> shifts) & np.uint32((1 << bits) - 1)
    fields = fields.reshape(*registers.shape[:2], -1)
    if element == "e2m1" and bits == 8:
        fields = fields >> np.uint32(2)
    return decode(fields, FORMATS[element])


class _Scales:
    """The scale operands `sA, {byte, thread}, sB, {byte, thread}`."""

    def __init__(self, ops: Operands, form: _Form) -> None:
        self._form = form
        self._a, self._byte_a, self._thread_a = self._operands(ops, 4)
        self._b, self._byte_b, self._thread_b = self._operands(ops, 6)

    def _operands(self, ops: Operands, index: int) -> tuple[Reader, Reader, Reader]:
        register = ops.elements(ops.operand(index))
        selector = ops.operand(index + 1)
        if len(register) != 1 or not isinstance(selector, Vector) or len(selector.elements) != 2:
            ops.refuse("takes a scale register and {byte, thread} behind it")
        byte, thread = (ops.reader(element, U16) for element in selector.elements)
        return ops.reader(register[0], B32), byte, thread

    def of_rows(self, wave: Wave, sel: Selection) -> npt.NDArray:
        """The scale of every element of A, shaped [warp, row, k]."""
        row = np.arange(_ROWS)
        lanes = 4 * (row % 8) + row // 8
        registers, byte, thread = self._read(wave, sel, self._a, self._byte_a, self._thread_a)
        chosen = np.take_along_axis(registers, lanes + 2 * thread, axis=1)
        return self._expand(chosen, byte)

    def of_columns(self, wave: Wave, sel: Selection) -> npt.NDArray:
        """The scale of every element of B, shaped [warp, k, column]."""
        lanes = 4 * np.arange(_COLUMNS)
        registers, byte, thread = self._read(wave, sel, self._b, self._byte_b, self._thread_b)
        chosen = np.take_along_axis(registers, lanes + thread, axis=1)
        return self._expand(chosen, byte).transpose(0, 2, 1)

    def _read(
        self, wave: Wave, sel: Selection, register: Reader, byte: Reader, thread: Reader
    ) -> tuple[npt.NDArray, npt.NDArray, npt.NDArray]:
        """Registers [warp, lane], and both selectors, which are the same over a warp."""
        count = wave.count(sel)
        registers = np.broadcast_to(register(wave, sel), (count,)).reshape(-1, WARP)
        bytes_, threads = (
            np.broadcast_to(read(wave, sel), (count,)).reshape(-1, WARP)[:, :1].astype(np.int64)
            for read in (byte, thread)
        )
        return registers, bytes_, threads

    def _expand(self, chosen: npt.NDArray, byte: npt.NDArray) -> npt.NDArray:
        """Scales [warp, row, k] from one register a row and the first byte that counts."""
        form = self._form
        places = (byte[:, :, None] + np.arange(form.blocks)) % 4
        patterns = (chosen[:, :, None] >> (8 * places).astype(np.uint32)) & np.uint32(0xFF)
        if form.scale == "ue8m0":
            values = decode_scale(patterns)
        else:
            values = decode(patterns & np.uint32(0x7F), FORMATS["e4m3"])
        return np.repeat(values, form.kind.depth // form.blocks, axis=2)
