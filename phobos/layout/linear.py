"""Linear layouts: one description of who holds which element of a tile.

A layout is a linear map over GF(2) from the bits of named inputs (register, lane, warp; or the
offset in shared memory) to the bits of tile coordinates.  It is given by what each single input
bit contributes; the coordinates of any input are the XOR of its bits' contributions.

    >>> layout = LinearLayout.parse("register=[[0, 1]] lane=[[0, 2], [1, 0]] -> [2, 4]")
    >>> layout.apply(register=1, lane=3)
    (1, 3)

Coordinates are stored packed, as the row-major index in the tile (last output lowest), so XOR
of packed values is XOR of every coordinate.  The flat number of an input counts the other way
round: the first input dimension (register) has the lowest bits, as in thread = lane + 32 * warp.
Every size is a power of two; `phobos.layout.overhang` adds extents that are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from phobos.layout import gf2
from phobos.layout.text import LayoutError, default_names, format_layout, parse_layout


@dataclass(frozen=True, slots=True)
class LinearLayout:
    """A linear map from input bits to tile coordinates; immutable and hashable.

    `inputs` holds (name, packed basis vectors, lowest bit first) and `outputs` (name, size).
    Build one with `from_bases`, `parse` or the constructors of `phobos.layout.build`.
    """

    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[tuple[str, int], ...]
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for names in (self.in_names, self.out_names):
            if len(set(names)) != len(names):
                raise LayoutError(f"dimension names must differ, got {', '.join(names)}")
        for name, size in self.outputs:
            if size < 1 or size & (size - 1):
                raise LayoutError(
                    f"size of output dimension '{name}' must be a power of two, got {size}"
                )
        elements = self.elements
        for name, vectors in self.inputs:
            for bit, vector in enumerate(vectors):
                if not 0 <= vector < elements:
                    raise LayoutError(f"basis vector {bit} of '{name}' lies outside the tile")
        object.__setattr__(self, "_hash", hash((self.inputs, self.outputs)))

    def __hash__(self) -> int:
        return self._hash

    # ---- construction and text

    @staticmethod
    def from_bases(
        bases: Mapping[str, Iterable[Sequence[int]]],
        outputs: Mapping[str, int] | Sequence[int],
    ) -> LinearLayout:
        """Build a layout from one coordinate vector per input bit.

        `outputs` maps names to sizes, or is a plain shape whose axes are called dim0, dim1, ....

        >>> str(LinearLayout.from_bases({"lane": [(0, 1), (1, 0)]}, (2, 2)))
        'lane=[[0, 1], [1, 0]] -> [2, 2]'
        """
        if not isinstance(outputs, Mapping):
            outputs = dict(zip(default_names(len(outputs)), outputs, strict=True))
        empty = LinearLayout((), tuple(outputs.items()))
        return LinearLayout(
            tuple((name, tuple(map(empty.pack, vectors))) for name, vectors in bases.items()),
            empty.outputs,
        )

    @staticmethod
    def parse(text: str) -> LinearLayout:
        """Read back what `str(layout)` prints; raises LayoutError on anything else."""
        return LinearLayout.from_bases(*parse_layout(text))

    def __str__(self) -> str:
        bases = {name: self.bases(name) for name in self.in_names}
        return format_layout(bases, self.out_names, self.shape)

    # ---- dimensions

    @property
    def in_names(self) -> tuple[str, ...]:
        """The input dimensions, the one with the lowest flat bits first."""
        return tuple(name for name, _ in self.inputs)

    @property
    def out_names(self) -> tuple[str, ...]:
        """The output dimensions, the one with the lowest packed bits last."""
        return tuple(name for name, _ in self.outputs)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each output dimension."""
        return tuple(size for _, size in self.outputs)

    @property
    def rank(self) -> int:
        """The number of output dimensions."""
        return len(self.outputs)

    @property
    def elements(self) -> int:
        """The number of elements of the tile."""
        product = 1
        for _, size in self.outputs:
            product *= size
        return product

    @property
    def columns(self) -> tuple[int, ...]:
        """The packed basis vectors of all inputs, in flat order."""
        return tuple(vector for _, vectors in self.inputs for vector in vectors)

    def packed(self, name: str) -> tuple[int, ...]:
        """The packed basis vectors of one input; none if the layout lacks that input."""
        for known, vectors in self.inputs:
            if known == name:
                return vectors
        return ()

    def bases(self, name: str) -> tuple[tuple[int, ...], ...]:
        """The basis vectors of one input as coordinate tuples."""
        return tuple(map(self.unpack, self.packed(name)))

    def in_bits(self, name: str) -> int:
        """The number of bits of an input; an input the layout lacks has none."""
        return len(self.packed(name))

    def in_size(self, name: str) -> int:
        """The number of values of an input, 1 for one the layout lacks."""
        return 1 << self.in_bits(name)

    def out_size(self, name: str) -> int:
        """The size of an output dimension, 1 for one the layout lacks."""
        return dict(self.outputs).get(name, 1)

    def axis_of(self, axis: int | str) -> int:
        """The position of an output given by name or position; LayoutError if there is none."""
        if isinstance(axis, str):
            if axis in self.out_names:
                return self.out_names.index(axis)
        elif 0 <= axis < self.rank:
            return axis
        raise LayoutError(f"no output dimension {axis!r}, the layout has {self._outs()}")

    def _outs(self) -> str:
        return ", ".join(self.out_names) or "none"

    # ---- evaluation

    def pack(self, coordinates: Sequence[int]) -> int:
        """The row-major index of a coordinate tuple; LayoutError if it is outside the tile."""
        if len(coordinates) != self.rank:
            raise LayoutError(
                f"expected {self.rank} coordinates ({self._outs()}), got {len(coordinates)}"
            )
        packed = 0
        for (name, size), value in zip(self.outputs, coordinates, strict=True):
            if not 0 <= value < size:
                raise LayoutError(f"coordinate {value} is outside '{name}' of size {size}")
            packed = packed * size + value
        return packed

    def unpack(self, packed: int) -> tuple[int, ...]:
        """The coordinates of a row-major index."""
        reversed_coordinates: list[int] = []
        for _, size in reversed(self.outputs):
            reversed_coordinates.append(packed & (size - 1))
            packed >>= size.bit_length() - 1
        return tuple(reversed(reversed_coordinates))

    def apply(self, **indices: int) -> tuple[int, ...]:
        """The coordinates held at the given inputs; inputs left out count as 0."""
        return self.unpack(self.apply_packed(indices))

    def apply_packed(self, indices: Mapping[str, int]) -> int:
        """Like `apply`, with the coordinates packed."""
        packed = 0
        for name, index in indices.items():
            vectors = self.packed(name)
            if index < 0 or index >> len(vectors):
                known = ", ".join(f"{n} < {1 << len(v)}" for n, v in self.inputs)
                raise LayoutError(f"no input {name} = {index}; the layout has {known}")
            packed ^= gf2.multiply(vectors, index)
        return packed

    def split_flat(self, flat: int) -> dict[str, int]:
        """Take a flat input number apart into the value of each input."""
        values: dict[str, int] = {}
        for name, vectors in self.inputs:
            values[name] = flat & ((1 << len(vectors)) - 1)
            flat >>= len(vectors)
        return values

    # ---- properties

    @property
    def matrix_rank(self) -> int:
        """The rank of the map; 2 to this power elements of the tile are held."""
        return gf2.rank(self.columns)

    @property
    def is_surjective(self) -> bool:
        """True if every element of the tile is held somewhere."""
        return 1 << self.matrix_rank == self.elements

    @property
    def is_injective(self) -> bool:
        """True if no element is held twice."""
        return self.matrix_rank == len(self.columns)

    @property
    def is_invertible(self) -> bool:
        """True if every element is held exactly once."""
        return self.is_surjective and self.is_injective

    def free_masks(self) -> dict[str, int]:
        """For each input the mask of bits that only make copies.

        A bit is free if its basis vector depends on those of lower flat bits.  Inputs whose free
        bits are all 0 are the canonical owners: they hold each element exactly once.

        >>> LinearLayout.parse("register=[[1]] lane=[[2], [0]] -> [4]").free_masks()
        {'register': 0, 'lane': 2}
        """
        return self.split_flat(gf2.free_columns(self.columns))

    def free_mask(self, name: str) -> int:
        """The mask of the bits of one input that only make copies (see `free_masks`)."""
        return self.free_masks().get(name, 0)

    def zero_mask(self, name: str) -> int:
        """The mask of the bits of one input that change nothing at all."""
        return sum(1 << bit for bit, vector in enumerate(self.packed(name)) if not vector)

    def representatives(self, name: str) -> tuple[int, ...]:
        """The values of one input whose free bits are all 0, ascending.

        >>> LinearLayout.parse("register=[[1], [1], [2]] -> [4]").representatives("register")
        (0, 1, 4, 5)
        """
        free = self.free_mask(name)
        return tuple(value for value in range(self.in_size(name)) if not value & free)

    def owner(self, coordinates: Sequence[int]) -> dict[str, int] | None:
        """The canonical owner of an element, or None if nothing holds it."""
        flat = gf2.Span(self.columns).solve(self.pack(coordinates))
        return None if flat is None else self.split_flat(flat)

    def is_equivalent(self, other: LinearLayout) -> bool:
        """True if both are the same map, whatever the order of their dimensions.

        Inputs without bits and outputs of size 1 do not count.
        """
        return self._normal_form() == other._normal_form()

    def _normal_form(self) -> tuple[object, ...]:
        outputs = tuple(sorted((name, size) for name, size in self.outputs if size > 1))
        named = ((name, self.bases(name)) for name, vectors in self.inputs if vectors)
        inputs = (
            (name, tuple(tuple(sorted(zip(self.out_names, v, strict=True))) for v in vectors))
            for name, vectors in named
        )
        keep = {name for name, _ in outputs}
        return outputs, tuple(
            sorted((n, tuple(tuple(p for p in v if p[0] in keep) for v in vs)) for n, vs in inputs)
        )
