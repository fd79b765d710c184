"""Conversions, simulated thread by thread and register by register."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phobos.layout.build import blocked, cover, elementwise_layout
from phobos.layout.convert import Conversion, Movement, ShufflePlan, plan_conversion
from phobos.layout.fragments import mma_a, mma_b, mma_c
from phobos.layout.linear import LinearLayout
from phobos.layout.text import LayoutError
from phobos.layout.widening import for_access, widened
from phobos.layout.words import WordConversion, plan_words
from tests.unit.layout.strategies import surjective_layouts

Files = dict[tuple[int, int], list[int]]  # (warp, lane) -> element in each register


def held(layout: LinearLayout, lanes: int, warps: int) -> Files:
    """What every register of every thread holds; threads beyond the layout are copies."""
    return {
        (warp, lane): [
            layout.pack(
                layout.apply(
                    register=register,
                    lane=lane % layout.in_size("lane"),
                    warp=warp % layout.in_size("warp"),
                )
            )
            for register in range(layout.in_size("register"))
        ]
        for warp in range(warps)
        for lane in range(lanes)
    }


def stage(file: list[int], masks: tuple[int, ...], index: int) -> list[int]:
    for bit, mask in enumerate(masks):
        if index >> bit & 1:
            file = [file[register ^ mask] for register in range(len(file))]
    return file


def run_shuffles(plan: ShufflePlan, before: Files) -> Files:
    ready = {
        (warp, lane): stage(stage(file, plan.send_by_lane, lane), plan.send_by_warp, warp)
        for (warp, lane), file in before.items()
    }
    after: Files = {}
    for warp, lane in before:
        received = [-1] * len(plan.registers)
        for step in plan.rounds:
            source = step.source_lane
            for bit, mask in enumerate(plan.source_by_lane):
                source ^= mask if lane >> bit & 1 else 0
            for bit, mask in enumerate(plan.source_by_warp):
                source ^= mask if warp >> bit & 1 else 0
            received[step.receive] = ready[warp, source][step.send]
        received = stage(received, plan.receive_by_lane, lane)
        after[warp, lane] = [received[register] for register in plan.registers]
    return after


def check(source: LinearLayout, target: LinearLayout) -> Conversion:
    lanes = max(source.in_size("lane"), target.in_size("lane"))
    warps = max(source.in_size("warp"), target.in_size("warp"))
    before, wanted = held(source, lanes, warps), held(target, lanes, warps)
    plan = plan_conversion(source, target)
    match plan.movement:
        case Movement.NONE:
            assert before == wanted
        case Movement.REGISTERS:
            for thread, file in before.items():
                assert [file[register] for register in plan.registers] == wanted[thread]
        case Movement.SHUFFLE:
            assert plan.shuffle is not None
            assert run_shuffles(plan.shuffle, before) == wanted
        case Movement.SHARED:
            assert source != target
    return plan


@settings(max_examples=300)
@given(st.data())
def test_any_conversion_moves_the_right_elements(data):
    shape = data.draw(st.sampled_from([(16,), (4, 8), (32,), (2, 4, 4)]))
    source = data.draw(surjective_layouts(shape=shape))
    target = data.draw(surjective_layouts(shape=shape))
    check(source, target)


@settings(max_examples=300)
@given(st.data())
def test_bijections_within_a_warp_never_need_shared_memory(data):
    shape = (4, 8)
    lane_bits = data.draw(st.integers(0, 5))
    source = data.draw(surjective_layouts(shape, lane_bits, warp_bits=0, copies=0))
    target = data.draw(surjective_layouts(shape, lane_bits, warp_bits=0, copies=0))
    plan = check(source, target)
    assert plan.movement is not Movement.SHARED
    if plan.shuffle is not None:
        assert len(plan.shuffle.rounds) == target.in_size("register")


@given(st.data())
def test_permuted_registers_are_only_renamed(data):
    target = data.draw(surjective_layouts(shape=(4, 8), copies=0))
    registers = data.draw(st.permutations(target.packed("register")))
    inputs = (("register", tuple(registers)), *target.inputs[1:])
    plan = check(LinearLayout(inputs, target.outputs), target)
    assert plan.movement in (Movement.NONE, Movement.REGISTERS)


def test_accumulator_feeds_the_next_product_without_moving():
    scores = cover(mma_c(16), (16, 16))
    operand = mma_a(16, 16, 2)
    plan = check(scores, operand)
    assert plan.movement is Movement.REGISTERS or plan.movement is Movement.NONE


def test_row_vector_to_fragment_rows_stay_in_the_warp():
    plan = check(elementwise_layout((16, 16), 32, 8), mma_a(16, 16, 2))
    assert plan.movement is Movement.SHUFFLE
    assert plan.shuffle is not None
    assert len(plan.shuffle.rounds) == 8


def test_transposing_fragments_within_a_warp():
    plan = check(mma_b(16, 2), mma_c(16))
    assert plan.movement is Movement.SHUFFLE


def test_moves_between_warps_go_through_shared_memory():
    source = blocked((64, 64), (1, 4), (2, 16), (4, 1))
    target = blocked((64, 64), (4, 1), (16, 2), (1, 4))
    assert check(source, target).movement is Movement.SHARED


def test_neighbour_lanes_swapped_is_one_butterfly_a_register():
    source = LinearLayout.parse("register=[[4], [8]] lane=[[1], [2]] -> [16]")
    target = LinearLayout.parse("register=[[5], [8]] lane=[[1], [2]] -> [16]")
    plan = check(source, target).shuffle
    assert plan is not None
    assert plan.is_xor
    assert plan.shuffles == 2
    assert plan.select_stages == 0


def test_copies_let_lanes_pick_their_own():
    source = LinearLayout.parse("register=[[1], [2]] lane=[[0], [0]] -> [4]")
    target = LinearLayout.parse("lane=[[1], [2]] -> [4]")
    plan = check(source, target).shuffle
    assert plan is not None
    assert plan.shuffles == 0
    assert plan.select_stages == 2


def test_reading_copies_in_other_lanes_avoids_clashes():
    source = LinearLayout.parse("register=[[2]] lane=[[0], [1]] -> [4]")
    target = LinearLayout.parse("lane=[[1], [2]] -> [4]")
    assert check(source, target).movement is Movement.SHUFFLE


def test_wrong_pairs_are_refused():
    full = LinearLayout.parse("lane=[[1]] -> [2]")
    with pytest.raises(LayoutError, match="tiles of other shapes"):
        plan_conversion(full, LinearLayout.parse("lane=[[1], [2]] -> [4]"))
    with pytest.raises(LayoutError, match="lacks elements"):
        plan_conversion(LinearLayout.parse("lane=[[0]] -> [2]"), full)


@settings(max_examples=200)
@given(st.data())
def test_words_move_what_elements_do(data):
    shape = data.draw(st.sampled_from([(16,), (4, 8), (2, 4, 4)]))
    source = data.draw(surjective_layouts(shape=shape, warp_bits=0, copies=0))
    lanes = data.draw(st.permutations(source.packed("lane")))
    target = LinearLayout((source.inputs[0], ("lane", tuple(lanes)), ("warp", ())), source.outputs)
    plan = plan_words(source, target, data.draw(st.sampled_from([2, 4])))
    check_words(source, target, plan)


@pytest.mark.parametrize("vector", [4, 8, 16])
@pytest.mark.parametrize("bits", [8, 16])
def test_accumulators_become_rows_by_shuffles_of_words(bits, vector):
    source = cover(mma_c(16), (32, 64), [(1, 2), (0, 2)], (1, 0))
    apart = cover(mma_c(16, 32), (32, 64), [(1, 2), (0, 2)])
    wide = widened(apart, vector)
    assert wide is not None
    assert widened(source, 16) is None, "the next eight columns are another warp's"
    plan = plan_words(apart, wide, 32 // bits)
    assert plan.per_word == min(32 // bits, 4 if vector < 16 or bits == 8 else 2)
    for there, back in ((apart, wide), (wide, apart)):
        words = plan_words(there, back, 32 // bits)
        check_words(there, back, words)
        assert words.conversion.shuffle is not None
        assert words.conversion.shuffle.is_xor
    assert for_access(apart, bits // 8, vector) == wide


def check_words(source: LinearLayout, target: LinearLayout, plan: WordConversion) -> None:
    """Moves words as planned and looks at the elements in each."""
    lanes, warps = source.in_size("lane"), source.in_size("warp")
    before, wanted = held(source, lanes, warps), held(target, lanes, warps)

    def words(file: list[int], registers: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
        return [tuple(file[register] for register in word) for word in registers]

    numbers = {}
    for file in before.values():
        for word in words(file, plan.source):
            numbers[word] = len(numbers)
    sent = {at: [numbers[w] for w in words(file, plan.source)] for at, file in before.items()}
    expected = {at: [numbers[w] for w in words(file, plan.target)] for at, file in wanted.items()}
    if plan.conversion.shuffle is not None:
        assert run_shuffles(plan.conversion.shuffle, sent) == expected
    elif plan.conversion.movement is not Movement.SHARED:
        registers = plan.conversion.registers
        assert {at: [file[r] for r in registers] for at, file in sent.items()} == expected
