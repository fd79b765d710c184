"""What a product of matrices adds up, and how far that may be off for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tools.fuzz.scalars import Doubles, granularity, largest, precision

_SMALLEST = {"f32": 2.0**-126, "f64": 2.0**-1074}
"""What may be lost of a small sum: tensor cores take it for 0 in f32 if it is subnormal."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The terms of each element of a sum.

    There are `count` of them. `size` is the sum of the absolute values of those that are finite,
    `grain` a power of two that divides all, and `spread` how far all together may be off.
    """

    count: int
    size: Doubles
    grain: Doubles
    spread: Doubles

    @classmethod
    def of_factors(
        cls, left: Doubles, right: Doubles, left_error: Doubles, right_error: Doubles
    ) -> Terms:
        """The terms of the product [..., M, K] by [..., K, N], with bounds of both."""
        spread = np.abs(left) @ right_error + left_error @ np.abs(right) + left_error @ right_error
        left, right = left[..., :, :, None], right[..., None, :, :]
        is_finite = np.isfinite(left) & np.isfinite(right)
        size = np.where(is_finite, np.abs(left * right), 0.0).sum(axis=-2)
        grain = (granularity(left) * granularity(right)).min(axis=-2)
        return cls(
            is_finite.shape[-2], size, grain, 1.01 * np.where(np.isnan(spread), np.inf, spread)
        )

    @classmethod
    def of_value(cls, data: Doubles, error: Doubles) -> Terms:
        """The value itself as the only term."""
        return cls(1, np.where(np.isfinite(data), np.abs(data), 0.0), granularity(data), error)

    def __add__(self, other: Terms) -> Terms:
        grain = np.minimum(self.grain, other.grain)
        spread = self.spread + other.spread
        return Terms(self.count + other.count, self.size + other.size, grain, spread)

    def error(self, type_: str, total: Doubles) -> Doubles:
        """How far another right sum in a type may be from `total`, the evaluator's.

        It is 0 if the terms are exact and each sum of some of them is a number of the type: a
        multiple of the grain of no more digits than the type has. Nor does a tensor core cut
        anything off then, since what it cuts is below 2^-25 of the largest.

        Else, with S the size: a tensor core takes some k of the terms at once, with what came
        before. It brings them to the exponent of the largest of these k + 1 and cuts each 25 bits
        behind that one's first, so that each loses less than 2^-25 S; their sum is then cut to
        the type, and loses less than 2^-23 S. So n instructions that take the terms in turn lose
        less than (count + n) 2^-25 S + n 2^-23 S. None takes less than one term (one of zeros
        alone loses nothing), so that n is at most count: 1.5 count 2^-23 S. A chain of
        multiply-adds that are rounded to nearest loses at most a third of that.

        The evaluator's is of f32 the product rounded, and rounded again with what is added to
        it: at most 2^-23 S in all. (Of f64 its terms are rounded as well and added up
        in count steps, (count + 2) 2^-53 S; with the count 2^-53 S of a chain that is below the
        same bound in units of 2^-52.) What came before may be taken for 0 where it is subnormal,
        by each instruction. The last percent is for sums that errors have made larger than S.
        """
        size = self.size + self.spread
        digits, smallest = precision(type_), _SMALLEST[type_]
        is_exact = (size <= self.grain * 2.0**digits) & (self.grain >= smallest)
        is_exact &= (self.spread == 0) & (size <= largest(type_))
        lost = (1.5 * self.count + 1) * 2.0 ** (1 - digits) * size + self.count * smallest
        lost = np.where(size < largest(type_), 1.01 * lost, np.inf)
        # Where a term is infinite or none is a number, so is the sum, in whatever order.
        is_settled = ~np.isfinite(total) & (size < largest(type_))
        return self.spread + np.where(is_exact | is_settled, 0.0, lost)
