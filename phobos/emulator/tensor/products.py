"""The arithmetic of tensor cores.

Floats: the products of one instruction are exact. Together with the addend they are brought to
the exponent of the largest (for a product the sum of its factors' exponents), cut to 25 bits
behind its leading one, added, and the sum is cut to f32, or rounded to nearest for f16. That is
what an H200 does, bit for bit, for f16, bf16 and tf32; other chips were not measured and are
taken to do the same. f64 is a chain of fused multiply-adds in the order of k.

Products of warpgroups are summed in the same way, but never to a negative zero, and 8-bit floats
with 13 bits behind the leading one, beyond which an f32 sum is cut, too. That again is an H200.

Where a chip has no 8-bit float multiplier, an instruction on 8-bit floats is two on f16: the
elements with k % 4 < 2 and the others, chained from zero, and the addend comes last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from phobos.emulator.arithmetic import floats
from phobos.emulator.arithmetic.formats import FORMATS, Format, round_to

Matrices = npt.NDArray
"""Matrices stacked along the first axis."""

_SINGLE_OVERFLOW = 2.0**128
_ZERO_EXPONENT = -4000
_AT_ONCE = 1 << 17
"""Products that are held in memory at the same time: a megabyte an array."""


@dataclass(frozen=True)
class Adder:
    """How many bits of terms are kept behind the leading one of the largest, the form of an f32
    sum, and whether a sum of negative zeros is one.
    """

    kept_bits: int
    single: Format
    has_negative_zero: bool


OF_WARPS = Adder(25, FORMATS["f32"], has_negative_zero=True)
OF_WARPGROUPS = Adder(25, FORMATS["f32"], has_negative_zero=False)
OF_WARPGROUPS_8_BIT = Adder(13, replace(FORMATS["f32"], precision=14), has_negative_zero=False)


def _exponents(values: Matrices) -> npt.NDArray[np.int64]:
    """Exponents of float64 numbers; a very low one for zero."""
    field = (np.ascontiguousarray(values).view(np.int64) >> 52) & 0x7FF
    return np.where(field == 0, _ZERO_EXPONENT, field - 1023)


def _power_of_two(exponents: npt.NDArray[np.int64]) -> Matrices:
    return ((exponents + 1023) << 52).view(np.float64)


def multiply_floats(
    a: Matrices, b: Matrices, c: Matrices, accumulator: str, adder: Adder = OF_WARPS
) -> Matrices:
    """`a @ b + c` for one instruction, all in float64; the result fits f32 or f16.

    Args:
        a: Shaped [warp, row, k], values of a format of at most 11 significant bits.
        b: Shaped [warp, k, column], likewise.
        c: Shaped [warp, row, column], values of the accumulator's format.
        accumulator: `f32` or `f16`.
        adder: What adds the products up.
    """
    result = np.empty_like(c)
    count = max(1, _AT_ONCE // (a.shape[1] * a.shape[2] * b.shape[2]))
    for start in range(0, len(a), count):
        part = slice(start, start + count)
        result[part] = _block(a[part], b[part], c[part], accumulator, adder)
    return result


def _block(a: Matrices, b: Matrices, c: Matrices, accumulator: str, adder: Adder) -> Matrices:
    # The axis of k comes first: sums over the first axis run in order and are fast.
    left = np.ascontiguousarray(a.transpose(2, 0, 1))[:, :, :, None]
    right = np.ascontiguousarray(b.transpose(1, 0, 2))[:, :, None, :]
    exponent = _exponents(left) + _exponents(right)
    addend_exponent = _exponents(c)
    highest = np.maximum(exponent.max(axis=0), addend_exponent)
    # Infinities have huge exponents, for which there are no powers of two to scale by.
    quantum = np.clip(highest, -1000 + adder.kept_bits, 1000) - adder.kept_bits
    scale, back = _power_of_two(-quantum), _power_of_two(quantum)
    total = np.trunc(left * right * scale).sum(axis=0) + np.trunc(c * scale)
    zero = _zero_sum(left, right, c) if adder.has_negative_zero else 0.0
    total = np.where(total == 0, zero, total * back)
    if accumulator == "f16":
        return round_to(total, FORMATS["f16"])
    # Too large a sum is infinite, although what is kept of it was cut and not rounded.
    cut = round_to(total, adder.single, "rz")
    over = np.abs(total) >= _SINGLE_OVERFLOW
    return np.where(over, np.copysign(np.inf, total), cut) if np.any(over) else cut


def _zero_sum(left: Matrices, right: Matrices, c: Matrices) -> Matrices:
    """The sign of a zero result: negative only if every term is."""
    negative = (np.signbit(left) != np.signbit(right)).all(axis=0) & np.signbit(c)
    return np.where(negative, -0.0, 0.0)


def multiply_small_floats(a: Matrices, b: Matrices, c: Matrices, accumulator: str) -> Matrices:
    """`a @ b + c` on 8-bit floats by two f16 instructions."""
    k = np.arange(a.shape[2])
    total = np.zeros_like(c)
    for chosen in (k % 4 < 2, k % 4 >= 2):
        total = multiply_floats(a[:, :, chosen], b[:, chosen], total, accumulator)
    return round_to(total + c, FORMATS[accumulator])


def multiply_doubles(a: Matrices, b: Matrices, c: Matrices) -> Matrices:
    """`a @ b + c` in f64."""
    total = c
    for k in range(a.shape[2]):
        left = np.broadcast_to(a[:, :, k, None], c.shape)
        right = np.broadcast_to(b[:, k, None, :], c.shape)
        result = floats.fused_multiply_add(left, right, total)
        total = floats.settle_nan(result, (right, total, left))
    return total


def multiply_integers(a: Matrices, b: Matrices, c: Matrices, *, saturate: bool) -> Matrices:
    """`a @ b + c` on integers, into int32: wrapping, or clamped to its range."""
    # Float64 holds every such sum exactly, and its products are faster than those of integers.
    product = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
    total = product + c
    if saturate:
        info = np.iinfo(np.int32)
        total = np.clip(total, info.min, info.max)
    return total.astype(np.int32)


def multiply_bits(
    a: Matrices, b: Matrices, c: Matrices, combine: Callable[..., npt.NDArray]
) -> Matrices:
    """One-bit matrices, packed along k into words: the number of ones of `combine(a, b)`, plus c.

    `a` is [warp, row, word], `b` is [warp, word, column].
    """
    words = combine(a[:, :, :, None], b[:, None])
    return (np.bitwise_count(words).sum(axis=2, dtype=np.int64) + c).astype(np.int32)
