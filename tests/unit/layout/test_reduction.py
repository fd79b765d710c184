"""Reduction plans, simulated as butterflies."""

from hypothesis import given
from hypothesis import strategies as st

from phobos.layout.build import cover, elementwise_layout
from phobos.layout.fragments import mma_c
from phobos.layout.linear import LinearLayout
from phobos.layout.reduction import Exchange, Reduction, plan_reduction
from tests.unit.layout.strategies import all_inputs, layouts

Place = tuple[int, int, int]


def run(layout: LinearLayout, plan: Reduction) -> dict[Place, list[tuple[int, ...]]]:
    """The elements that have been combined into each (register, lane, warp), with repeats."""
    values = {
        (i["register"], i["lane"], i["warp"]): [layout.apply(**i)] for i in all_inputs(layout)
    }
    steps = [Exchange(register=mask) for mask in plan.registers]
    for step in (*steps, *plan.lanes, *plan.warps):
        values = {
            (r, n, w): values[r, n, w] + values[r ^ step.register, n ^ step.lane, w ^ step.warp]
            for r, n, w in values
        }
    return values


@given(layouts(max_bits=3), st.data())
def test_every_thread_gets_every_held_element_once(layout, data):
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, layout.rank - 1)))))
    plan = plan_reduction(layout, axes)
    held = {layout.apply(**inputs) for inputs in all_inputs(layout)}
    for (register, lane, warp), combined in run(layout, plan).items():
        at = plan.result.apply(register=register, lane=lane, warp=warp)
        expected = {
            element
            for element in held
            if all(
                e == a for i, (e, a) in enumerate(zip(element, at, strict=True)) if i not in axes
            )
        }
        assert len(combined) == len(set(combined))
        assert set(combined) == expected


@given(layouts(max_bits=3), st.data())
def test_steps_are_sorted_by_reach(layout, data):
    axes = tuple(data.draw(st.sets(st.integers(0, layout.rank - 1))))
    plan = plan_reduction(layout, axes)
    assert all(step.lane and not step.warp for step in plan.lanes)
    assert all(step.warp for step in plan.warps)
    groups = plan.register_groups()
    assert sorted(r for group in groups for r in group) == list(range(layout.in_size("register")))
    assert {len(group) for group in groups} == {1 << len(plan.registers)}


def test_row_sum_of_a_row_vector_tile():
    plan = plan_reduction(elementwise_layout((8, 128), 128, 4), (1,))
    assert plan.registers == (1, 2)
    assert plan.lane_mask == 0b11111
    assert plan.warps == ()
    assert plan.register_groups() == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_row_sum_of_accumulators_uses_the_quad():
    plan = plan_reduction(cover(mma_c(16), (32, 64), [(0, 2), (1, 2)]), (1,))
    assert plan.lane_mask == 0b11
    assert [step.warp for step in plan.warps] == [0b10]
    assert plan.register_groups()[0][:4] == (0, 1, 4, 5)


def test_copies_are_not_added_up():
    layout = LinearLayout.parse("register=[[0]] lane=[[1], [0]] warp=[] -> [2]")
    plan = plan_reduction(layout, (0,))
    assert plan.registers == ()
    assert plan.lanes == (Exchange(lane=1),)
