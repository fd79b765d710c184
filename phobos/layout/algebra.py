"""Layouts from layouts: products, composition, inverses, and changes of dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from phobos.layout import gf2
from phobos.layout.build import ceil_pow2, log2
from phobos.layout.linear import LinearLayout
from phobos.layout.text import LayoutError, default_names

# ---- products


@lru_cache(maxsize=1024)
def product(low: LinearLayout, high: LinearLayout) -> LinearLayout:
    """Repeat the tile `low` as `high` says: the direct sum of the two maps.

    In every dimension that both have, `low` takes the low bits and `high` those above.

    >>> low = LinearLayout.parse("lane=[[0, 1], [1, 0]] -> [2, 2]")
    >>> high = LinearLayout.parse("register=[[1, 0]] lane=[[0, 1]] -> [2, 2]")
    >>> str(product(low, high))
    'lane=[[0, 1], [1, 0], [0, 2]] register=[[2, 0]] -> [4, 4]'
    """
    outputs = {name: size * high.out_size(name) for name, size in low.outputs}
    outputs |= {name: size for name, size in high.outputs if name not in outputs}
    frame = LinearLayout((), tuple(outputs.items()))
    names = (*low.in_names, *(n for n in high.in_names if n not in low.in_names))

    def placed(part: LinearLayout, name: str, scale: Mapping[str, int]) -> Iterable[int]:
        for vector in part.bases(name):
            at = dict(zip(part.out_names, vector, strict=True))
            yield frame.pack([at.get(n, 0) * scale.get(n, 1) for n in frame.out_names])

    above = dict(low.outputs)
    inputs = tuple((n, (*placed(low, n, {}), *placed(high, n, above))) for n in names)
    return LinearLayout(inputs, frame.outputs)


@lru_cache(maxsize=1024)
def divide_left(layout: LinearLayout, low: LinearLayout) -> LinearLayout | None:
    """The layout `high` for which `product(low, high)` is `layout`, or None if there is none.

    This is how one finds whether a layout is made of the tiles that an instruction wants.

    >>> lane = LinearLayout.parse("lane=[[1], [2], [4]] -> [8]")
    >>> str(divide_left(lane, LinearLayout.parse("lane=[[1]] -> [2]")))
    'lane=[[1], [2]] -> [4]'
    >>> divide_left(lane, LinearLayout.parse("lane=[[2]] -> [4]")) is None
    True
    """
    if not set(low.out_names) <= set(layout.out_names):
        return None
    if not {n for n, v in low.inputs if v} <= set(layout.in_names):
        return None
    if any(size > layout.out_size(name) for name, size in low.outputs):
        return None
    scales = [low.out_size(name) for name in layout.out_names]
    bases: dict[str, list[tuple[int, ...]]] = {}
    for name in layout.in_names:
        vectors = layout.bases(name)
        if len(vectors) < low.in_bits(name):
            return None
        rest = vectors[low.in_bits(name) :]
        if any(value % scale for v in rest for value, scale in zip(v, scales, strict=True)):
            return None
        bases[name] = [tuple(x // s for x, s in zip(v, scales, strict=True)) for v in rest]
    sizes = {n: size // scale for (n, size), scale in zip(layout.outputs, scales, strict=True)}
    high = LinearLayout.from_bases(bases, sizes)
    return high if product(low, high).is_equivalent(layout) else None


# ---- composition and inverses


@lru_cache(maxsize=1024)
def compose(inner: LinearLayout, outer: LinearLayout) -> LinearLayout:
    """Apply `inner`, then feed its outputs by name to the inputs of `outer`.

    Raises LayoutError if an output of `inner` of more than one value has no input to go to, or
    one that is too small.

    >>> tile = LinearLayout.parse("lane=[[0, 1], [1, 0]] -> [2, 2]")
    >>> column_major = LinearLayout.parse("dim0=[[1]] dim1=[[2]] -> [offset=4]")
    >>> str(compose(tile, column_major))
    'lane=[[2], [1]] -> [offset=4]'
    """
    for name, size in inner.outputs:
        if size > outer.in_size(name):
            raise LayoutError(
                f"cannot compose: '{name}' has {size} values but the next layout takes "
                f"{outer.in_size(name)}"
            )
    columns: list[int] = []  # the image of every packed bit of inner's outputs
    for name, size in reversed(inner.outputs):
        columns.extend(outer.packed(name)[: log2(size)])
    inputs = (
        (name, tuple(gf2.multiply(columns, vector) for vector in vectors))
        for name, vectors in inner.inputs
    )
    return LinearLayout(tuple(inputs), outer.outputs)


def invert(layout: LinearLayout) -> LinearLayout:
    """The inverse of a layout that holds every element exactly once.

    Its inputs are the old outputs and the other way round.  Raises LayoutError for a layout that
    is not invertible; `pseudo_invert` asks less.
    """
    if not layout.is_injective:
        raise LayoutError(f"cannot invert a layout that holds copies: {layout}")
    return pseudo_invert(layout)


@lru_cache(maxsize=1024)
def pseudo_invert(layout: LinearLayout) -> LinearLayout:
    """For a surjective layout the map from coordinates to the canonical owner.

    Where an element is held several times, the owner is the one whose free bits are 0.  Raises
    LayoutError if some element is not held at all.

    >>> layout = LinearLayout.parse("register=[[1]] lane=[[0], [2]] -> [4]")
    >>> str(pseudo_invert(layout))
    'dim0=[[1, 0], [0, 2]] -> [register=2, lane=4]'
    """
    span = gf2.Span(layout.columns)
    frame = LinearLayout((), tuple((name, 1 << len(v)) for name, v in layout.inputs))
    columns: list[int] = []
    for bit in range(log2(layout.elements)):
        flat = span.solve(1 << bit)
        if flat is None:
            raise LayoutError(
                f"cannot invert: nothing holds element {layout.unpack(1 << bit)} of {layout}"
            )
        columns.append(frame.pack(tuple(layout.split_flat(flat).values())))
    inputs: list[tuple[str, tuple[int, ...]]] = []
    for name, size in reversed(layout.outputs):
        bits = log2(size)
        inputs.append((name, tuple(columns[:bits])))
        columns = columns[bits:]
    return LinearLayout(tuple(reversed(inputs)), frame.outputs)


# ---- fewer or other outputs


@lru_cache(maxsize=1024)
def slice_layout(layout: LinearLayout, axes: tuple[int, ...]) -> LinearLayout:
    """The layout with the given axes shrunk to extent 1: their coordinates are dropped.

    It describes the operand that is broadcast along `axes` to a tile in `layout`, and the
    result of a reduction over `axes`.  The input bits stay, some of them now making copies.

    >>> layout = LinearLayout.parse("register=[[0, 1]] lane=[[1, 0]] -> [2, 2]")
    >>> str(slice_layout(layout, (1,)))
    'register=[[0, 0]] lane=[[1, 0]] -> [2, 1]'
    """
    dropped = {layout.axis_of(axis) for axis in axes}
    outputs = [(n, 1 if i in dropped else size) for i, (n, size) in enumerate(layout.outputs)]
    bases = {
        name: [tuple(0 if i in dropped else x for i, x in enumerate(v)) for v in layout.bases(name)]
        for name in layout.in_names
    }
    return LinearLayout.from_bases(bases, dict(outputs))


def transpose(layout: LinearLayout, permutation: Sequence[int]) -> LinearLayout:
    """Permute the axes of the tile: axis i of the result is axis `permutation[i]` of `layout`.

    The names keep their order, so a transposed (dim0, dim1) tile is again (dim0, dim1).

    >>> layout = LinearLayout.parse("register=[[0, 1]] lane=[[1, 0], [2, 0]] -> [4, 2]")
    >>> str(transpose(layout, (1, 0)))
    'register=[[1, 0]] lane=[[0, 1], [0, 2]] -> [2, 4]'
    """
    if sorted(permutation) != list(range(layout.rank)):
        raise LayoutError(
            f"expected a permutation of the {layout.rank} axes, got {list(permutation)}"
        )
    bases = {
        name: [tuple(v[axis] for axis in permutation) for v in layout.bases(name)]
        for name in layout.in_names
    }
    sizes = [layout.shape[axis] for axis in permutation]
    return LinearLayout.from_bases(bases, dict(zip(layout.out_names, sizes, strict=True)))


def permute_bits(layout: LinearLayout, axis: int, places: Sequence[int]) -> LinearLayout:
    """Move bit i of the coordinate along an axis to bit `places[i]`.

    >>> layout = LinearLayout.parse("register=[[0, 2]] warp=[[0, 1]] -> [1, 4]")
    >>> str(permute_bits(layout, 1, (1, 0)))
    'register=[[0, 1]] warp=[[0, 2]] -> [1, 4]'
    """
    if sorted(places) != list(range(log2(layout.shape[axis]))):
        raise LayoutError(f"expected a permutation of the bits of {layout.shape[axis]} elements")

    def moved(vector: tuple[int, ...]) -> tuple[int, ...]:
        value = sum((vector[axis] >> bit & 1) << place for bit, place in enumerate(places))
        return (*vector[:axis], value, *vector[axis + 1 :])

    bases = {name: map(moved, layout.bases(name)) for name in layout.in_names}
    return LinearLayout.from_bases(bases, dict(layout.outputs))


def reshape(layout: LinearLayout, shape: Sequence[int]) -> LinearLayout:
    """Reinterpret the row-major elements as another shape of as many elements.

    >>> layout = LinearLayout.parse("register=[[1], [2]] lane=[[4]] -> [8]")
    >>> str(reshape(layout, (2, 4)))
    'register=[[0, 1], [0, 2]] lane=[[1, 0]] -> [2, 4]'
    """
    result = LinearLayout(layout.inputs, tuple(zip(default_names(len(shape)), shape, strict=True)))
    if result.elements != layout.elements:
        raise LayoutError(f"cannot reshape {layout.elements} elements to {list(shape)}")
    return result


def sublayout(layout: LinearLayout, inputs: Iterable[str], outputs: Iterable[str]) -> LinearLayout:
    """The part of the map between the named inputs and outputs, in the order given."""
    inputs, outputs = tuple(inputs), tuple(outputs)
    axes = [layout.axis_of(name) for name in outputs]
    bases = {n: [tuple(v[axis] for axis in axes) for v in layout.bases(n)] for n in inputs}
    return LinearLayout.from_bases(bases, {n: layout.out_size(n) for n in outputs})


# ---- other inputs


def rename(layout: LinearLayout, names: Mapping[str, str]) -> LinearLayout:
    """Rename input and output dimensions; names that do not occur are ignored."""
    return LinearLayout(
        tuple((names.get(name, name), vectors) for name, vectors in layout.inputs),
        tuple((names.get(name, name), size) for name, size in layout.outputs),
    )


def reorder_inputs(layout: LinearLayout, names: Sequence[str]) -> LinearLayout:
    """The same map with its inputs in the given order; inputs it lacks appear without bits."""
    missing = [name for name, vectors in layout.inputs if vectors and name not in names]
    if missing:
        raise LayoutError(f"the new order lacks the inputs {', '.join(missing)}")
    return LinearLayout(tuple((name, layout.packed(name)) for name in names), layout.outputs)


def flatten_inputs(layout: LinearLayout, names: Sequence[str], flat: str) -> LinearLayout:
    """Join inputs into one, the first of `names` lowest; it takes the place of the first.

    >>> layout = LinearLayout.parse("register=[[1]] lane=[[2], [4]] warp=[[8]] -> [16]")
    >>> str(flatten_inputs(layout, ("lane", "warp"), "thread"))
    'register=[[1]] thread=[[2], [4], [8]] -> [16]'
    """
    joined = tuple(vector for name in names for vector in layout.packed(name))
    inputs: list[tuple[str, tuple[int, ...]]] = []
    for name, vectors in layout.inputs:
        if name not in names:
            inputs.append((name, vectors))
        elif name == names[0]:
            inputs.append((flat, joined))
    return LinearLayout(tuple(inputs), layout.outputs)


def select_bits(layout: LinearLayout, name: str, bits: Iterable[int]) -> LinearLayout:
    """Keep only the given bits of one input, in the order given.

    >>> layout = LinearLayout.parse("register=[[1], [0], [2]] -> [4]")
    >>> str(select_bits(layout, "register", (2, 0)))
    'register=[[2], [1]] -> [4]'
    """
    vectors = layout.packed(name)
    kept = tuple(vectors[bit] for bit in bits)
    inputs = tuple((n, kept if n == name else v) for n, v in layout.inputs)
    return LinearLayout(inputs, layout.outputs)


def drop_copies(layout: LinearLayout, name: str = "register") -> LinearLayout:
    """Remove the bits of one input that only make copies within that input.

    A tile sliced for broadcasting needs only these registers: register r of the result is
    register `representatives("register")[r]` of the sliced layout, if only registers are looked at.
    """
    free = gf2.free_columns(layout.packed(name))
    return select_bits(layout, name, [b for b in range(layout.in_bits(name)) if not free >> b & 1])


def pad_to_pow2(shape: Sequence[int]) -> tuple[int, ...]:
    """The tile size that a layout covers for a tile of any extents.

    >>> pad_to_pow2((3, 100))
    (4, 128)
    """
    return tuple(map(ceil_pow2, shape))
