"""The layout type: evaluation, text, ranks, copies."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phobos.layout.linear import LinearLayout
from phobos.layout.text import LayoutError
from tests.unit.layout.strategies import all_inputs, layouts, surjective_layouts, table


@given(layouts())
def test_apply_follows_the_basis_vectors(layout):
    for inputs, coordinates in table(layout).items():
        assert layout.apply(**dict(inputs)) == coordinates


@given(layouts())
def test_text_round_trips_on_one_line(layout):
    text = str(layout)
    assert "\n" not in text
    assert LinearLayout.parse(text) == layout
    assert hash(LinearLayout.parse(text)) == hash(layout)


def test_text_with_named_outputs():
    text = "offset=[[0, 1], [1, 1]] -> [row=2, col=2]"
    layout = LinearLayout.parse(text)
    assert layout.out_names == ("row", "col")
    assert str(layout) == text
    assert str(LinearLayout.parse("-> []")) == "-> []"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected an input dimension such as 'register' or '->' but got the end"),
        ("lane=[[1]]", "expected an input dimension such as 'register' or '->' but got the end"),
        ("lane [[1]] -> [2]", "expected '=' but got '['"),
        ("lane=[1] -> [2]", "expected '[' but got '1'"),
        ("lane=[[1,]] -> [2]", "expected a number but got ']'"),
        ("lane=[[1]] -> [2] x", "expected the end but got 'x'"),
        ("lane=[[-1]] -> [2]", "expected a number but got '-'"),
        ("lane=[[99999999999999999999]] -> [2]", "expected a number"),
        ("lane=[[1]] lane=[[1]] -> [2]", "input dimension 'lane' appears twice"),
        ("lane=[[1]] -> [a=2, a=2]", "output dimension 'a' appears twice"),
        ("lane=[[1]] -> [3]", "size of output dimension 'dim0' must be a power of two, got 3"),
        ("lane=[[1]] -> [0]", "must be a power of two, got 0"),
        ("lane=[[2]] -> [2]", "coordinate 2 is outside 'dim0' of size 2"),
        ("lane=[[1, 0]] -> [2]", "expected 1 coordinates (dim0), got 2"),
    ],
)
def test_wrong_text_is_refused(text, message):
    with pytest.raises(LayoutError) as error:
        LinearLayout.parse(text)
    assert message in str(error.value)


@given(st.text(alphabet="registlanewp=[],->0123 ", max_size=40))
def test_any_text_gives_a_layout_or_a_layout_error(text):
    try:
        layout = LinearLayout.parse(text)
    except LayoutError:
        return
    assert LinearLayout.parse(str(layout)) == layout


@given(layouts())
def test_ranks_against_counting(layout):
    held = Counter(table(layout).values())
    assert len(held) == 1 << layout.matrix_rank
    assert layout.is_surjective == (len(held) == layout.elements)
    assert layout.is_injective == (max(held.values()) == 1)
    assert layout.is_invertible == (layout.is_injective and layout.is_surjective)


@given(layouts())
def test_canonical_owners_hold_each_element_once(layout):
    masks = layout.free_masks()
    owners = {}
    for inputs in all_inputs(layout):
        if all(not value & masks[name] for name, value in inputs.items()):
            assert all(value in layout.representatives(name) for name, value in inputs.items())
            assert owners.setdefault(layout.apply(**inputs), inputs) is inputs
    assert set(owners) == set(table(layout).values())
    for coordinates, inputs in owners.items():
        assert layout.owner(coordinates) == inputs


@given(layouts())
def test_owner_of_what_nothing_holds_is_none(layout):
    held = set(table(layout).values())
    for packed in range(layout.elements):
        coordinates = layout.unpack(packed)
        assert layout.pack(coordinates) == packed
        assert (layout.owner(coordinates) is None) == (coordinates not in held)


@given(layouts())
def test_zero_mask_bits_change_nothing(layout):
    for name in layout.in_names:
        zero = layout.zero_mask(name)
        for value in range(layout.in_size(name)):
            same = layout.apply(**{name: value}) == layout.apply(**{name: value & ~zero})
            assert same


@given(surjective_layouts())
def test_generated_surjective_layouts_are_surjective(layout):
    assert layout.is_surjective


def test_equivalence_ignores_the_order_of_dimensions_but_not_the_map():
    left = LinearLayout.parse("register=[[0, 1]] lane=[[1, 0]] warp=[] -> [2, 2]")
    right = LinearLayout.parse("lane=[[0, 1]] register=[[1, 0]] -> [dim1=2, dim0=2]")
    other = LinearLayout.parse("lane=[[1, 0]] register=[[1, 0]] -> [dim1=2, dim0=2]")
    assert left != right
    assert left.is_equivalent(right)
    assert not left.is_equivalent(other)


def test_misuse_names_the_dimensions():
    layout = LinearLayout.parse("lane=[[1]] -> [2]")
    with pytest.raises(LayoutError, match=r"no input lane = 2; the layout has lane < 2"):
        layout.apply(lane=2)
    with pytest.raises(LayoutError, match=r"no input thread = 1"):
        layout.apply(thread=1)
    with pytest.raises(LayoutError, match=r"no output dimension 1, the layout has dim0"):
        layout.axis_of(1)
    with pytest.raises(LayoutError, match=r"dimension names must differ, got lane, lane"):
        LinearLayout((("lane", ()), ("lane", ())), ())
    with pytest.raises(LayoutError, match=r"basis vector 0 of 'lane' lies outside the tile"):
        LinearLayout((("lane", (4,)),), (("dim0", 2),))


def test_missing_dimensions_have_one_value():
    layout = LinearLayout.parse("lane=[[1]] -> [2]")
    assert layout.in_size("warp") == 1
    assert layout.in_bits("warp") == 0
    assert layout.out_size("dim9") == 1
    assert layout.apply(warp=0) == (0,)
