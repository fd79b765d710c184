"""The arithmetic under the instructions, against Python integers, fractions and ml_dtypes."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phobos.emulator.arithmetic import atomics, exact, floats, formats, integers, permute
from phobos.emulator.types import TYPES

U32, U64 = 2**32, 2**64
words = st.integers(0, U32 - 1)
doubles = st.floats(allow_nan=False, allow_infinity=False)
singles = st.floats(allow_nan=False, allow_infinity=False, width=32)


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def u32(value: int) -> np.ndarray:
    return np.array([value], dtype=np.uint32)


def s32(value: int) -> np.ndarray:
    return np.array([value], dtype=np.uint32).view(np.int32)


# Integers ----------------------------------------------------------------------------------------


@given(words, words)
def test_high_products(a: int, b: int):
    assert integers.multiply_high(u32(a), u32(b))[0] == a * b >> 32
    signed_a, signed_b = (x - U32 if x >= U32 // 2 else x for x in (a, b))
    assert integers.multiply_high(s32(a), s32(b))[0] == signed_a * signed_b >> 32


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_high_products_of_64_bits(a: int, b: int):
    x, y = np.array([a]), np.array([b])
    assert integers.multiply_high(x, y)[0] == a * b >> 64
    unsigned = (a % U64) * (b % U64) >> 64
    assert integers.multiply_high(x.view(np.uint64), y.view(np.uint64))[0] == unsigned


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1).filter(bool))
def test_division_truncates(a: int, b: int):
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    wrapped = (quotient + 2**31) % U32 - 2**31
    x, y = np.array([a], dtype=np.int32), np.array([b], dtype=np.int32)
    assert integers.divide(x, y)[0] == wrapped
    assert integers.remainder(x, y)[0] == a - quotient * b


def test_division_by_zero_is_all_ones():
    zero = np.array([0], dtype=np.uint32)
    assert integers.divide(u32(7), zero)[0] == U32 - 1
    assert integers.remainder(u32(7), zero)[0] == 7


@given(words, st.integers(0, 255), st.integers(0, 255))
def test_fields(a: int, position: int, length: int):
    field = a >> position & (1 << length) - 1
    assert integers.extract_field(u32(a), u32(position), u32(length))[0] == field
    mask = ((1 << length) - 1) << position & U32 - 1
    inserted = (0xDEADBEEF & ~mask) | (a << position & mask)
    result = integers.insert_field(u32(a), u32(0xDEADBEEF), u32(position), u32(length))
    assert result[0] == inserted


@given(words)
def test_bit_counts(a: int):
    assert integers.population_count(u32(a))[0] == a.bit_count()
    assert integers.leading_zeros(u32(a))[0] == 32 - a.bit_length()
    assert integers.reverse_bits(u32(a))[0] == int(f"{a:032b}"[::-1], 2)
    place = a.bit_length() - 1 if a else U32 - 1
    assert integers.find_leading(u32(a), shift_amount=False)[0] == place


@given(words, words, words, st.integers(0, 255))
def test_any_function_of_three(a: int, b: int, c: int, table: int):
    wanted = sum(
        (table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32)
    )
    assert integers.lookup_3(u32(a), u32(b), u32(c), table)[0] == wanted


@given(words, words, st.integers(0, 0xFFFF))
def test_byte_permutation(a: int, b: int, selector: int):
    table = a | b << 32
    wanted = 0
    for place in range(4):
        nibble = selector >> 4 * place & 15
        byte = table >> 8 * (nibble & 7) & 255
        if nibble & 8:
            byte = 255 if byte & 128 else 0
        wanted |= byte << 8 * place
    assert permute.permute_bytes(u32(a), u32(b), u32(selector))[0] == wanted


@given(words, words, st.booleans())
def test_carries(a: int, b: int, carry: bool):
    flag = np.array([carry])
    total, out = integers.add_with_carry(u32(a), u32(b), flag)
    assert int(total[0]) + (int(out[0]) << 32) == a + b + carry
    difference, borrow = integers.subtract_with_borrow(u32(a), u32(b), flag)
    assert int(difference[0]) - (int(borrow[0]) << 32) == a - b - carry


# Floats ------------------------------------------------------------------------------------------


def directed(value: Fraction, mode: str, to: type) -> float:
    """A rational number rounded to f32 or f64, by search among neighbours."""
    nearest = to(0)
    with np.errstate(all="ignore"):
        try:
            nearest = to(float(value))
        except OverflowError:
            nearest = to(math.inf if value > 0 else -math.inf)
    candidates = sorted(
        {
            float(nearest),
            float(np.nextafter(nearest, to(-math.inf))),
            float(np.nextafter(nearest, to(math.inf))),
        }
    )
    below = [c for c in candidates if c == -math.inf or (c < math.inf and Fraction(c) <= value)]
    above = [c for c in candidates if c == math.inf or (c > -math.inf and Fraction(c) >= value)]
    low, high = max(below), min(above)
    if mode == "rm" or (mode == "rz" and value > 0):
        return low
    if mode in ("rp", "rz"):
        return high
    if math.isinf(low) or math.isinf(high):
        return float(nearest)
    gap = Fraction(high) - value, value - Fraction(low)
    if gap[0] != gap[1]:
        return high if gap[0] < gap[1] else low
    return low if np.array([low], to).view(f"u{to().itemsize}")[0] % 2 == 0 else high


@settings(max_examples=300)
@given(singles, singles, singles, st.sampled_from(["rn", "rz", "rm", "rp"]))
def test_single_fma_rounds_once(a: float, b: float, c: float, mode: str):
    x, y, z = (np.array([v], dtype=np.float32) for v in (a, b, c))
    result = floats.fused_multiply_add(x, y, z, mode)[0]
    wanted = Fraction(a) * Fraction(b) + Fraction(c)
    assert float(result) == directed(wanted, mode, np.float32)


@settings(max_examples=300)
@given(doubles, doubles, doubles, st.sampled_from(["rn", "rz", "rm", "rp"]))
def test_double_fma_rounds_once(a: float, b: float, c: float, mode: str):
    x, y, z = (np.array([v]) for v in (a, b, c))
    result = floats.fused_multiply_add(x, y, z, mode)[0]
    assert float(result) == directed(Fraction(a) * Fraction(b) + Fraction(c), mode, np.float64)


@given(singles, singles, st.sampled_from(["rz", "rm", "rp"]))
def test_single_sums_products_and_quotients(a: float, b: float, mode: str):
    x, y = (np.array([v], dtype=np.float32) for v in (a, b))
    assert float(floats.add(x, y, mode)[0]) == directed(Fraction(a) + Fraction(b), mode, np.float32)
    product = Fraction(a) * Fraction(b)
    assert float(floats.multiply(x, y, mode)[0]) == directed(product, mode, np.float32)
    if b:
        quotient = Fraction(a) / Fraction(b)
        assert float(floats.divide(x, y, mode)[0]) == directed(quotient, mode, np.float32)


@given(st.floats(min_value=0, allow_infinity=False, width=32), st.sampled_from(["rz", "rm", "rp"]))
def test_square_roots_enclose(a: float, mode: str):
    root = float(floats.square_root(np.array([a], dtype=np.float32), mode)[0])
    step = float(np.nextafter(np.float32(root), np.float32(math.inf)))
    back = float(np.nextafter(np.float32(root), np.float32(-math.inf)))
    if mode == "rp":
        assert root**2 >= a
        assert a == 0 or Fraction(back) ** 2 < Fraction(a)
    else:
        assert Fraction(root) ** 2 <= Fraction(a) < Fraction(step) ** 2


@given(doubles, doubles)
def test_rounding_to_odd_keeps_what_a_second_rounding_needs(a: float, b: float):
    total = float(exact.add_odd(np.array([a]), np.array([b]))[0])
    truth = Fraction(a) + Fraction(b)
    if math.isinf(total):
        return
    if Fraction(total) != truth:
        assert np.array([total]).view(np.uint64)[0] % 2 == 1
        assert abs(Fraction(total) - truth) < Fraction(math.ulp(total))


def test_zeros_and_nans():
    a = np.array([0.0, -0.0, np.nan, 1.0, np.nan], dtype=np.float32)
    b = np.array([-0.0, 0.0, 2.0, np.nan, np.nan], dtype=np.float32)
    low, high = floats.minimum(a, b), floats.maximum(a, b)
    assert np.signbit(low[:2]).all()
    assert not np.signbit(high[:2]).any()
    assert low[2:4].tolist() == high[2:4].tolist() == [2.0, 1.0]
    assert low.view(np.uint32)[4] == 0x7FFFFFFF
    assert np.isnan(floats.minimum(a, b, propagate_nan=True)[2:]).all()


# Formats -----------------------------------------------------------------------------------------

ML_TYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
}


@pytest.mark.parametrize("name", ML_TYPES)
def test_every_pattern_decodes_and_encodes(name: str):
    form = formats.FORMATS[name]
    size = 2 if form.bits == 16 else 1
    patterns = np.arange(1 << form.bits, dtype=f"u{size}")
    wanted = patterns.view(ML_TYPES[name]).astype(np.float64)
    values = formats.decode(patterns, form)
    np.testing.assert_array_equal(values, wanted)
    back = formats.encode(values, form)
    number = ~np.isnan(values)
    np.testing.assert_array_equal(back[number], patterns[number])


@pytest.mark.parametrize("name", ["f16", "bf16", "e5m2"])
def test_rounding_to_nearest_agrees_with_ml_dtypes(name: str):
    generator = np.random.default_rng(3)
    exponents = generator.integers(-30, 20, 20_000)
    singles = np.ldexp(generator.standard_normal(20_000), exponents).astype(np.float32)
    form = formats.FORMATS[name]
    ours = formats.encode(formats.round_to(singles.astype(np.float64), form), form)
    theirs = singles.astype(ML_TYPES[name]).view(ours.dtype)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("mode", ["rz", "rm", "rp", "rna"])
def test_directed_rounding_into_halves(mode: str):
    form = formats.FORMATS["f16"]
    patterns = np.arange(0x7BFF, dtype=np.uint16)
    low, high = formats.decode(patterns, form), formats.decode(patterns + np.uint16(1), form)
    middle = (low + high) / 2
    above, below = (formats.round_to(value, form, mode) for value in (middle, -middle))
    np.testing.assert_array_equal(above, high if mode in ("rp", "rna") else low)
    np.testing.assert_array_equal(below, -(high if mode in ("rm", "rna") else low))


# Atomics -----------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20)), max_size=60),
    st.sampled_from(["add", "and", "or", "xor", "min", "max", "exch", "inc", "dec"]),
)
def test_atomics_go_in_thread_order(updates: list[tuple[int, int]], name: str):
    operation = atomics.atomic_operation(name, TYPES["u32"], is_global=True)
    assert operation is not None
    plain = {
        "add": lambda o, v: o + v,
        "and": lambda o, v: o & v,
        "or": lambda o, v: o | v,
        "xor": lambda o, v: o ^ v,
        "min": min,
        "max": max,
        "exch": lambda o, v: v,
        "inc": lambda o, v: 0 if o >= v else o + 1,
        "dec": lambda o, v: v if o == 0 or o > v else o - 1,
    }[name]
    memory = [5, 6, 7, 8]
    old = []
    for place, value in updates:
        old.append(memory[place])
        memory[place] = plain(memory[place], value) % U32
    view = np.array([5, 6, 7, 8], dtype=np.uint32)
    where = np.array([place for place, _ in updates], dtype=np.int64)
    values = np.array([value for _, value in updates], dtype=np.uint32)
    if len(updates):
        found = atomics.update(view, where, operation, [values])
        assert found.tolist() == old
    assert view.tolist() == memory
