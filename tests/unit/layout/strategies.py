"""Random layouts for property tests, and the slow obvious way to evaluate them."""

import itertools
from collections.abc import Iterator

from hypothesis import strategies as st

from phobos.layout.linear import LinearLayout

INPUTS = ("register", "lane", "warp")


@st.composite
def shapes(draw: st.DrawFn, max_bits: int = 6, max_rank: int = 3) -> tuple[int, ...]:
    """Power-of-two shapes with at most `max_bits` bits in all."""
    rank = draw(st.integers(1, max_rank))
    bits = [0] * rank
    for _ in range(draw(st.integers(0, max_bits))):
        bits[draw(st.integers(0, rank - 1))] += 1
    return tuple(1 << b for b in bits)


@st.composite
def layouts(
    draw: st.DrawFn,
    max_bits: int = 4,
    inputs: tuple[str, ...] = INPUTS,
    shape: tuple[int, ...] | None = None,
) -> LinearLayout:
    """Any linear layout at all: neither surjective nor injective in general."""
    shape = draw(shapes()) if shape is None else shape
    vector = st.tuples(*(st.integers(0, size - 1) for size in shape))
    bases = {name: draw(st.lists(vector, max_size=max_bits)) for name in inputs}
    return LinearLayout.from_bases(bases, shape)


@st.composite
def surjective_layouts(
    draw: st.DrawFn,
    shape: tuple[int, ...] | None = None,
    lane_bits: int | None = None,
    warp_bits: int | None = None,
    copies: int = 2,
) -> LinearLayout:
    """Layouts that hold every element: a shuffled random basis with some vectors beyond it."""
    shape = draw(shapes()) if shape is None else shape
    elements = LinearLayout.from_bases({}, shape).elements
    columns = [1 << bit for bit in range(elements.bit_length() - 1)]
    for _ in range(draw(st.integers(0, 4)) if len(columns) > 1 else 0):
        target, source = draw(st.permutations(range(len(columns))))[:2]
        columns[target] ^= columns[source]
    extra = draw(st.lists(st.integers(0, elements - 1), max_size=copies))
    columns = draw(st.permutations(columns + extra))
    lanes = draw(st.integers(0, 3)) if lane_bits is None else lane_bits
    warps = draw(st.integers(0, 2)) if warp_bits is None else warp_bits
    missing = max(0, lanes + warps - len(columns))
    columns = [*columns, *[0] * missing]
    return LinearLayout(
        (
            ("register", tuple(columns[lanes + warps :])),
            ("lane", tuple(columns[:lanes])),
            ("warp", tuple(columns[lanes : lanes + warps])),
        ),
        tuple((f"dim{axis}", size) for axis, size in enumerate(shape)),
    )


def all_inputs(layout: LinearLayout) -> Iterator[dict[str, int]]:
    """Every assignment of values to the inputs of a layout."""
    ranges = [range(layout.in_size(name)) for name in layout.in_names]
    for values in itertools.product(*ranges):
        yield dict(zip(layout.in_names, values, strict=True))


def table(layout: LinearLayout) -> dict[tuple[tuple[str, int], ...], tuple[int, ...]]:
    """The whole map written out, evaluated coordinate by coordinate from the basis vectors."""
    result = {}
    for values in all_inputs(layout):
        coordinates = [0] * layout.rank
        for name, value in values.items():
            for bit, vector in enumerate(layout.bases(name)):
                if value >> bit & 1:
                    coordinates = [c ^ v for c, v in zip(coordinates, vector, strict=True)]
        result[tuple(sorted(values.items()))] = tuple(coordinates)
    return result
