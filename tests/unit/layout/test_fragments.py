"""Tensor-core fragments against the formulas of the PTX manual, element by element."""

import pytest

from phobos.layout import fragments
from phobos.layout.algebra import slice_layout
from phobos.layout.build import cover
from phobos.layout.fragments import MMA_SHAPES, MmaShape
from phobos.layout.text import LayoutError

LANES = [(lane, lane >> 2, lane & 3) for lane in range(32)]


@pytest.mark.parametrize("shape", MMA_SHAPES, ids=lambda s: f"{s.name}-{s.operand_bits}")
def test_fragments_follow_the_formulas(shape):
    p = shape.packed
    tall = shape.m == 16
    for lane, g, q in LANES:
        for i in range(shape.a.in_size("register")):
            row = g + 8 * ((i // p) & 1) if tall else g
            chunk = (i // p) >> 1 if tall else i // p
            assert shape.a.apply(register=i, lane=lane) == (row, p * q + i % p + 4 * p * chunk)
        for i in range(shape.b.in_size("register")):
            assert shape.b.apply(register=i, lane=lane) == (p * q + i % p + 4 * p * (i // p), g)
        for i in range(shape.c.in_size("register")):
            assert shape.c.apply(register=i, lane=lane) == (g + 8 * (i >> 1), 2 * q + (i & 1))
    assert shape.a.is_invertible
    assert shape.b.is_invertible
    assert shape.c.is_invertible


def test_wgmma_accumulator():
    layout = fragments.wgmma_c(256)
    assert layout.is_invertible
    assert layout.in_size("register") == 128
    for warp in range(4):
        for lane, g, q in LANES:
            for i in range(128):
                expected = (16 * warp + g + 8 * ((i >> 1) & 1), 8 * (i >> 2) + 2 * q + (i & 1))
                assert layout.apply(register=i, lane=lane, warp=warp) == expected


@pytest.mark.parametrize(("k", "p"), [(16, 2), (8, 1), (32, 4)])
def test_wgmma_operand_in_registers(k, p):
    layout = fragments.wgmma_a(k, p)
    for warp in range(4):
        for lane, g, q in LANES:
            for i in range(layout.in_size("register")):
                row = 16 * warp + g + 8 * ((i // p) & 1)
                column = p * q + i % p + 4 * p * ((i // p) >> 1)
                assert layout.apply(register=i, lane=lane, warp=warp) == (row, column)


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_delivers_rows(count, element_bytes):
    layout = fragments.ldmatrix(count, element_bytes)
    p = 4 // element_bytes
    assert layout.is_invertible
    for lane, g, q in LANES:
        for i in range(count * p):
            assert layout.apply(register=i, lane=lane) == (i // p, g, p * q + i % p)


def test_ldmatrix_transposed_delivers_columns():
    layout = fragments.ldmatrix(4, 2, transposed=True)
    for lane, g, q in LANES:
        for i in range(8):
            assert layout.apply(register=i, lane=lane) == (i // 2, 2 * q + (i & 1), g)


def test_operands_over_a_grid_of_warps_hold_copies_across_it():
    warps = [(0, 2), (1, 4)]
    c = cover(fragments.mma_c(16), (64, 64), warps)
    a = cover(fragments.mma_a(16, 16, 2), (64, 32), [(0, 2), (None, 4)])
    b = cover(fragments.mma_b(16, 2), (32, 64), [(None, 2), (1, 4)])
    assert c.is_invertible
    assert a.free_masks() == {"register": 0, "lane": 0, "warp": 0b110}
    assert b.free_masks() == {"register": 0, "lane": 0, "warp": 0b001}
    # Every thread's warp works on the rows of A and the columns of B that its C rows need.
    for warp in range(8):
        rows = {c.apply(register=r, lane=n, warp=warp)[0] for r in range(16) for n in range(32)}
        rows_a = {a.apply(register=r, lane=n, warp=warp)[0] for r in range(32) for n in range(32)}
        assert rows == rows_a


def test_cover_larger_than_the_tile_makes_copies():
    layout = cover(fragments.mma_c(16), (16, 4))
    assert layout.is_surjective
    assert layout.free_masks() == {"register": 0, "lane": 0b10, "warp": 0}
    assert slice_layout(layout, (1,)).shape == (16, 1)


def test_shapes_that_do_not_exist():
    assert fragments.mma_shape(16, 8, 16, 16).registers == (4, 2, 4)
    with pytest.raises(LayoutError, match="no mma of m16n8k32 with 16-bit operands"):
        fragments.mma_shape(16, 8, 32, 16)
    with pytest.raises(LayoutError, match=r"registers \(4, 2, 8\), layouts say \(4, 2, 4\)"):
        MmaShape(16, 8, 16, 16, (4, 2, 8))
    with pytest.raises(LayoutError, match="M is 8 or 16"):
        fragments.mma_a(32, 16, 2)
    with pytest.raises(LayoutError, match="no mma operand of K = 4"):
        fragments.mma_b(4, 2)
    with pytest.raises(LayoutError, match="no mma accumulator of 4x8"):
        fragments.mma_c(4)
    with pytest.raises(LayoutError, match="loads 1, 2 or 4 matrices, got 3"):
        fragments.ldmatrix(3, 2)
    with pytest.raises(LayoutError, match="needs 2-byte elements, got 4"):
        fragments.ldmatrix(1, 4, transposed=True)
    with pytest.raises(LayoutError, match="elements of 1, 2 or 4 bytes, got 8"):
        fragments.ldmatrix(1, 8)
