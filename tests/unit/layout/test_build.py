"""The default layout of elementwise tiles."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phobos.layout import build
from phobos.layout.algebra import pad_to_pow2
from phobos.layout.queries import contiguous_vector, thread_fields
from phobos.layout.text import LayoutError

extents = st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple)


@given(extents, st.integers(1, 1024), st.sampled_from([1, 2, 4, 8]), st.data())
def test_elementwise_layout_covers_every_tile(shape, threads, vector, data):
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    layout = build.elementwise_layout(shape, threads, vector, order)
    sizes = pad_to_pow2(shape)
    used = 1 << (threads.bit_length() - 1)
    width = min(vector, sizes[order[0]])
    assert layout.shape == sizes
    assert layout.is_surjective
    assert layout.in_size("lane") == min(32, used)
    assert layout.in_size("lane") * layout.in_size("warp") == used
    assert layout.in_size("register") == max(width, math.prod(sizes) // used)
    assert contiguous_vector(layout, order[0]) >= width
    assert layout.free_mask("register") == 0


@given(extents, st.integers(1, 1024))
def test_threads_walk_the_fastest_axis_first(shape, threads):
    layout = build.elementwise_layout(shape, threads)
    used = layout.in_size("lane") * layout.in_size("warp")
    for thread in range(min(used, layout.elements)):
        coordinates = layout.apply(lane=thread % 32, warp=thread // 32)
        assert layout.pack(coordinates) == thread


@given(extents, st.integers(1, 256), st.sampled_from([1, 4]))
def test_thread_fields_compute_the_coordinates(shape, threads, vector):
    layout = build.elementwise_layout(shape, threads, vector)
    for thread in range(layout.in_size("lane") * layout.in_size("warp")):
        coordinates = layout.apply(lane=thread % 32, warp=thread // 32)
        for axis, expected in enumerate(coordinates):
            fields = thread_fields(layout, axis)
            assert sum(field.apply(thread) for field in fields) == expected


def test_saxpy_tile():
    layout = build.elementwise_layout((1024,), 256, 4)
    assert str(layout) == (
        "register=[[1], [2]] lane=[[4], [8], [16], [32], [64]] warp=[[128], [256], [512]] -> [1024]"
    )


def test_small_tile_leaves_copies_in_other_threads():
    layout = build.elementwise_layout((16,), 128)
    assert layout.free_masks() == {"register": 0, "lane": 0b10000, "warp": 0b11}


def test_layouts_are_cached():
    assert build.elementwise_layout([64, 3], 128) is build.elementwise_layout((64, 4), 128)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((0,), 32), "expected an extent of at least 1, got 0"),
        (((8,), 0), "expected a count of at least 1, got 0"),
        (((8,), 32, 3), "expected a power of two, got 3"),
        (((8, 8), 32, 1, (0, 0)), "expected an order of the axes 0 to 1"),
    ],
)
def test_nonsense_is_refused(arguments, message):
    with pytest.raises(LayoutError, match=message):
        build.elementwise_layout(*arguments)
