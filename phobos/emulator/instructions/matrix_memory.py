"""`ldmatrix`, `stmatrix` and `movmatrix`: 8 x 8 matrices between shared memory and fragments.

Lane 8j + i gives the address of row i of matrix j, 16 bytes. Register j of lane l belongs to row
l / 4, columns 2 * (l % 4) and the next; transposed, to column l / 4 and those two rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phobos.emulator.decode import Operands, Step
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.instructions.warps import check_whole_warps
from phobos.emulator.memory.access import Access
from phobos.emulator.memory.dispatch import address_reader
from phobos.emulator.memory.spaces import SHARED
from phobos.emulator.types import B32, Selection
from phobos.emulator.wave import WARP, Wave

_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_ROWS = 8
_ROW_BYTES = 16
_ROW = np.arange(WARP) // 4
_COLUMN = 2 * (np.arange(WARP) % 4)


def _form(ops: Operands) -> tuple[int, bool]:
    """Number of matrices and whether they are transposed."""
    suffix = ops.instruction.suffix
    parts = [p for p in suffix if p not in ("sync", "aligned", "shared", "shared::cta", "trans")]
    if len(parts) != 3 or parts[0] != "m8n8" or parts[2] != "b16" or parts[1] not in _COUNTS:
        ops.refuse("takes the form .sync.aligned.m8n8.{x1,x2,x4}{.trans}{.shared}.b16")
    return _COUNTS[parts[1]], "trans" in suffix


def _lanes(threads: npt.NDArray[np.intp], matrix: int) -> npt.NDArray[np.intp]:
    """The threads that give the rows of one matrix, warp by warp."""
    return threads.reshape(-1, WARP)[:, 8 * matrix : 8 * matrix + _ROWS].reshape(-1)


def _fragment(matrix: npt.NDArray[np.uint16], *, transpose: bool) -> npt.NDArray[np.uint32]:
    """One register a lane from matrices [warp, row, column], flat over the warps."""
    if transpose:
        matrix = matrix.transpose(0, 2, 1)
    low = matrix[:, _ROW, _COLUMN].astype(np.uint32)
    high = matrix[:, _ROW, _COLUMN + 1].astype(np.uint32)
    return (low | (high << np.uint32(16))).reshape(-1)


def _matrix(registers: npt.NDArray[np.uint32], *, transpose: bool) -> npt.NDArray[np.uint16]:
    """Matrices [warp, row, column] from one register a lane."""
    lanes = registers.reshape(-1, WARP)
    matrix = np.empty((len(lanes), _ROWS, _ROWS), dtype=np.uint16)
    matrix[:, _ROW, _COLUMN] = lanes.astype(np.uint16)
    matrix[:, _ROW, _COLUMN + 1] = (lanes >> np.uint32(16)).astype(np.uint16)
    return matrix.transpose(0, 2, 1) if transpose else matrix


@decodes("ldmatrix")
def _ldmatrix(ops: Operands) -> Step:
    ops.expect_count(2)
    count, transpose = _form(ops)
    elements = ops.elements(ops.operand(0))
    if len(elements) != count:
        ops.refuse(f"loads {count} registers, got {len(elements)}")
    writers = [ops.writer(element, B32) for element in elements]
    read = address_reader(ops, 1)
    access = Access(ops, "reads", _ROW_BYTES, is_write=False)

    def step(wave: Wave, sel: Selection) -> None:
        check_whole_warps(ops, wave, sel)
        threads = wave.selected(sel)
        addresses = wave.spread(sel, read(wave, sel))
        results = []
        for matrix in range(count):
            lanes = _lanes(threads, matrix)
            store, index = SHARED.open(wave, lanes, addresses[lanes], access)
            words = index[:, None] // 2 + np.arange(_ROWS)
            rows = store.views[2][words].reshape(-1, _ROWS, _ROWS)
            results.append(_fragment(rows, transpose=transpose))
        for write, value in zip(writers, results, strict=True):
            write(wave, sel, value)

    return step


@decodes("stmatrix")
def _stmatrix(ops: Operands) -> Step:
    ops.expect_count(2)
    count, transpose = _form(ops)
    elements = ops.elements(ops.operand(1))
    if len(elements) != count:
        ops.refuse(f"stores {count} registers, got {len(elements)}")
    readers = [ops.reader(element, B32) for element in elements]
    read = address_reader(ops, 0)
    access = Access(ops, "writes", _ROW_BYTES, is_write=True, is_read=False)

    def step(wave: Wave, sel: Selection) -> None:
        check_whole_warps(ops, wave, sel)
        threads = wave.selected(sel)
        addresses = wave.spread(sel, read(wave, sel))
        for number, reader in enumerate(readers):
            values = np.broadcast_to(reader(wave, sel), threads.shape)
            rows = _matrix(values, transpose=transpose).reshape(-1, _ROWS)
            lanes = _lanes(threads, number)
            store, index = SHARED.open(wave, lanes, addresses[lanes], access)
            halves = np.ascontiguousarray(rows).view(np.uint64)
            store.store(index, 8, halves[:, 0], 0)
            store.store(index, 8, halves[:, 1], 1)
        wave.memory_version += 1

    return step


@decodes("movmatrix")
def _movmatrix(ops: Operands) -> Step:
    ops.expect_count(2)
    if ops.instruction.suffix != ("sync", "aligned", "m8n8", "trans", "b16"):
        ops.refuse("takes the form .sync.aligned.m8n8.trans.b16")
    write, read = ops.write(0, B32), ops.read(1, B32)

    def step(wave: Wave, sel: Selection) -> None:
        check_whole_warps(ops, wave, sel)
        values = np.broadcast_to(read(wave, sel), (wave.count(sel),))
        write(wave, sel, _fragment(_matrix(values, transpose=False), transpose=True))

    return step
