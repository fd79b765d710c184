"""GF(2) helpers against brute force over all combinations."""

from functools import reduce
from operator import xor

from hypothesis import given
from hypothesis import strategies as st

from phobos.layout import gf2

matrices = st.lists(st.integers(0, 63), max_size=7)


def spanned(columns: list[int] | tuple[int, ...]) -> set[int]:
    result = {0}
    for column in columns:
        result |= {other ^ column for other in result}
    return result


@given(matrices)
def test_rank_counts_the_span(columns):
    assert 1 << gf2.rank(columns) == len(spanned(columns))


@given(matrices, st.integers(0, 63))
def test_solve_finds_a_combination_exactly_if_there_is_one(columns, vector):
    solution = gf2.Span(columns).solve(vector)
    assert (solution is not None) == (vector in spanned(columns))
    assert (vector in gf2.Span(columns)) == (solution is not None)
    if solution is not None:
        assert gf2.multiply(columns, solution) == vector
        assert not solution & gf2.free_columns(columns)


@given(matrices)
def test_kernel_is_all_that_maps_to_zero(columns):
    zeros = {c for c in range(1 << len(columns)) if gf2.multiply(columns, c) == 0}
    assert spanned(gf2.kernel(columns)) == zeros
    assert len(gf2.kernel(columns)) == gf2.free_columns(columns).bit_count()


@given(matrices, matrices)
def test_intersection(left, right):
    both = gf2.intersect(left, right)
    assert spanned(both) == spanned(left) & spanned(right)
    assert gf2.rank(both) == len(both)


@given(matrices, matrices)
def test_independent_extends_to_the_sum(vectors, beyond):
    chosen = gf2.independent(vectors, beyond)
    assert spanned([*beyond, *chosen]) == spanned([*beyond, *vectors])
    assert gf2.rank([*beyond, *chosen]) == gf2.rank(beyond) + len(chosen)


@given(st.integers(0, 63), matrices)
def test_coset_bounds(vector, columns):
    coset = {vector ^ other for other in spanned(columns)}
    rows = gf2.echelon(columns)
    assert gf2.coset_range(vector, rows) == (min(coset), max(coset))
    assert spanned(rows) == spanned(columns)
    assert len({row.bit_length() for row in rows}) == len(rows) == gf2.rank(columns)


@given(matrices)
def test_multiply_by_all_ones_is_the_sum(columns):
    assert gf2.multiply(columns, (1 << len(columns)) - 1) == reduce(xor, columns, 0)
