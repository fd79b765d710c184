"""The mixing rules of LANGUAGE's section on values, pair by pair."""

from __future__ import annotations

import itertools

import pytest

from phobos.frontend import types
from phobos.frontend.types import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    INDEX,
    NAMED,
    U8,
    U16,
    U32,
    U64,
    WEAK_FLOAT,
    WEAK_INT,
    Mismatch,
    ScalarType,
    broadcast,
    default_of,
    promote,
)


@pytest.mark.parametrize(
    ("left", "right", "together"),
    [
        (F16, F32, F32),
        (F32, F64, F64),
        (F16, BF16, F32),
        (BF16, F64, F64),
        (I32, F16, F16),
        (U64, F32, F32),
        (INDEX, BF16, BF16),
        (I8, I32, I32),
        (U8, I32, I32),
        (U8, U16, U16),
        (I8, U32, U32),
        (I32, I64, I64),
        (INDEX, I8, INDEX),
        (INDEX, I32, INDEX),
        (INDEX, I64, INDEX),
        (INDEX, U16, INDEX),
        (WEAK_INT, I8, I8),
        (WEAK_INT, F16, F16),
        (WEAK_INT, INDEX, INDEX),
        (WEAK_INT, WEAK_FLOAT, WEAK_FLOAT),
        (WEAK_FLOAT, F16, F16),
        (WEAK_FLOAT, F64, F64),
        (WEAK_FLOAT, I32, F32),
        (WEAK_FLOAT, INDEX, F32),
        (BOOL, BOOL, BOOL),
    ],
)
def test_promotion(left: ScalarType, right: ScalarType, together: ScalarType) -> None:
    assert promote(left, right) is together
    assert promote(right, left) is together


@pytest.mark.parametrize(
    ("left", "right"),
    [(I8, U8), (I16, U16), (I32, U32), (I64, U64), (INDEX, U32), (INDEX, U64)],
)
def test_signs_of_one_width_do_not_mix(left: ScalarType, right: ScalarType) -> None:
    for pair in ((left, right), (right, left)):
        found = promote(*pair)
        assert isinstance(found, Mismatch)
        assert "signed" in found.reason
        assert found.help is not None


@pytest.mark.parametrize("other", [I32, F32, INDEX, WEAK_INT, WEAK_FLOAT])
def test_bool_is_no_number(other: ScalarType) -> None:
    assert isinstance(promote(BOOL, other), Mismatch)
    assert isinstance(promote(other, BOOL), Mismatch)


def test_promotion_is_symmetric_and_keeps_equal_types() -> None:
    everything = [*NAMED.values(), WEAK_INT, WEAK_FLOAT]
    for left, right in itertools.product(everything, repeat=2):
        one, other = promote(left, right), promote(right, left)
        assert isinstance(one, Mismatch) == isinstance(other, Mismatch)
        if not isinstance(one, Mismatch):
            assert one is other
    for scalar in everything:
        assert promote(scalar, scalar) is scalar


def test_a_literal_alone() -> None:
    assert default_of(WEAK_INT) is INDEX
    assert default_of(WEAK_FLOAT) is F32
    assert default_of(I8) is I8


@pytest.mark.parametrize(
    ("left", "right", "together"),
    [
        ((4, 8), (4, 8), (4, 8)),
        ((1, 8), (4, 1), (4, 8)),
        ((4, 1), (4, 8), (4, 8)),
        ((4, 8), (2, 8), None),
        ((8,), (4, 8), None),
        ((1, 1, 1), (2, 3, 4), (2, 3, 4)),
    ],
)
def test_broadcast(
    left: tuple[int, ...], right: tuple[int, ...], together: tuple[int, ...] | None
) -> None:
    assert broadcast(left, right) == together
    assert broadcast(right, left) == together


def test_types_print_as_they_are_written() -> None:
    assert str(types.TileType(F16, (64, 32))) == "tile<f16>[64, 32]"
    assert str(types.RunType(I8, 16)) == "run<i8>[16]"
    dims = (types.Dim("N", None), types.Dim(None, 4))
    assert str(types.TensorType(F32, dims)) == "tensor<f32>[N, 4]"
