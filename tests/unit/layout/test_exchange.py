"""Exchanges through shared memory."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phobos.layout import contiguous_vector
from phobos.layout.build import OFFSET, blocked, cover, elementwise_layout
from phobos.layout.exchange import judge_exchange, plan_exchange
from phobos.layout.fragments import mma_a, mma_b, mma_c
from phobos.layout.shared import offsets, row_major
from tests.unit.layout.strategies import surjective_layouts


@settings(max_examples=200)
@given(st.data())
def test_any_exchange_is_a_permutation_of_memory(data):
    shape = data.draw(st.sampled_from([(16, 32), (8, 4), (256,)]))
    source = data.draw(surjective_layouts(shape=shape, lane_bits=5))
    target = data.draw(surjective_layouts(shape=shape, lane_bits=5))
    element_bytes = data.draw(st.sampled_from([1, 2, 4, 8]))
    plan = plan_exchange(source, target, element_bytes)
    assert plan.shared.is_invertible
    assert plan.shared.outputs == source.outputs
    plain = judge_exchange(source, target, row_major(shape), element_bytes)
    assert plan.wavefronts_per_element <= plain.wavefronts_per_element


TILE = (64, 64)
ROWS = elementwise_layout(TILE, 128, 4)
COLUMNS = elementwise_layout(TILE, 128, 4, (0, 1))
ACCUMULATOR = cover(mma_c(16), TILE, [(0, 2), (1, 2)])
OPERAND_A = cover(mma_a(16, 16, 2), TILE, [(0, 2), (None, 2)])
OPERAND_B = cover(mma_b(16, 2), TILE, [(None, 2), (1, 2)])


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
@pytest.mark.parametrize(
    ("source", "target"),
    [
        (ROWS, COLUMNS),
        (ROWS, ACCUMULATOR),
        (ACCUMULATOR, ROWS),
        (ACCUMULATOR, OPERAND_A),
        (ROWS, OPERAND_B),
        (blocked(TILE, (1, 4), (2, 16), (4, 1)), blocked(TILE, (4, 1), (16, 2), (1, 4))),
    ],
)
def test_common_exchanges_are_free_of_conflicts(source, target, element_bytes):
    plan = plan_exchange(source, target, element_bytes)
    assert plan.store.factor == 1
    assert plan.load.factor == 1


def test_vectors_are_used_where_both_sides_have_them():
    plan = plan_exchange(ROWS, elementwise_layout(TILE, 128, 8), 2)
    assert plan.store_vector >= 4
    assert plan.load_vector >= 4


def test_what_the_source_holds_side_by_side_stays_so():
    """A copy moves neighbours; here the target holds other elements of the source's too."""
    source = blocked(TILE, (4, 1), (16, 2), (1, 4), (0, 1))
    target = cover(blocked(TILE, (4, 16), (8, 1), (2, 1), (0, 1)), TILE, [(None, 2)])
    plan = plan_exchange(source, target, 4)
    assert contiguous_vector(offsets(source, plan.shared), OFFSET) == 4
