"""Extents and thread counts that are no powers of two, against listing every element."""

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phobos.layout.build import elementwise_layout
from phobos.layout.linear import LinearLayout
from phobos.layout.overhang import Presence, TileLayout, covers, has_whole_warps, owner_mask
from phobos.layout.text import LayoutError
from tests.unit.layout.strategies import layouts

extents = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


def held_by(tile: TileLayout, register: int) -> list[tuple[int, ...]]:
    layout = tile.layout
    threads = itertools.product(range(layout.in_size("lane")), range(layout.in_size("warp")))
    return [layout.apply(register=register, lane=lane, warp=warp) for lane, warp in threads]


def check(tile: TileLayout) -> None:
    for register in range(tile.layout.in_size("register")):
        inside = [
            all(c < e for c, e in zip(at, tile.extents, strict=True))
            for at in held_by(tile, register)
        ]
        match tile.presence(register):
            case Presence.INSIDE:
                assert all(inside)
                assert tile.axes_to_check(register) == ()
            case Presence.OUTSIDE:
                assert not any(inside)
            case Presence.PARTIAL:
                assert not all(inside)
        assert (register in tile.live_registers()) == (
            tile.presence(register) is not Presence.OUTSIDE
        )
        for axis, extent in enumerate(tile.extents):
            values = [at[axis] for at in held_by(tile, register)]
            assert tile.axis_range(register, axis) == (min(values), max(values))
            assert (axis in tile.axes_to_check(register)) == (max(values) >= extent)


@given(extents, st.sampled_from([1, 8, 40, 64]), st.sampled_from([1, 2, 4]))
def test_presence_in_elementwise_layouts(shape, threads, vector):
    layout = elementwise_layout(shape, threads, vector)
    assert covers(layout, shape)
    check(TileLayout(layout, shape))


@given(layouts(shape=(8, 16), max_bits=3), st.integers(5, 8), st.integers(9, 16))
def test_presence_in_any_layout(layout, rows, columns):
    check(TileLayout(layout, (rows, columns)))


@given(st.integers(1, 70), st.sampled_from([1, 2, 4, 8]))
def test_whole_vectors_never_straddle_the_extent(extent, vector):
    tile = TileLayout(elementwise_layout((extent,), 4, vector), (extent,))
    width = tile.whole_vector(0)
    for register in range(0, tile.layout.in_size("register"), width):
        for lane in range(4):
            start = tile.layout.apply(register=register, lane=lane)[0]
            assert start % width == 0
            assert start + width <= extent or start >= extent


@given(extents, st.integers(1, 200))
def test_owners_do_each_element_once(shape, threads):
    layout = elementwise_layout(shape, threads)
    mask = owner_mask(layout, threads)
    used = layout.in_size("lane") * layout.in_size("warp")
    done: Counter[tuple[int, ...]] = Counter()
    for thread in range(threads):
        if thread & mask:
            continue
        at = thread % used
        for register in layout.representatives("register"):
            done[layout.apply(register=register, lane=at % 32, warp=at // 32)] += 1
    assert len(done) == layout.elements
    assert set(done.values()) == {1}


def test_a_tile_of_100_over_32_threads():
    tile = TileLayout(elementwise_layout((100,), 32, 1), (100,))
    assert tile.has_overhang
    assert [tile.presence(r) for r in range(4)] == [
        Presence.INSIDE,
        Presence.INSIDE,
        Presence.INSIDE,
        Presence.PARTIAL,
    ]
    whole = TileLayout(elementwise_layout((96,), 32, 1), (96,))
    assert whole.live_registers() == (0, 1, 2)
    assert all(whole.presence(r) is Presence.INSIDE for r in whole.live_registers())


def test_wrong_extents_are_refused():
    layout = LinearLayout.parse("register=[[1], [2]] -> [4]")
    with pytest.raises(LayoutError, match="an extent of 5 needs a layout of size 8, got 4"):
        TileLayout(layout, (5,))
    with pytest.raises(LayoutError, match="rank 2 does not fit a layout of rank 1"):
        TileLayout(layout, (4, 1))
    with pytest.raises(LayoutError, match="needs 32 threads, the block has 16"):
        owner_mask(elementwise_layout((64,), 32), 16)


@given(st.integers(1, 1024))
def test_whole_warps_have_every_lane_a_shuffle_may_read(threads):
    lanes = elementwise_layout((1024,), threads).in_size("lane")
    last = threads % 32 or min(threads, 32)
    assert has_whole_warps(threads) == (last % lanes == 0)
