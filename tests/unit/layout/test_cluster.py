"""Buffers whose parts other CTAs of a cluster read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phobos.layout import LinearLayout, gf2
from phobos.layout.algebra import reshape
from phobos.layout.build import LANE, OFFSET, cover, elementwise_layout
from phobos.layout.cluster import cluster_buffer
from phobos.layout.contraction import add_units
from phobos.layout.exchange import judge_exchange
from phobos.layout.fragments import mma_c
from phobos.layout.shared import LINE_BYTES, as_part, offsets
from tests.unit.layout.strategies import surjective_layouts

LANES = 32


def lines_of(part: LinearLayout, shared: LinearLayout, element_bytes: int) -> int:
    """How many lines of shared memory one load of a warp touches."""
    lanes = offsets(part, shared).packed(LANE)
    return 1 << gf2.rank(lane * element_bytes // LINE_BYTES for lane in lanes)


@settings(max_examples=100)
@given(st.data())
def test_any_buffer_is_a_permutation_of_memory(data: st.DataObject) -> None:
    parts, rows, columns = data.draw(st.sampled_from([(2, 16, 32), (4, 8, 8), (8, 4, 64)]))
    whole = (parts, rows, columns)
    source = data.draw(surjective_layouts(shape=whole, lane_bits=5))
    part = data.draw(surjective_layouts(shape=(1, rows, columns), lane_bits=5))
    element_bytes = data.draw(st.sampled_from([2, 4, 8]))
    shared = cluster_buffer(source, as_part(part, source), element_bytes)
    assert shared.is_invertible
    assert shared.outputs == source.outputs


@pytest.mark.parametrize("parts", [2, 4, 8])
@pytest.mark.parametrize(
    ("tile", "warps"),
    [((128, 128), 8), ((64, 128), 4), ((128, 64), 4), ((64, 64), 4), ((128, 256), 8)],
)
def test_sums_of_products_go_in_whole_lines(tile: tuple[int, int], warps: int, parts: int) -> None:
    """From the fragments of `mma` or `wgmma` to rows of 16-bit elements, 8 a thread."""
    rows, columns = tile
    accumulator = cover(mma_c(16), tile, [(0, warps)])
    source = reshape(accumulator, (parts, rows // parts, columns))
    loaded = elementwise_layout((rows // parts, columns), 32 * warps, 8)
    part = as_part(add_units(loaded, 1), source)
    shared = cluster_buffer(source, part, 4)
    cost = judge_exchange(source, part, shared, 4)
    assert cost.load_vector == 4
    assert cost.store.factor == cost.load.factor == 1
    held = 4 << gf2.rank(part.packed(LANE))
    assert lines_of(part, shared, 4) * LINE_BYTES == max(4 * held, LINE_BYTES)
    assert shared.in_size(OFFSET) == rows * columns
