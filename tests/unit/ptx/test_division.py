"""Division by constants: the multipliers, and the sequences made of them."""

from __future__ import annotations

import random

import pytest

from phobos.dialects import ptx
from phobos.dialects.ptx import B32
from phobos.transforms.ptx_division import signed_magic, unsigned_magic
from phobos.transforms.ptx_evaluate import evaluate, to_pattern
from phobos.transforms.ptx_fold import fold_entry

RANDOM = random.Random(7)


def _unsigned(numerator: int, divisor: int, bits: int) -> int:
    """The quotient as the instructions compute it."""
    magic = unsigned_magic(divisor, bits)
    numerator >>= magic.pre_shift
    high = numerator * magic.multiplier >> bits
    if not magic.adds:
        return high >> magic.shift
    return (((numerator - high) >> 1) + high) >> (magic.shift - 1)


def _signed(numerator: int, divisor: int, bits: int) -> int:
    magic = signed_magic(divisor, bits)
    product = (numerator * magic.multiplier >> bits) + magic.correction * numerator
    shifted = product >> magic.shift
    return shifted + (shifted < 0)


def _truncated(numerator: int, divisor: int) -> int:
    quotient = abs(numerator) // abs(divisor)
    return quotient if (numerator < 0) == (divisor < 0) else -quotient


def _interesting(divisor: int, low: int, high: int) -> list[int]:
    """Numerators around multiples of the divisor and at the ends of the range."""
    magnitude = abs(divisor)
    multiples = [high // magnitude * magnitude, low // magnitude * magnitude, magnitude, 0]
    near = [m + d for m in multiples for d in (-1, 0, 1)]
    ends = [low, low + 1, high, high - 1]
    scattered = [RANDOM.randint(low, high) for _ in range(20)]
    return [n for n in (*near, *ends, *scattered) if low <= n <= high]


def test_unsigned_multipliers_are_exact_for_all_pairs_of_eight_bits():
    for divisor in range(3, 256):
        if divisor.bit_count() > 1:
            for numerator in range(256):
                assert _unsigned(numerator, divisor, 8) == numerator // divisor


def test_signed_multipliers_are_exact_for_all_pairs_of_eight_bits():
    for divisor in range(-127, 128):
        if abs(divisor).bit_count() > 1:
            for numerator in range(-128, 128):
                assert _signed(numerator, divisor, 8) == _truncated(numerator, divisor)


@pytest.mark.parametrize("bits", [32, 64])
def test_multipliers_are_exact_at_the_edges_of_wide_types(bits):
    divisors = [3, 5, 6, 7, 9, 10, 12, 25, 28, 125, 641, 1000, 10**9, (1 << bits - 1) - 1]
    divisors += [RANDOM.randint(3, (1 << bits - 1) - 1) for _ in range(100)]
    for divisor in divisors:
        if divisor.bit_count() == 1:
            continue
        for numerator in _interesting(divisor, 0, (1 << bits) - 1):
            assert _unsigned(numerator, divisor, bits) == numerator // divisor
        for signed in (divisor, -divisor):
            for numerator in _interesting(signed, -1 << (bits - 1), (1 << bits - 1) - 1):
                assert _signed(numerator, signed, bits) == _truncated(numerator, signed)


def test_multipliers_fit_the_width():
    for divisor in (3, 7, 28, (1 << 31) + 1, (1 << 32) - 1):
        assert 0 < unsigned_magic(divisor, 32).multiplier < 1 << 32
    for divisor in (3, 7, -7, 28, (1 << 31) - 1):
        magic = signed_magic(divisor, 32)
        assert -1 << 31 <= magic.multiplier < 1 << 31
        assert magic.correction in (-1, 0, 1)


def _sequence(cls: type[ptx.Instruction], suffix: str, divisor: int) -> ptx.EntryOp:
    """A folded kernel that stores the quotient or remainder of its parameter."""
    bits = int(suffix[1:])
    register = ptx.RegisterType(f"b{bits}")
    entry = ptx.EntryOp.make("k", [ptx.Parameter("n", f"u{bits}"), ptx.Parameter("p", "u64")])
    build = ptx.InstructionBuilder(entry.body)
    result = build.emit(cls, suffix, build.param(0, f"u{bits}"), build.imm(divisor, register))
    build.emit_multi(ptx.StOp, f"global.b{bits}", build.param(1, "u64"), result)
    build.ret()
    fold_entry(entry)
    return entry


def _run(entry: ptx.EntryOp, numerator: int) -> int:
    """The stored value, each instruction computed in turn."""
    values: dict[object, int] = {}
    for op in entry.body.blocks[0].ops:
        if isinstance(op, ptx.ImmOp):
            values[op.results[0]] = op.pattern
        elif isinstance(op, ptx.ParamOp):
            values[op.results[0]] = numerator
        elif isinstance(op, ptx.StOp):
            return values[op.own_operands[1]]
        elif isinstance(op, ptx.Instruction):
            register = op.results[0].type
            assert isinstance(register, ptx.RegisterType)
            operands = [values[value] for value in op.own_operands]
            folded = evaluate(type(op), op.suffix, (register.bits,), operands, op.immediates)
            if folded is not None:
                values[op.results[0]] = folded[0]
    raise AssertionError("the kernel stores nothing")


DIVISORS = [1, 2, 3, 5, 7, 8, 10, 14, 64, 100, 641, 1 << 14]


@pytest.mark.parametrize("suffix", ["u32", "s32", "u64", "s64", "u16", "s16"])
@pytest.mark.parametrize("cls", [ptx.DivOp, ptx.RemOp])
def test_sequences_compute_quotient_and_remainder(cls, suffix):
    for divisor in (*DIVISORS, *(-d for d in DIVISORS)):
        _check_sequence(cls, suffix, divisor)


def _check_sequence(cls: type[ptx.Instruction], suffix: str, divisor: int) -> None:
    bits = int(suffix[1:])
    signed = suffix[0] == "s"
    low, high = (-1 << (bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    number = divisor if signed else to_pattern(divisor, bits)
    entry = _sequence(cls, suffix, divisor)
    for numerator in _interesting(number, low, high):
        quotient = _truncated(numerator, number)
        expected = quotient if cls is ptx.DivOp else numerator - quotient * number
        if quotient > high:
            continue
        assert _run(entry, to_pattern(numerator, bits)) == to_pattern(expected, bits)


def test_sequences_need_no_division():
    for suffix in ("u32", "s32", "u64", "s64"):
        for divisor in (2, 3, 7, 10):
            text = str(_sequence(ptx.RemOp, suffix, divisor).body.blocks[0].last_op)
            ops = [type(op) for op in _sequence(ptx.RemOp, suffix, divisor).body.walk()]
            users = [op for op in ops if op in (ptx.DivOp, ptx.RemOp)]
            assert text == "ptx.ret"
            assert len(users) == 1, "only the dead original is left"


def test_division_by_zero_stays():
    entry = _sequence(ptx.DivOp, "s32", 0)
    store = next(op for op in entry.body.walk() if isinstance(op, ptx.StOp))
    assert isinstance(store.own_operands[1].owner, ptx.DivOp)
    assert store.own_operands[1].type == B32
