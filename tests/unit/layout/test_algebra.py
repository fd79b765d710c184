"""Products, composition, inverses and reshapes against evaluation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phobos.layout import algebra
from phobos.layout.linear import LinearLayout
from phobos.layout.text import LayoutError
from tests.unit.layout.strategies import all_inputs, layouts, shapes, surjective_layouts


@given(layouts(max_bits=2), layouts(max_bits=2))
def test_product_places_the_second_above_the_first(low, high):
    both = algebra.product(low, high)
    for name in both.out_names:
        assert both.out_size(name) == low.out_size(name) * high.out_size(name)
    for inputs in all_inputs(both):
        low_in = {n: v & (low.in_size(n) - 1) for n, v in inputs.items()}
        high_in = {n: v >> low.in_bits(n) for n, v in inputs.items()}
        at_low = dict(zip(low.out_names, low.apply(**low_in), strict=True))
        at_high = dict(zip(high.out_names, high.apply(**high_in), strict=True))
        expected = tuple(
            at_low.get(n, 0) + at_high.get(n, 0) * low.out_size(n) for n in both.out_names
        )
        assert both.apply(**inputs) == expected


@given(layouts(max_bits=2), layouts(max_bits=2))
def test_divide_left_undoes_product(low, high):
    both = algebra.product(low, high)
    quotient = algebra.divide_left(both, low)
    assert quotient is not None
    assert quotient.is_equivalent(high)


@given(layouts(max_bits=3), layouts(max_bits=2))
def test_divide_left_is_right_when_it_answers(layout, low):
    quotient = algebra.divide_left(layout, low)
    if quotient is not None:
        assert algebra.product(low, quotient).is_equivalent(layout)


@given(st.data())
def test_compose_applies_one_after_the_other(data):
    inner = data.draw(layouts(max_bits=3))
    sizes = dict(inner.outputs)
    outer = LinearLayout.from_bases(
        {
            name: data.draw(
                st.lists(
                    st.tuples(st.integers(0, 15)),
                    min_size=size.bit_length() - 1,
                    max_size=size.bit_length() + 1,
                )
            )
            for name, size in sizes.items()
        },
        {"offset": 16},
    )
    composed = algebra.compose(inner, outer)
    for inputs in all_inputs(inner):
        between = dict(zip(inner.out_names, inner.apply(**inputs), strict=True))
        assert composed.apply(**inputs) == outer.apply(**between)


def test_compose_refuses_what_does_not_fit():
    inner = LinearLayout.parse("lane=[[1], [2]] -> [4]")
    outer = LinearLayout.parse("dim0=[[1]] -> [offset=2]")
    with pytest.raises(LayoutError, match=r"'dim0' has 4 values but the next layout takes 2"):
        algebra.compose(inner, outer)


@given(surjective_layouts())
def test_pseudo_inverse_gives_the_canonical_owner(layout):
    inverse = algebra.pseudo_invert(layout)
    for packed in range(layout.elements):
        coordinates = layout.unpack(packed)
        owner = inverse.apply(**dict(zip(layout.out_names, coordinates, strict=True)))
        assert dict(zip(inverse.out_names, owner, strict=True)) == layout.owner(coordinates)
        assert layout.apply(**dict(zip(inverse.out_names, owner, strict=True))) == coordinates


@given(surjective_layouts(copies=0, lane_bits=0, warp_bits=0))
def test_inverse_of_the_inverse(layout):
    assert algebra.invert(algebra.invert(layout)).is_equivalent(layout)


def test_inverse_refuses_copies_and_holes():
    copies = LinearLayout.parse("register=[[1], [1]] -> [2]")
    with pytest.raises(LayoutError, match="holds copies"):
        algebra.invert(copies)
    with pytest.raises(LayoutError, match=r"nothing holds element \(2,\)"):
        algebra.pseudo_invert(LinearLayout.parse("register=[[1]] -> [4]"))


@given(layouts(), st.data())
def test_slice_drops_coordinates(layout, data):
    axes = tuple(data.draw(st.sets(st.integers(0, layout.rank - 1))))
    sliced = algebra.slice_layout(layout, axes)
    for inputs in all_inputs(layout):
        kept = tuple(0 if i in axes else c for i, c in enumerate(layout.apply(**inputs)))
        assert sliced.apply(**inputs) == kept
    assert all(sliced.shape[axis] == 1 for axis in axes)


@given(layouts(), st.data())
def test_transpose_permutes_coordinates(layout, data):
    permutation = data.draw(st.permutations(range(layout.rank)))
    result = algebra.transpose(layout, permutation)
    for inputs in all_inputs(layout):
        coordinates = layout.apply(**inputs)
        assert result.apply(**inputs) == tuple(coordinates[axis] for axis in permutation)


@given(layouts(shape=(4, 8)), st.sampled_from([(32,), (8, 4), (2, 2, 8), (1, 32)]))
def test_reshape_keeps_the_row_major_order(layout, shape):
    result = algebra.reshape(layout, shape)
    assert result.shape == shape
    for inputs in all_inputs(layout):
        assert result.pack(result.apply(**inputs)) == layout.pack(layout.apply(**inputs))


def test_reshape_and_transpose_refuse_other_sizes():
    layout = LinearLayout.parse("lane=[[1]] -> [2]")
    with pytest.raises(LayoutError, match=r"cannot reshape 2 elements to \[4\]"):
        algebra.reshape(layout, (4,))
    with pytest.raises(LayoutError, match=r"expected a permutation of the 1 axes, got \[1\]"):
        algebra.transpose(layout, (1,))


@given(layouts(shape=(4, 8)))
def test_sublayout_keeps_a_part(layout):
    part = algebra.sublayout(layout, ("warp", "lane"), ("dim1",))
    for inputs in all_inputs(part):
        assert part.apply(**inputs) == layout.apply(**inputs)[1:]


@given(layouts())
def test_flat_thread_is_lane_plus_warp(layout):
    flat = algebra.flatten_inputs(layout, ("lane", "warp"), "thread")
    assert flat.in_names == ("register", "thread")
    for inputs in all_inputs(layout):
        thread = inputs["lane"] + layout.in_size("lane") * inputs["warp"]
        assert flat.apply(register=inputs["register"], thread=thread) == layout.apply(**inputs)


@given(layouts())
def test_drop_copies_keeps_the_representative_registers(layout):
    only = algebra.sublayout(layout, ("register",), layout.out_names)
    dropped = algebra.drop_copies(only)
    assert dropped.is_injective
    for index, register in enumerate(only.representatives("register")):
        assert dropped.apply(register=index) == only.apply(register=register)


def test_rename_and_reorder():
    layout = LinearLayout.parse("lane=[[1]] warp=[] -> [2]")
    renamed = algebra.rename(layout, {"lane": "register", "dim0": "offset"})
    assert str(renamed) == "register=[[1]] warp=[] -> [offset=2]"
    reordered = algebra.reorder_inputs(layout, ("register", "lane"))
    assert str(reordered) == "register=[] lane=[[1]] -> [2]"
    with pytest.raises(LayoutError, match="the new order lacks the inputs lane"):
        algebra.reorder_inputs(layout, ("register",))


@given(shapes())
def test_pad_to_pow2_is_the_identity_on_powers_of_two(shape):
    assert algebra.pad_to_pow2(shape) == shape
