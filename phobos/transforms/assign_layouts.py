"""`ph-assign-layouts`: decide which register of which lane of which warp holds what.

    %a = tile.load %x[%i] in_bounds [false] vector 4 : memref<?xf32> -> tensor<1024xf32>
    %b = arith.addf %a, %a : tensor<1024xf32>
    -->
    %a = tile.load ... -> tensor<1024xf32, #tile.layout<"register=[[1], [2]] lane=...">>
    %b = arith.addf %a, %a : tensor<1024xf32, #tile.layout<"...">>

Tiles that are computed on elementwise with each other, or flow into each other through
branches and loops, form a class and share one layout. The layout puts consecutive elements
into consecutive lanes, in vectors as wide as the class's accesses can use. The operand of a
broadcast takes the layout of the result with the repeated axes dropped, so that repeating is
free; where two results ask for different ones, a `tile.convert_layout` bridges them.

Precondition: `ph-analyze-extents`. Postcondition: every tile type carries a layout.
Cost: two walks and a union-find, about 4 us an op with tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    ModuleOp,
    TensorType,
)
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.disjoint_set import DisjointSet

from phobos.dialects import tile
from phobos.ir.kernel import kernels, threads_of
from phobos.ir.rewrite import retype
from phobos.layout import LinearLayout, elementwise_layout, slice_layout

MAX_VECTOR_BYTES = 16


@dataclass(frozen=True)
class AssignLayoutsPass(ModulePass):
    """Gives every tile of every kernel a layout."""

    name = "ph-assign-layouts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Retypes the tiles of every kernel of the module."""
        for kernel in kernels(op):
            assign_layouts(kernel)


@dataclass
class _TileClass:
    """Tiles that share a layout, and what bears on its choice."""

    shape: tuple[int, ...]
    values: list[SSAValue] = field(default_factory=list)
    accesses: list[tile.LoadOp | tile.StoreOp] = field(default_factory=list)
    repeated: list[tile.BroadcastOp] = field(default_factory=list)
    """Broadcasts whose operand is in the class."""


def assign_layouts(kernel: gpu.FuncOp) -> None:
    """Retypes the tiles of one kernel."""
    classes, class_of = _classes(kernel)
    if not classes:
        return
    layouts = _choose(classes, class_of, threads_of(kernel))
    for tiles, layout in zip(classes, layouts, strict=True):
        attr = tile.LayoutAttr(layout)
        for value in tiles.values:
            _distribute(value, attr)
    for op in list(kernel.walk()):
        if isinstance(op, tile.BroadcastOp):
            _bridge(op)


def _is_tile(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


def _all_values(kernel: gpu.FuncOp) -> Iterator[SSAValue]:
    for op in kernel.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _classes(kernel: gpu.FuncOp) -> tuple[list[_TileClass], dict[SSAValue, int]]:
    """The classes in program order, and each tile's class."""
    tiles = [value for value in _all_values(kernel) if _is_tile(value)]
    links = DisjointSet(tiles)
    for op in kernel.walk():
        for left, right in _equal_layouts(op):
            links.union(left, right)
    numbers: dict[SSAValue, int] = {}
    classes: list[_TileClass] = []
    class_of: dict[SSAValue, int] = {}
    for value in tiles:
        root = links.find(value)
        if root not in numbers:
            numbers[root] = len(classes)
            assert isinstance(value.type, TensorType)
            classes.append(_TileClass(value.type.get_shape()))
        class_of[value] = numbers[root]
        classes[class_of[value]].values.append(value)
    for op in kernel.walk():
        if isinstance(op, tile.LoadOp):
            classes[class_of[op.result]].accesses.append(op)
        elif isinstance(op, tile.StoreOp):
            classes[class_of[op.value]].accesses.append(op)
        elif isinstance(op, tile.BroadcastOp):
            classes[class_of[op.value]].repeated.append(op)
    return classes, class_of


def _equal_layouts(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Pairs of tiles that an op forces to have one layout."""
    match op:
        case tile.BroadcastOp() | tile.ConvertLayoutOp():
            return
        case scf.ForOp():
            for i, argument in enumerate(op.body.block.args[1:]):
                yield from _tiles(op.iter_args[i], argument, op.results[i], _yielded(op, 0)[i])
        case scf.IfOp():
            for i, result in enumerate(op.results):
                yield from _tiles(result, _yielded(op, 0)[i], _yielded(op, 1)[i])
        case scf.WhileOp():
            passed = _yielded(op, 0)[1:]
            for i, argument in enumerate(op.before_region.block.args):
                yield from _tiles(argument, op.arguments[i], _yielded(op, 1)[i])
            for i, argument in enumerate(op.after_region.block.args):
                yield from _tiles(argument, op.results[i], passed[i])
        case _:
            yield from _tiles(*op.operands, *op.results)


def _yielded(op: Operation, region: int) -> list[SSAValue]:
    last = op.regions[region].block.last_op
    return list(last.operands) if last is not None else []


def _tiles(*values: SSAValue) -> Iterator[tuple[SSAValue, SSAValue]]:
    tiles = [value for value in values if _is_tile(value)]
    yield from ((tiles[0], other) for other in tiles[1:])


def _choose(
    classes: list[_TileClass], class_of: dict[SSAValue, int], threads: int
) -> list[LinearLayout]:
    """A layout for each class; operands of broadcasts follow their results."""
    chosen: dict[int, LinearLayout] = {}

    def choose(number: int) -> LinearLayout:
        found = chosen.get(number)
        if found is not None:
            return found
        tiles = classes[number]
        # A cycle of broadcasts cannot be: each step has fewer axes of extent 1.
        if tiles.repeated:
            target = tiles.repeated[0].result
            axes = tuple(axis for axis, extent in enumerate(tiles.shape) if extent == 1)
            layout = slice_layout(choose(class_of[target]), axes)
        else:
            vector = _vector(tiles, threads)
            layout = elementwise_layout(tiles.shape, threads, vector)
        chosen[number] = layout
        return layout

    return [choose(number) for number in range(len(classes))]


def _vector(tiles: _TileClass, threads: int) -> int:
    """Consecutive elements a thread holds: 16 bytes of the widest type that is moved.

    An access that is proven only for fewer elements is split, so the widest proof decides.
    Never so many that threads would be left without work.
    """
    if not tiles.accesses:
        return 1
    widest = max(_element_bytes(access) for access in tiles.accesses)
    proven = max(_proven(access) for access in tiles.accesses)
    elements = 1
    for extent in tiles.shape:
        elements *= extent
    share = max(1, elements // threads)
    return min(MAX_VECTOR_BYTES // widest, proven, 1 << share.bit_length() - 1)


def _proven(access: tile.LoadOp | tile.StoreOp) -> int:
    return access.vector.value.data if access.vector is not None else 1


def _element_bytes(access: tile.LoadOp | tile.StoreOp) -> int:
    type_ = access.result.type if isinstance(access, tile.LoadOp) else access.value.type
    assert isinstance(type_, TensorType)
    element = type_.element_type
    assert isinstance(element, FixedBitwidthType)
    return element.size


def _distribute(value: SSAValue, layout: tile.LayoutAttr) -> None:
    """Writes the layout into a tile's type, and into the constant it may be made of."""
    assert isinstance(value.type, TensorType)
    type_ = TensorType(value.type.element_type, value.type.get_shape(), layout)
    owner = value.owner
    retype(value, type_)
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr):
        owner.properties["value"] = DenseIntOrFPElementsAttr(type_, owner.value.data)


def _bridge(op: tile.BroadcastOp) -> None:
    """Converts a broadcast's operand if another broadcast decided its layout."""
    source, target = op.value.type, tile.layout_of(op.result)
    assert isinstance(source, TensorType)
    assert target is not None
    axes = tuple(axis for axis, extent in enumerate(source.get_shape()) if extent == 1)
    wanted = slice_layout(target, axes)
    if tile.layout_of(op.value) == wanted:
        return
    type_ = TensorType(source.element_type, source.get_shape(), tile.LayoutAttr(wanted))
    convert = tile.ConvertLayoutOp(op.value, type_)
    convert.location = op.location
    assert op.parent is not None
    op.parent.insert_op_before(convert, op)
    op.operands[0] = convert.result
