"""Copies that turn a matrix: every element once, whole sectors, and no access waits for a bank."""

import itertools

import pytest

from phobos.layout.build import LANE, LANE_BITS, OFFSET, REGISTER, WARP, log2
from phobos.layout.contraction import fma_contraction, split_warps
from phobos.layout.copies import turning_copy
from phobos.layout.shared import bank_conflicts, shared_vector

SIZES = list(itertools.product((8, 16, 32, 128), (1, 2, 4, 8, 32)))


@pytest.mark.parametrize("element_bytes", [4, 8])
@pytest.mark.parametrize(("rows", "columns"), SIZES)
@pytest.mark.parametrize("warps", [1, 4])
def test_neither_the_copies_nor_the_loads_wait_for_a_bank(
    rows: int, columns: int, warps: int, element_bytes: int
) -> None:
    tile, buffer = turning_copy((rows, columns), element_bytes, LANE_BITS, log2(warps))
    assert tile.is_surjective
    assert buffer.is_invertible
    assert bank_conflicts(tile, buffer, element_bytes).factor == 1
    read = fma_contraction((rows, 64, columns), LANE_BITS, split_warps(rows, 64, warps, (16, 32))).a
    width = shared_vector(read, buffer, element_bytes)
    assert width == 16 // element_bytes
    assert bank_conflicts(read, buffer, element_bytes, width).factor == 1


@pytest.mark.parametrize("element_bytes", [4, 8])
def test_lanes_fill_sectors(element_bytes: int) -> None:
    tile, _ = turning_copy((128, 32), element_bytes, LANE_BITS, 3)
    assert tile.bases(LANE)[:3] == ((0, 1), (0, 2), (0, 4))
    # What a thread copies is at a few rows, and on along them.
    assert [row for row, column in tile.bases(REGISTER) if not column] == [32, 64]


def test_threads_beyond_the_elements_hold_copies() -> None:
    tile, _ = turning_copy((4, 4), 4, LANE_BITS, 1)
    assert tile.is_surjective
    assert (tile.bases(LANE)[4], tile.bases(WARP)) == ((0, 0), ((0, 0),))
    assert tile.bases(REGISTER) == ()


def test_matrices_of_a_stack_follow_each_other() -> None:
    tile, buffer = turning_copy((3, 16, 8), 4, LANE_BITS, 0)
    assert tile.bases(REGISTER)[-2:] == ((1, 0, 0), (2, 0, 0))
    assert buffer.bases(OFFSET)[-2:] == ((1, 0, 0), (2, 0, 0))
    matrix = turning_copy((16, 8), 4, LANE_BITS, 0)
    assert [v[1:] for v in buffer.bases(OFFSET)[:-2]] == list(matrix.buffer.bases(OFFSET))
