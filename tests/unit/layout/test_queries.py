"""Vectors, bit fields and coalescing against evaluation and counting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phobos.layout import queries
from phobos.layout.build import blocked, cover, elementwise_layout, identity, strided, zeros
from phobos.layout.describe import describe
from phobos.layout.fragments import mma_c
from phobos.layout.linear import LinearLayout
from phobos.layout.queries import Coalescing, coalescing, contiguous_vector, vector_bits
from phobos.layout.text import LayoutError
from tests.unit.layout.strategies import all_inputs, layouts


def is_vector(layout: LinearLayout, axis: int, width: int) -> bool:
    """True if all aligned groups of `width` registers are aligned consecutive elements."""
    for inputs in all_inputs(layout):
        start = inputs["register"] // width * width
        first = layout.apply(**{**inputs, "register": start})
        expected = list(first)
        expected[axis] = first[axis] + inputs["register"] - start
        if first[axis] % width or layout.apply(**inputs) != tuple(expected):
            return False
    return True


@given(layouts(max_bits=3))
def test_contiguous_vector_is_the_widest(layout):
    for axis in range(layout.rank):
        width = contiguous_vector(layout, axis)
        assert is_vector(layout, axis, width)
        if 2 * width <= layout.in_size("register"):
            assert not is_vector(layout, axis, 2 * width)


@given(layouts(max_bits=3))
def test_vector_bits_step_by_one_bit_of_the_coordinate(layout):
    for axis in range(layout.rank):
        masks = vector_bits(layout, axis)
        for inputs in all_inputs(layout):
            for bit, mask in enumerate(masks):
                moved = layout.apply(**{**inputs, "register": inputs["register"] ^ mask})
                expected = list(layout.apply(**inputs))
                expected[axis] ^= 1 << bit
                assert moved == tuple(expected)
        assert 1 << len(masks) >= contiguous_vector(layout, axis)


@given(layouts())
def test_bit_fields_add_up_by_xor(layout):
    for name in layout.in_names:
        for index in range(layout.in_size(name)):
            for axis, expected in enumerate(layout.apply(**{name: index})):
                value = 0
                for part in queries.bit_fields(layout, axis, name):
                    value ^= part.apply(index)
                assert value == expected


@given(layouts(max_bits=3))
def test_register_coordinates_add_where_additive(layout):
    at_registers = queries.register_coordinates(layout)
    for inputs in all_inputs(layout):
        base = layout.apply(**{**inputs, "register": 0})
        offset = at_registers[inputs["register"]]
        for axis, value in enumerate(layout.apply(**inputs)):
            assert value == base[axis] ^ offset[axis]
            if queries.is_additive(layout, axis):
                assert value == base[axis] + offset[axis]


def test_thread_layout_needs_whole_warps():
    with pytest.raises(LayoutError, match="needs 32 lanes"):
        queries.thread_fields(LinearLayout.parse("lane=[[1]] warp=[[2]] -> [4]"), 0)


def test_coalescing_of_rows_and_columns():
    tile = (64, 64)
    assert coalescing(elementwise_layout(tile, 128, 4), 4, 4) == Coalescing(16, 16, 4)
    assert coalescing(elementwise_layout(tile, 128, 1), 2) == Coalescing(2, 2, 1)
    columns = elementwise_layout(tile, 128, 1, (0, 1))
    assert coalescing(columns, 4) == Coalescing(32, 4, 32)
    assert coalescing(columns, 4).efficiency == 0.125
    assert coalescing(columns, 4, strides=(1, 64)) == Coalescing(4, 4, 1)
    assert coalescing(cover(mma_c(16), tile), 4, 2) == Coalescing(8, 8, 8)


def test_coalescing_counts_shared_elements_once():
    assert coalescing(elementwise_layout((8,), 32), 4) == Coalescing(1, 1, 1)
    with pytest.raises(LayoutError, match="expected 1 strides, got 2"):
        coalescing(elementwise_layout((8,), 32), 4, strides=(1, 1))


@given(layouts(shape=(8, 32)), st.sampled_from([1, 2, 4, 8]), st.sampled_from([32, 48, 100]))
def test_coalescing_against_counting_bytes(layout, element_bytes, pitch):
    touched = set()
    for lane in range(layout.in_size("lane")):
        row, column = layout.apply(lane=lane)
        start = (row * pitch + column) * element_bytes
        touched |= {byte // 32 for byte in range(start, start + element_bytes)}
    answer = coalescing(layout, element_bytes, strides=(pitch, 1))
    assert answer.sectors == len(touched)
    assert 1 <= answer.ideal <= answer.sectors
    assert answer.lines == len({sector // 4 for sector in touched})


@given(layouts())
def test_any_layout_can_be_described_on_one_line(layout):
    text = describe(layout)
    assert "\n" not in text
    for name in layout.in_names:
        assert (f"{layout.in_size(name)} {name}s" in text) == bool(layout.in_bits(name))


def test_descriptions():
    assert describe(elementwise_layout((1024,), 256, 4)) == (
        "1024 tile: 4 registers hold 4 consecutive elements of axis 0; "
        "32 lanes span 32 of axis 0 (step 4); 8 warps span 8 of axis 0 (step 128)"
    )
    assert describe(mma_c(16)) == (
        "16x8 tile: 4 registers hold 2 consecutive elements of axis 1, 2 of axis 0 (step 8); "
        "32 lanes span 4 of axis 1 (step 2), 8 of axis 0"
    )
    assert describe(LinearLayout.parse("lane=[[1, 1]] -> [2, 2]")) == (
        "2x2 tile: 2 lanes span 2 at XOR [1, 1]"
    )
    assert describe(LinearLayout.parse("register=[] -> [1]")) == "1 tile: one element a thread"


def test_simple_constructors():
    assert identity("lane", 8).apply(lane=5) == (5,)
    assert strided("lane", 4, 8).apply(lane=3) == (24,)
    assert zeros("warp", 4).free_mask("warp") == 3
    layout = blocked((16, 16), (2, 2), (4, 8), (1, 2))
    assert layout.is_surjective
    assert layout.free_masks() == {"register": 0, "lane": 0, "warp": 1}
    assert layout.apply(register=3, lane=9) == (3, 3)
