"""`ph-assign-layouts`: decide which register of which lane of which warp holds what.

    %a = tile.load %x[%i] in_bounds [false] vector 4 : memref<?xf32> -> tensor<1024xf32>
    %b = arith.addf %a, %a : tensor<1024xf32>
    -->
    %a = tile.load ... -> tensor<1024xf32, #tile.layout<"register=[[1], [2]] lane=...">>
    %b = arith.addf %a, %a : tensor<1024xf32, #tile.layout<"...">>

Tiles that are computed on elementwise with each other, or flow into each other through
branches and loops, form a class and share one layout. The layout puts consecutive elements
into consecutive lanes, in vectors as wide as the class's accesses can use, and warps along
axes that are not folded where there are such. The operand of a broadcast takes the layout of
the result with the repeated axes dropped, so that repeating is free; so does the result of a
fold, and a transposed or reshaped tile that nothing else decides. A contraction decides the
layout of what it sums in (of several, one in the innermost loop), and wants its operands as its
instruction has them. Where two ask for different layouts, a `tile.convert_layout` bridges them.

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
    MemRefType,
    ModuleOp,
    TensorType,
    VectorType,
)
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.disjoint_set import DisjointSet

from phobos.dialects import tile
from phobos.dialects.cluster import SumOp
from phobos.dialects.contraction import (
    OPERAND_FORMS,
    DotOp,
    Instruction,
    by_warpgroups,
    described_operand,
)
from phobos.dialects.elements import element_bytes
from phobos.dialects.gathering import GatherOp, ScatterOp
from phobos.dialects.scanning import ScanOp
from phobos.dialects.shaping import ReduceOp, ReshapeOp, TransposeOp
from phobos.ir.kernel import kernels, threads_of
from phobos.ir.locations import error_at
from phobos.ir.rewrite import retype
from phobos.layout import LinearLayout, elementwise_layout, slice_layout
from phobos.layout.algebra import pad_to_pow2, reshape, transpose
from phobos.layout.build import thread_bits
from phobos.layout.contraction import (
    Contraction,
    batched,
    fma_contraction,
    mma_contraction,
    wgmma_contraction,
    wmma_contraction,
)
from phobos.layout.fragments import REGISTER_BITS
from phobos.layout.scan import plan_scan, scan_layout
from phobos.transforms.contraction_forms import fault_of, operand_name

MAX_VECTOR_BYTES = 16
_Access = tile.LoadOp | tile.StoreOp | GatherOp | ScatterOp


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
    accesses: list[_Access] = field(default_factory=list)
    near: list[_Access] = field(default_factory=list)
    """Accesses of tiles that the class is a reshape of, or that are reshapes of it."""
    repeated: list[tile.BroadcastOp] = field(default_factory=list)
    """Broadcasts whose operand is in the class."""
    folded: list[ReduceOp] = field(default_factory=list)
    """Folds whose result is in the class."""
    turned: list[TransposeOp | ReshapeOp] = field(default_factory=list)
    """Transpositions and reshapes whose result is in the class."""
    reshaped: list[ReshapeOp] = field(default_factory=list)
    """Reshapes whose operand is in the class."""
    dots: list[DotOp] = field(default_factory=list)
    """Contractions that sum in the class."""
    folded_axes: set[int] = field(default_factory=set)
    """Axes that tiles of the class are folded along."""
    scanned_axes: list[int] = field(default_factory=list)
    """Axes that tiles of the class are scanned along, in program order."""


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
        match op:
            case tile.BroadcastOp():
                bridge_operand(op, slice_layout(_layout(op.result), _unit_axes(op.value)))
            case TransposeOp():
                bridge_operand(op, turned(_layout(op.result)))
            case ReshapeOp():
                bridge_operand(op, reshaped(_layout(op.result), op.value))
            case ReduceOp():
                bridge_result(op, slice_layout(_layout(op.value), op.axes.data))
            case ScanOp():
                _bridge_scan(op, threads_of(kernel))
            case DotOp():
                _bridge_dot(op, contraction_of(op, threads_of(kernel)))
            case _:
                pass


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
    reshapes: list[ReshapeOp] = []
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
        if isinstance(op, tile.LoadOp | GatherOp):
            classes[class_of[op.result]].accesses.append(op)
        elif isinstance(op, tile.StoreOp | ScatterOp):
            classes[class_of[op.value]].accesses.append(op)
        elif isinstance(op, tile.BroadcastOp):
            classes[class_of[op.value]].repeated.append(op)
        elif isinstance(op, ScanOp):
            classes[class_of[op.result]].scanned_axes.append(op.axis)
        elif isinstance(op, DotOp):
            classes[class_of[op.result]].dots.append(op)
        elif isinstance(op, TransposeOp | ReshapeOp):
            classes[class_of[op.result]].turned.append(op)
            if isinstance(op, ReshapeOp):
                classes[class_of[op.value]].reshaped.append(op)
                reshapes.append(op)
        elif isinstance(op, ReduceOp):
            classes[class_of[op.result]].folded.append(op)
            classes[class_of[op.value]].folded_axes.update(op.axes.data)
    for op in reshapes:
        source, result = classes[class_of[op.value]], classes[class_of[op.result]]
        result.near += source.accesses
        source.near += result.accesses
    return classes, class_of


def _equal_layouts(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Pairs of tiles that an op forces to have one layout."""
    match op:
        case tile.BroadcastOp() | tile.ConvertLayoutOp() | ReduceOp() | SumOp():
            return
        case TransposeOp() | ReshapeOp() | scf.YieldOp() | scf.ConditionOp():
            return
        case DotOp():
            yield op.c, op.result
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
    """A layout for each class: derived from another class's where one decides, else its own."""
    chosen: dict[int, LinearLayout] = {}
    asked: set[int] = set()

    def choose(number: int) -> LinearLayout:
        if number not in chosen:
            asked.add(number)
            chosen[number] = _derived(number) or _own_layout(classes[number], threads)
        return chosen[number]

    def _derived(number: int) -> LinearLayout | None:
        tiles = classes[number]
        if tiles.dots:
            # Those that run most often should need no conversion.
            return contraction_of(max(tiles.dots, key=_loop_depth), threads).c
        for repeat in tiles.repeated:
            source = class_of[repeat.result]
            if source not in asked - chosen.keys():
                return slice_layout(choose(source), _unit_axes(repeat.value))
        for fold in tiles.folded:
            source = class_of[fold.value]
            if source not in asked - chosen.keys():
                return slice_layout(choose(source), fold.axes.data)
        for turn in tiles.turned:
            source = class_of[turn.value]
            if not tiles.accesses and source not in asked - chosen.keys():
                layout = choose(source)
                if isinstance(turn, TransposeOp):
                    return turned(layout)
                return reshaped(layout, turn.result)
        for shape in tiles.reshaped:
            # What is only read may as well be read where its reshape needs it.
            source = class_of[shape.result]
            is_stored = any(isinstance(op, tile.StoreOp | ScatterOp) for op in tiles.accesses)
            if not is_stored and source not in asked - chosen.keys():
                return reshaped(choose(source), shape.value)
        return None

    return [choose(number) for number in range(len(classes))]


def operand_packing(instruction: Instruction) -> int:
    """Operand elements in one 32-bit register of an `mma`."""
    return max(1, REGISTER_BITS // OPERAND_FORMS[instruction.a].bits)


def loads_operands(op: DotOp) -> bool:
    """Whether the instruction loads its operands from memory itself."""
    return op.instruction is not None and op.instruction.data.name == "wmma"


def contraction_of(op: DotOp, threads: int, depth: int | None = None) -> Contraction:
    """The layouts that a contraction's instruction asks for; of `depth` along K, not all of it."""
    if op.instruction is None:
        raise error_at(op, "this contraction has no instruction: run ph-select-contraction first")
    chosen = op.instruction.data
    fault = fault_of(chosen, _elements(op), 1 << thread_bits(threads)[1])
    if fault is not None:
        raise error_at(op, f"this product cannot be made by `{chosen}`: {fault}")
    a, b = op.a.type, op.b.type
    assert isinstance(a, TensorType | MemRefType)
    assert isinstance(b, TensorType | MemRefType)
    *lead, m, k = a.get_shape()
    n = b.get_shape()[-1]
    k = k if depth is None else depth
    match chosen.name:
        case "mma":
            packed = operand_packing(chosen)
            layouts = mma_contraction((m, n, k), chosen.shape, packed, chosen.warps)
        case "wgmma":
            packed = operand_packing(chosen)
            layouts = wgmma_contraction(
                (m, n, k), chosen.shape, packed, chosen.warps, turned=chosen.turned
            )
        case "wmma":
            layouts = wmma_contraction((m, n, k), chosen.shape, chosen.warps)
        case _:
            layouts = fma_contraction((m, n, k), thread_bits(threads)[0], chosen.warps)
    return batched(layouts, tuple(lead))


def _elements(op: DotOp) -> tuple[str, str, str]:
    """The operands and the sum of a contraction, as instructions call them."""
    types = [value.type for value in (op.a, op.b, op.c)]
    a, b, c = (t.element_type for t in types if isinstance(t, TensorType | MemRefType | VectorType))
    return (
        operand_name(a, unsigned=op.unsigned_a is not None),
        operand_name(b, unsigned=op.unsigned_b is not None),
        operand_name(c),
    )


def _unit_axes(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, TensorType)
    return tuple(axis for axis, extent in enumerate(value.type.get_shape()) if extent == 1)


def turned(layout: LinearLayout) -> LinearLayout:
    """A layout with its last two axes exchanged."""
    rank = layout.rank
    return transpose(layout, (*range(rank - 2), rank - 1, rank - 2))


def reshaped(layout: LinearLayout, value: SSAValue) -> LinearLayout:
    """A layout with its row-major elements in the shape of a tile."""
    assert isinstance(value.type, TensorType)
    return reshape(layout, pad_to_pow2(value.type.get_shape()))


def _own_layout(tiles: _TileClass, threads: int) -> LinearLayout:
    """Consecutive lanes hold consecutive vectors; warps keep off folded axes if they can."""
    if tiles.scanned_axes:
        return scan_layout(tiles.shape, threads, _vector(tiles, threads), tiles.scanned_axes[0])
    rank = len(tiles.shape)
    axes = tuple(reversed(range(rank)))
    warp_order = sorted(axes, key=lambda axis: axis in tiles.folded_axes)
    return elementwise_layout(
        tiles.shape, threads, _vector(tiles, threads), axes, tuple(warp_order)
    )


def _vector(tiles: _TileClass, threads: int) -> int:
    """Consecutive elements a thread holds: 16 bytes of the widest type that is moved.

    An access that is proven only for fewer elements is split, so the widest proof decides.
    Never so many that threads would be left without work. What is reshaped to or from what is
    accessed is held as those accesses need it, if it is not accessed itself.
    """
    accesses = tiles.accesses or tiles.near
    if not accesses:
        return 1
    # A wide type that is moved on the other side of a reshape would be moved in pieces.
    widest = max(_element_bytes(access) for access in (*tiles.accesses, *tiles.near))
    proven = max(_proven(access) for access in accesses)
    elements = 1
    for extent in tiles.shape:
        elements *= extent
    share = max(1, elements // threads)
    return min(MAX_VECTOR_BYTES // widest, proven, 1 << share.bit_length() - 1)


def _proven(access: _Access) -> int:
    return access.vector.value.data if access.vector is not None else 1


def _element_bytes(access: _Access) -> int:
    type_ = access.result.type if isinstance(access, tile.LoadOp | GatherOp) else access.value.type
    return element_bytes(type_)


def _distribute(value: SSAValue, layout: tile.LayoutAttr) -> None:
    """Writes the layout into a tile's type, and into the constant it may be made of."""
    assert isinstance(value.type, TensorType)
    type_ = TensorType(value.type.element_type, value.type.get_shape(), layout)
    owner = value.owner
    retype(value, type_)
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr):
        owner.properties["value"] = DenseIntOrFPElementsAttr(type_, owner.value.data)


def _layout(value: SSAValue) -> LinearLayout:
    layout = tile.layout_of(value)
    assert layout is not None
    return layout


def _bridge_scan(op: ScanOp, threads: int) -> None:
    """Scans in a layout of its own what its class has in one that no scan can use."""
    if plan_scan(_layout(op.value), op.axis) is not None:
        return
    assert isinstance(op.value.type, TensorType)
    wanted = scan_layout(op.value.type.get_shape(), threads, 1, op.axis)
    bridge_operand(op, wanted)
    bridge_result(op, wanted)


def _bridge_dot(op: DotOp, wanted: Contraction) -> None:
    """Gives a contraction its operands and sums as its instruction has them.

    One class may hold sums of several instructions, as in `dot(a, b) * dot(c, d)`.
    """
    if not loads_operands(op):
        assert op.instruction is not None
        described = described_operand(op.instruction.data) if by_warpgroups(op) else None
        bridge_operand(op, wanted.a, 0, always=described == 0)
        bridge_operand(op, wanted.b, 1, always=described == 1)
    bridge_operand(op, wanted.c, 2)
    bridge_result(op, wanted.c)


def _loop_depth(op: Operation) -> int:
    """How many loops an op is in."""
    depth = 0
    parent = op.parent_op()
    while parent is not None:
        depth += isinstance(parent, scf.ForOp | scf.WhileOp)
        parent = parent.parent_op()
    return depth


def bridge_operand(
    op: Operation, wanted: LinearLayout, position: int = 0, *, always: bool = False
) -> None:
    """Converts an op's operand if its class chose another layout than the op needs."""
    value = op.operands[position]
    if _layout(value) == wanted and not always:
        return
    assert isinstance(value.type, TensorType)
    convert = tile.ConvertLayoutOp(value, with_layout(value.type, wanted))
    convert.location = op.location
    assert op.parent is not None
    op.parent.insert_op_before(convert, op)
    op.operands[position] = convert.result


def bridge_result(op: Operation, given: LinearLayout) -> None:
    """Converts an op's result if its class chose another layout than the op gives."""
    result = op.results[0]
    if _layout(result) == given:
        return
    wanted = result.type
    assert isinstance(wanted, TensorType)
    made = retype(result, with_layout(wanted, given))
    convert = tile.ConvertLayoutOp(made, wanted)
    convert.location = op.location
    made.replace_uses_with_if(convert.result, lambda use: use.operation is not convert)
    assert op.parent is not None
    op.parent.insert_op_after(convert, op)


def with_layout(type_: TensorType, layout: LinearLayout) -> TensorType:
    """A tile's type with another layout."""
    return TensorType(type_.element_type, type_.get_shape(), tile.LayoutAttr(layout))
