"""Registers of whole warps: what instructions on matrices read and write."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from phobos.emulator.decode import Operands, Reader, Writer
from phobos.emulator.errors import FindingKind
from phobos.emulator.types import Selection
from phobos.emulator.wave import WARP, Wave


def read_warps(wave: Wave, sel: Selection, readers: Sequence[Reader]) -> npt.NDArray:
    """Registers of whole warps, shaped [warp, lane, register]."""
    count = wave.count(sel)
    columns = [np.broadcast_to(read(wave, sel), (count,)) for read in readers]
    return np.stack(columns, axis=-1).reshape(-1, WARP, len(readers))


def write_warps(
    wave: Wave, sel: Selection, writers: Sequence[Writer], registers: npt.NDArray
) -> None:
    """Write registers shaped [warp, lane, register]."""
    flat = registers.reshape(-1, len(writers))
    for place, write in enumerate(writers):
        write(wave, sel, np.ascontiguousarray(flat[:, place]))


def check_whole_warps(ops: Operands, wave: Wave, sel: Selection) -> None:
    """Raise unless all 32 lanes of every selected warp take part."""
    if sel is None:
        return
    if len(sel) % WARP == 0 and (np.diff(sel.reshape(-1, WARP), axis=1) == 1).all():
        return
    missing = np.setdiff1d((np.unique(sel // WARP)[:, None] * WARP + np.arange(WARP)), sel)
    mates = sel[sel // WARP == missing[0] // WARP]
    ops.report(
        FindingKind.DIVERGENCE,
        wave,
        int(mates[0]),
        f"executes `{ops.instruction.mnemonic}` without lane {int(missing[0]) % WARP} of its warp",
    )
