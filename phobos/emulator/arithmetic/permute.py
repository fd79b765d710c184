"""`prmt`: bytes picked from two words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phobos.emulator.types import Value

PERMUTE_MODES: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "": (),
    "f4e": tuple((n, n + 1, n + 2, n + 3) for n in range(4)),
    "b4e": tuple((n, (n - 1) % 8, (n - 2) % 8, (n - 3) % 8) for n in range(4)),
    "rc8": tuple((n, n, n, n) for n in range(4)),
    "ecl": tuple((max(n, 0), max(n, 1), max(n, 2), 3) for n in range(4)),
    "ecr": tuple((0, min(n, 1), min(n, 2), n) for n in range(4)),
    "rc16": tuple((2 * (n & 1), 2 * (n & 1) + 1) * 2 for n in range(4)),
}
"""Source byte of result bytes 0 to 3, by mode and the low two selector bits.

The plain mode has no table: each nibble of the selector picks a byte.
"""


def permute_bytes(a: Value, b: Value, selector: Value, mode: str = "") -> Value:
    """Result bytes from the eight bytes of `a` (0 to 3) and `b` (4 to 7), as uint32.

    In plain mode bit 3 of a nibble asks for the byte's sign bit in all eight places.
    """
    wide = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
    result = wide.astype(np.uint32) & np.uint32(0)
    for place in range(4):
        if mode:
            table = np.array([row[place] for row in PERMUTE_MODES[mode]], dtype=np.uint32)
            byte = _pick(wide, table[(selector & np.uint32(3)).astype(np.intp)])
        else:
            nibble = (selector >> np.uint32(4 * place)) & np.uint32(15)
            byte = _pick(wide, nibble & np.uint32(7))
            sign = (byte >> np.uint32(7)) * np.uint32(0xFF)
            byte = np.where((nibble & np.uint32(8)) != 0, sign, byte)
        result = result | (byte << np.uint32(8 * place))
    return result


def _pick(wide: Value, place: Value) -> Value:
    shift = place.astype(np.uint64) << np.uint64(3)
    return ((wide >> shift) & np.uint64(0xFF)).astype(np.uint32)
