"""Registers of whole warps: what instructions on matrices read and write."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from phobos.emulator.decode import Operands, Reader, Writer
from phobos.emulator.errors import FindingKind
from phobos.emulator.types import Selection
from phobos.emulator.warpgroup import WARPGROUP
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


def check_whole_warpgroups(ops: Operands, wave: Wave, sel: Selection) -> npt.NDArray[np.intp]:
    """The selected threads, shaped [warpgroup, 128]; raises unless all warpgroups are whole."""
    threads = wave.selected(sel)
    size = wave.geometry.padded
    if len(threads) % WARPGROUP == 0:
        groups = threads.reshape(-1, WARPGROUP)
        starts, ends = groups[:, 0], groups[:, -1]
        aligned = (starts % size % WARPGROUP == 0) & (ends - starts == WARPGROUP - 1)
        if (aligned & (starts // size == ends // size)).all():
            return groups
    counts = np.bincount(wave.warpgroup[threads])
    group = int(np.argmax((counts > 0) & (counts < WARPGROUP)))
    mine = threads[wave.warpgroup[threads] == group]
    absent = np.setdiff1d(np.arange(WARPGROUP), mine % size % WARPGROUP)
    warps, lanes = np.unique(absent // WARP, return_counts=True)
    warp, lane = int(warps[0]), int(absent[0]) % WARP
    who = f"warp {warp}" if lanes[0] == WARP else f"lane {lane} of warp {warp}"
    ops.report(
        FindingKind.DIVERGENCE,
        wave,
        int(mine[0]),
        f"executes `{ops.instruction.mnemonic}` without {who} of its warpgroup",
        help="a warpgroup is four whole warps of a CTA, the first a multiple of four",
    )
