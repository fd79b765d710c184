"""bf16 on a chip without it gives the bits that one with it gives."""

from __future__ import annotations

import re
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.unit.builtins.trying import assembles, compiled

BF16 = ml_dtypes.bfloat16
EDGES = np.array([0, 1, 0x7F, 0x80, 0x3F80, 0x7F7F, 0x7F80, 0x7F81, 0x7FFF], np.uint16)
"""Zero, the ends of subnormals and of normal numbers, 1, inf and NaNs."""


def same(got: np.ndarray, want: np.ndarray) -> None:
    """Equal bits, but for NaN, which only has to be one."""
    is_nan = np.isnan(want.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), is_nan)
    np.testing.assert_array_equal(got.view(np.uint16)[~is_nan], want.view(np.uint16)[~is_nan])


def run(source: str, *arrays: np.ndarray, chip: str = "sm_75") -> np.ndarray:
    """What a kernel of one CTA for 1024 elements writes to its last tensor, of bf16."""
    out = np.zeros(arrays[0].shape, BF16)
    module = compiled(source, chip)
    assembles(module.ptx, chip)
    module["k"](*arrays, out, device="emulator")
    return out


@pytest.mark.parametrize("is_computed", [False, True])
def test_every_upper_half_rounds_to_nearest_even(is_computed: bool) -> None:
    """f32 with each upper half, and with lower halves at, next to and far from a tie.

    Those that NaNs have as data differ from those that arithmetic has.
    """
    generator = np.random.default_rng(1)
    upper = np.arange(1 << 16, dtype=np.uint32)[:, None] << 16
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    drawn = generator.integers(0, 1 << 16, (1 << 16, 2), dtype=np.uint32)
    bits = np.concatenate([upper | lower, upper | drawn], axis=1).ravel()
    value = "X[i :+ 1024] * 1.0" if is_computed else "X[i :+ 1024]"
    source = f"""\
kernel k(X: tensor<f32>[N], Y: tensor<bf16>[N]) {{
  let i = ctx.block.x * 1024
  Y[i :+ 1024] = bf16({value})
}}
"""
    numbers = bits.view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        same(run(source, numbers), numbers.astype(BF16))


def pairs() -> tuple[np.ndarray, np.ndarray]:
    """Numbers of all kinds: edges against everything, near sizes, products near the ends."""
    generator = np.random.default_rng(2)
    signed = np.concatenate([EDGES, EDGES | 0x8000])
    some = generator.integers(0, 1 << 16, 512).astype(np.uint16)
    edges = [grid.ravel() for grid in np.meshgrid(signed, np.concatenate([signed, some]))]
    first = generator.integers(0, 1 << 16, 1 << 14)
    near = first + generator.integers(-1200, 1200, first.size) & 0xFFFF
    # Exponents that add up to those of the smallest and of the largest numbers.
    total = generator.choice([127 - 133, 127 - 126, 127 + 127], first.size)
    total = total + generator.integers(-2, 3, first.size)
    exponent = np.clip(127 + total - (first >> 7 & 0xFF), 0, 254)
    opposite = exponent << 7 | generator.integers(0, 2, first.size) << 15 | near & 0x7F
    a = np.concatenate([edges[0], first, first]).astype(np.uint16)
    b = np.concatenate([edges[1], near, opposite]).astype(np.uint16)
    return a.view(BF16), b.view(BF16)


def larger(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The larger, a number before NaN; 0 is larger than -0."""
    return np.where((a == 0) & (b == 0), a + b, np.fmax(a, b))


def smaller_or_nan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller, NaN before a number."""
    return np.where((a == 0) & (b == 0), -(-a - b), np.minimum(a, b))


Rule = Callable[[np.ndarray, np.ndarray], np.ndarray]
EXPRESSIONS: dict[str, Rule] = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "a * a": lambda a, b: a * a,
    "-abs(a) * b": lambda a, b: -abs(a) * b,
    "max(a + b, a * b)": lambda a, b: larger(a + b, a * b),
    "minnan(a - b, b)": lambda a, b: smaller_or_nan(a - b, b),
    "where(a < b, a + b, a)": lambda a, b: np.where(a < b, a + b, a),
    "a * b * b - a": lambda a, b: a * b * b - a,
    "a * 0.5": lambda a, b: a * BF16(0.5),
    "a * b * -0.25": lambda a, b: a * b * BF16(-0.25),
    "1024.0 * a": lambda a, b: BF16(1024) * a,
    "a * 3.0": lambda a, b: a * BF16(3),
    "a * 7.52316384526264e-37": lambda a, b: a * BF16(2.0**-120),
    "a * 7.70371977754894e-34": lambda a, b: a * BF16(2.0**-110),
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_arithmetic_rounds_every_result(expression: str) -> None:
    source = f"""\
kernel k(A: tensor<bf16>[N], B: tensor<bf16>[N], Y: tensor<bf16>[N]) {{
  let i = ctx.block.x * 1024
  let a = A[i :+ 1024]
  let b = B[i :+ 1024]
  Y[i :+ 1024] = {expression}
}}
"""
    a, b = pairs()
    with np.errstate(all="ignore"):
        want = EXPRESSIONS[expression](a, b)
    same(run(source, a, b), want)


CHAINS: dict[str, Rule] = {
    "max(a * b + a - b, a * 0.5) * b": lambda a, b: larger(a * b + a - b, a * BF16(0.5)) * b,
    "minnan(abs(a) + b, 4.0) * a - (a - b) - b": lambda a, b: (
        smaller_or_nan(abs(a) + b, np.array(4, BF16)) * a - (a - b) - b
    ),
    "max(a * b + a, b * 0.5) + min(a - b, abs(b)) * b": lambda a, b: (
        larger(a * b + a, b * BF16(0.5)) + -larger(-(a - b), -abs(b)) * b
    ),
    "max(a * b - 1.0, max(a + b, b)) - a": lambda a, b: (
        larger(a * b - BF16(1), larger(a + b, b)) - a
    ),
    "b - (a - b) * (a - b) + a": lambda a, b: b - (a - b) * (a - b) + a,
    "(a * b + (a + b)) - b * b": lambda a, b: (a * b + (a + b)) - b * b,
    "where(a < 4.0, a * b + a * b, b + a + b - a)": lambda a, b: np.where(
        a < 4, a * b + a * b, b + a + b - a
    ),
    "where(a + b < a * b, a + a * b, b - a * b)": lambda a, b: np.where(
        a + b < a * b, a + a * b, b - a * b
    ),
    "bf16(f32(a * b + a + b) * 3) + a - b": lambda a, b: (
        (f32(a * b + a + b) * np.float32(3)).astype(BF16) + a - b
    ),
}


def f32(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32)


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("are_mixed", [False, True])
def test_chains_round_where_values_are_huge_and_where_not(chain: str, are_mixed: bool) -> None:
    """Threads with huge values and without, in warps of their own and in each warp both."""
    source = f"""\
kernel k(A: tensor<bf16>[N], B: tensor<bf16>[N], Y: tensor<bf16>[N]) {{
  let i = ctx.block.x * 2048
  let a = A[i :+ 2048]
  let b = B[i :+ 2048]
  Y[i :+ 2048] = {chain}
}}
"""
    assert "bra" in compiled(source, "sm_75").ptx
    a, b = pairs()
    if not are_mixed:
        order = np.argsort(np.maximum(abs(f32(a)), abs(f32(b))))  # NaN last
        a, b = a[order], b[order]
    with np.errstate(all="ignore"):
        want = CHAINS[chain](a, b)
    same(run(source, a, b), want)


def test_what_branches_need_of_a_rounded_value() -> None:
    """What is rounded in front of an `if` or a loop is read inside of them, and behind."""
    source = """\
kernel k(A: tensor<bf16>[N], B: tensor<bf16>[N], Y: tensor<bf16>[N]) {
  let i = ctx.block.x * 2048
  let a = A[i :+ 2048]
  let b = B[i :+ 2048]
  let y = a + b + a + b + (b - a)
  if ctx.block.x % 3 == 1 {
    Y[i :+ 2048] = y * 2.0
  } else {
    for n in range(ctx.block.x % 3) { Y[i :+ 2048] = y - b }
  }
  if ctx.block.x % 3 == 0 { Y[i :+ 2048] = y + a }
}
"""
    a, b = pairs()
    with np.errstate(all="ignore"):
        y = a + b + a + b + (b - a)
        ways = y + a, y * BF16(2), y - b
    same(run(source, a, b), np.choose(np.arange(a.size) // 2048 % 3, ways))


def instructions(expression: str) -> float:
    """How many instructions one more element of a thread takes, if no value is huge."""
    counts = []
    for width in (1024, 2048):
        source = f"""\
kernel k(A: tensor<bf16>[N], B: tensor<bf16>[N], Y: tensor<bf16>[N]) {{
  let a = A[0 :+ {width}]
  let b = B[0 :+ {width}]
  Y[0 :+ {width}] = {expression}
}}
"""
        body = re.sub(r"bra (\$\w+);.*?\1:", "", compiled(source, "sm_75").ptx, flags=re.DOTALL)
        counts.append(sum(line.strip().startswith(ARITHMETIC) for line in body.splitlines()))
    return (counts[1] - counts[0]) / 4


# Without what ptxas makes a part of others: abs and neg, selp behind a multiplication.
ARITHMETIC = (
    "add.rn",
    "sub.rn",
    "mul.rn",
    "fma.rn",
    "max.f32",
    "min.f32",
    "setp.ne",
    "and.",
    "shl.b32",
)


def test_a_rounded_value_is_read_as_it_is() -> None:
    """Two to widen; then a sum takes one and 4 to round, a product 1 and 5."""
    assert instructions("a + b") == 2 + 5
    assert instructions("a * b") == 2 + 6
    assert instructions("max(a, b) + a") == 2 + 1 + 5


def test_roundings_that_follow_each_other_assume_that_no_value_is_huge() -> None:
    """A sum takes one and 2 to round, a product 1 and 3; the result is looked at with another."""
    assert instructions("(a + b) - a + b") == 2 + 3 * 3 + 0.5
    assert instructions("a * -b + (a + b) - b") == 2 + 4 + 3 * 3 + 0.5
    # Of some products the sign does not matter where they are rounded to 0.
    assert instructions("a * b + a - b") == 2 + 3 + 2 * 3 + 0.5
    assert instructions("a * b - 1.0 - b") == 2 + 3 + 2 * 3 + 0.5
    assert instructions("(a + b) * (a + b) + a - b") == 2 + 3 + 3 + 2 * 3 + 0.5
    # A product that is no term of a sum has one more; what the larger of two hides is looked at.
    assert instructions("max(a * b, b) + a - b + a") == 2 + 5 + 0.5 + 1 + 3 * 3 + 0.5
    # The larger of a sum and a bf16 is rounded instead.
    assert instructions("max(a + b, b) + a - b + a") == 2 + 1 + 1 + 2 + 3 * 3 + 0.5
    assert instructions("min(a + b, 4.0) + a - b + a") == 2 + 1 + 1 + 2 + 3 * 3 + 0.5
