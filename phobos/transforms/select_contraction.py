"""`ph-select-contraction`: choose the instructions that a contraction is made of.

    %d = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
    -->
    %d = tile.dot %a, %b, %c using <"mma m16n8k16 f16 f32 warps 2x2"> : ...

f16, bf16 and i8 operands go to the tensor cores where the chip has a shape for them; f32
operands do so if the kernel asks (`@tensorcore`), rounded to the type that it names. All
others are multiply-adds. A thread's own sum of byte products becomes `dp4a`:

    %a32 = tile.extsi %a : vector<16xi8> to vector<16xi32>
    %b32 = tile.extsi %b : vector<16xi8> to vector<16xi32>
    %p = arith.muli %a32, %b32 : vector<16xi32>
    %s = vector.reduction <add>, %p : vector<16xi32> into i32
    -->
    %s = tile.run_dot %a, %b, %zero : vector<16xi8>

With `tensor_maps`, which lets copies round f32 to tf32 on their way to shared memory, `wgmma` makes
products of tf32 whose operands tensor copies bring, and which are rounded first; turned where A and
B are loaded along rows:

    %d = tile.dot %a, %b, %c : ...
    -->
    %x = tile.round_tf32 %a : ...
    %y = tile.round_tf32 %b : ...
    %d = tile.dot %x, %y, %c using <"wgmma m64n256k8 tf32 f32 warps 8x1 turned"> : ...

Precondition: tile-level IR. Cost: one walk.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, gpu, vector
from xdsl.dialects.builtin import (
    Float32Type,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    VectorType,
    f16,
    i8,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.analysis.occupancy import registers_of
from phobos.diagnostics import Diagnostic, Location, tell
from phobos.dialects import elementwise, tile
from phobos.dialects.contraction import (
    OPERAND_FORMS,
    WGMMA,
    DotOp,
    Instruction,
    InstructionAttr,
)
from phobos.dialects.ptx.matrix import MmaShape, WmmaShape
from phobos.dialects.shaping import IotaOp, ReduceOp, TransposeOp
from phobos.ir.kernel import FAST_MATH, index_bits_of, kernels, threads_of
from phobos.ir.locations import error_at, location_of
from phobos.ir.rewrite import insert_before, zero_attr
from phobos.layout.build import LANE_BITS, ceil_pow2, thread_bits
from phobos.layout.contraction import THREAD_EDGE, split_warps
from phobos.record import Record, record
from phobos.targets.ptx.chips import CHIPS, Chip, chip
from phobos.transforms.contraction_forms import (
    ASKED,
    MAX_SUM_REGISTERS,
    NEEDED,
    SMALL_FLOATS,
    SYNC,
    WMMA,
    Form,
    WarpgroupPiece,
    element_name,
    forms,
    mma_for,
    operand_name,
    rounds_before,
    takes_any_side,
    wgmma_for,
    wgmma_rows,
    wmma_for,
)
from phobos.transforms.copied_operands import Obstacle, obstacle_to_operands

GROUP = "fallback"
TENSORCORE = "phobos.tensorcore"
_ZERO = IntegerAttr(0, i32)


@dataclass(frozen=True)
class SelectContractionPass(ModulePass):
    """Writes the instruction on every contraction; rewrites sums of byte products of runs."""

    name = "ph-select-contraction"

    chip: str = "sm_80"
    tensor_maps: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        target = chip(self.chip)
        for kernel in kernels(op):
            told: set[Location | None] = set()
            for inner in list(kernel.walk()):
                if isinstance(inner, vector.ReductionOp):
                    _to_run_dot(inner)
                elif isinstance(inner, DotOp) and inner.instruction is None:
                    choice = choose(inner, kernel, target, tensor_maps=self.tensor_maps)
                    if choice.name == "fma" and TENSORCORE in kernel.attributes:
                        _tell_why_not(inner, choice, told)
                    _select(inner, kernel, choice)


def _tell_why_not(op: DotOp, choice: Choice, told: set[Location | None]) -> None:
    """A warning, one for the copies that a product of the program was made into."""
    place = location_of(op)
    if place not in told:
        told.add(place)
        message = f"tensor cores are not used for this product: {choice.reason}"
        tell(Diagnostic.warning(message, place, group=GROUP))


# ---- tiles


@record
class Choice(Record):
    """What a contraction is made of: `wgmma`, `mma` or `wmma` with operands and shape, or `fma`.

    `reason` says in words why it is that.
    """

    name: str
    form: Form | None
    row: MmaShape | WmmaShape | WarpgroupPiece | None
    reason: str


def choose(op: DotOp, kernel: gpu.FuncOp, target: Chip, *, tensor_maps: bool = False) -> Choice:
    """The instruction for a contraction that has none yet, and why.

    `tensor_maps` says whether the kernel may be given tensor maps. Raises PhobosError if the kernel
    asks for what is not supported.
    """
    threads = threads_of(kernel)
    asked = _asked(op, kernel, target)
    options = forms(*_operand_names(op), asked.rounding)
    if not options:
        return _no_product(
            "f32 operands stay f32; `@tensorcore(tf32)` rounds them for the tensor cores"
        )
    # The instructions want all lanes of each warp that gets to them, also of the last one.
    if thread_bits(threads)[0] != LANE_BITS or threads % (1 << LANE_BITS):
        return _no_product(f"{threads} threads are not whole warps")
    total = operand_name(_element(op.c))
    m, n = (ceil_pow2(extent) for extent in _extents(op.c)[-2:])
    depth = ceil_pow2(_extents(op.a)[-1])
    is_stack = any(extent > 1 for extent in _extents(op.c)[:-2])
    for form in options if asked.by_wmma and not is_stack else ():
        piece = wmma_for(target, form, total, (m, n, depth))
        if piece is not None:
            return Choice("wmma", form, piece, "`@tensorcore(wmma)` asks for it")
    obstacle: Obstacle | None = None
    turned, exact = "", FAST_MATH not in kernel.attributes
    registers = registers_of(kernel)
    for form in options if asked.rounding != SYNC and not asked.by_wmma and not is_stack else ():
        if rounds_before(form):
            obstacle = obstacle_to_operands(op, kernel, target) if tensor_maps else _NO_MAPS
            if obstacle is not None:
                continue
        is_turned = rounds_before(form) and _come_along_rows(op)
        sizes = (n, m, depth) if is_turned else (m, n, depth)
        group = wgmma_for(
            target, form, total, sizes, threads, registers, exact=exact, turned=is_turned
        )
        if group is not None and not (is_turned or takes_any_side(form) or _come_along_k(op)):
            turned = f"; wgmma of {_names(form.a, form.b)} reads rows along K, and not both come so"
        elif group is not None:
            parts = f", summed in parts of {group.part} along K" if group.part else ""
            if not exact and form.a in SMALL_FLOATS and total == "f32":
                parts = ", summed in fewer bits than f32 has, as `@fast_math` allows"
            parts += _MADE_TURNED if is_turned else ""
            why = _why(op, form, asked.rounding, target) + parts + turned
            return Choice(WGMMA, form, group, why)
    for form in options:
        row = mma_for(target, form, total, depth)
        if row is not None:
            why = _why(op, form, asked.rounding, target)
            return Choice(
                "mma", form, row, why + (turned or _no_wgmma(asked, form, target, obstacle))
            )
    if any(mma_for(target, form, total, _ANY_DEPTH) is not None for form in options):
        return _no_product(f"K of {depth} is less than a step of {target.name}'s mma")
    names = _names(options[0].a, options[0].b)
    return _no_product(f"{target.name} has no mma of {names} summed in {element_name(total)}")


_ANY_DEPTH = 1 << 30
_NOT_ROUNDED = (
    "; wgmma of tf32 takes an A along K, whole warpgroups, a power of two of them, single products"
    " of 64 rows or more, of 64 columns if B lies along N, and sums of at most"
    f" {MAX_SUM_REGISTERS} registers"
)
_NO_MAPS = Obstacle("with `--tensor-maps` alone")
_MADE_TURNED = ", and wgmma makes C^T = B^T A^T, since it reads them along K"


def _no_product(reason: str) -> Choice:
    return Choice("fma", None, None, reason)


def _why(op: DotOp, form: Form, rounding: str | None, target: Chip) -> str:
    """Why an `mma` takes operands in this form."""
    own = _operand_names(op)
    names = _names(*own)
    if own == (form.a, form.b):
        return f"{names} operands on {target.name}"
    if rounding is not None and own == ("f32", "f32"):
        attribute = f"`@tensorcore({rounding})`" if rounding else "`@tensorcore`"
        taken = OPERAND_FORMS[form.a]
        if taken.parts > 1:
            return f"{attribute} splits f32 operands into {taken.parts} parts of {taken.ptx}"
        return f"{attribute} rounds f32 operands to {form.a}"
    if target.has_wgmma:
        return f"{names} operands are widened to {form.a}"
    return f"{target.name} has no mma of {names}, which are widened to {form.a}"


def _no_wgmma(asked: _Asked, form: Form, target: Chip, obstacle: Obstacle | None) -> str:
    """Why an `mma` is no `wgmma`, where the chip has one of these operands."""
    if asked.by_wmma or not target.has_wgmma or not wgmma_rows(form):
        return ""
    if rounds_before(form):
        if obstacle is _NO_MAPS:
            return f"; wgmma takes tf32 {_NO_MAPS.words}"
        if obstacle is not None:
            return f"; wgmma of tf32 takes operands that tensor copies bring, and {obstacle.words}"
        return _NOT_ROUNDED
    if asked.rounding == SYNC:
        return "; `@tensorcore(sync)` asks for mma"
    return (
        "; wgmma takes whole warpgroups, a power of two of them, single products of 64 rows or more"
        f" and sums of at most {MAX_SUM_REGISTERS} registers"
    )


def _names(*operands: str) -> str:
    return " and ".join(dict.fromkeys(map(element_name, operands)))


def _select(op: DotOp, kernel: gpu.FuncOp, choice: Choice) -> None:
    _, warp_bits = thread_bits(threads_of(kernel))
    m, n = _extents(op.c)[-2:]
    form, row = choice.form, choice.row
    for position, axis in ((0, -1), (1, -2)):
        op.operands[position] = _zero_beyond(op, op.operands[position], axis)
    if form is None or row is None:
        if _operand_names(op)[0] in SMALL_FLOATS:
            _convert_operands(op, f16)
        op.instruction = InstructionAttr(_multiply_add(op, m, n, 1 << warp_bits))
        return
    if form.converted is not None:
        _convert_operands(op, form.converted)
    shape = row.m, row.n, row.k
    if isinstance(row, WarpgroupPiece):
        made_of = Instruction(
            choice.name, shape, form.a, form.b, row.accumulator, row.warps, row.part, row.turned
        )
        if rounds_before(form):
            op.operands[0] = _rounded(op, op.a)
            op.operands[1] = _rounded(op, op.b)
    else:
        warps = _split(op, m, n, 1 << warp_bits, (row.m, row.n))
        made_of = Instruction(choice.name, shape, form.a, form.b, row.accumulator, warps)
    op.instruction = InstructionAttr(made_of)


def _operand_names(op: DotOp) -> tuple[str, str]:
    return (
        operand_name(_element(op.a), unsigned=op.unsigned_a is not None),
        operand_name(_element(op.b), unsigned=op.unsigned_b is not None),
    )


@record
class _Asked(Record):
    """What `@tensorcore` says: what f32 operands are rounded to (None: not at all), and by wmma."""

    rounding: str | None = None
    by_wmma: bool = False


def _asked(op: DotOp, kernel: gpu.FuncOp, target: Chip) -> _Asked:
    found = kernel.attributes.get(TENSORCORE)
    if not isinstance(found, StringAttr):
        return _Asked()
    words = found.data.split()
    by_wmma = words[:1] == [WMMA]
    asked = " ".join(words[1:] if by_wmma else words)
    if asked not in ASKED:
        raise error_at(op, f"`{found.data}` is no form of @tensorcore")
    if by_wmma and index_bits_of(op) != 32:
        raise error_at(
            op,
            "@tensorcore(wmma) is for modules with 32-bit indices, and this one has 64-bit ones",
            help="use @tensorcore(sync), or compile without `--index-bits 64` and apart from"
            " kernels that need 64 bits",
        )
    if not target.has(NEEDED.get(asked)):
        first = next(one.name for one in CHIPS.values() if one.has(NEEDED[asked]))
        raise error_at(
            op,
            f"@tensorcore({asked}) needs {first} or newer, and this is compiled for {target.name}",
            help="without it, products of f32 are multiply-adds, which are as exact",
        )
    return _Asked(asked, by_wmma)


def _split(op: DotOp, m: int, n: int, warps: int, piece: tuple[int, int]) -> tuple[int, int]:
    """Warps along M and N; all along M for a contraction in a chain, if there are rows enough.

    Then a warp has whole rows of the result: folding them, and multiplying them by the next
    operand, needs no other warp.
    """
    rows = ceil_pow2(m) // piece[0]
    if warps <= rows and (_feeds_chain(op.result) or _is_fed_by_dot(op.a)):
        return warps, 1
    return split_warps(m, n, warps, piece)


def _feeds_chain(value: SSAValue) -> bool:
    """Whether rows of a result are folded or are the left operand of another contraction."""
    for use in value.uses:
        user = use.operation
        if isinstance(user, ReduceOp) and user.axes.data[-1] == len(_extents(user.value)) - 1:
            return True
        if isinstance(user, DotOp):
            if use.index == 0:
                return True
        elif _is_elementwise(user) and _feeds_chain(user.results[0]):
            return True
    return False


def _is_fed_by_dot(value: SSAValue) -> bool:
    """Whether an operand is computed elementwise from the result of a contraction."""
    owner = value.owner
    if isinstance(owner, DotOp):
        return True
    return (
        isinstance(owner, Operation)
        and _is_elementwise(owner)
        and any(
            _is_fed_by_dot(operand)
            for operand in owner.operands
            if isinstance(operand.type, TensorType)
        )
    )


def _come_along_k(op: DotOp) -> bool:
    """Whether both operands are contiguous along K where they come from."""
    return _contiguous_axis(op.a) == 1 and _contiguous_axis(op.b) == 0


def _come_along_rows(op: DotOp) -> bool:
    """Whether A is contiguous along K where it comes from, and B along N."""
    return _contiguous_axis(op.a) == 1 and _contiguous_axis(op.b) == 1


def _contiguous_axis(value: SSAValue) -> int | None:
    """Which of the last two axes neighbours in memory lie along; None if it is not known.

    Rows of a tensor are contiguous, and those of a product in registers.
    """
    owner = value.owner
    if isinstance(owner, tile.LoadOp | DotOp):
        return 1
    if isinstance(owner, TransposeOp):
        axis = _contiguous_axis(owner.value)
        return None if axis is None else 1 - axis
    if isinstance(owner, Operation) and _is_elementwise(owner):
        tiles = [operand for operand in owner.operands if isinstance(operand.type, TensorType)]
        axes = {_contiguous_axis(operand) for operand in tiles} - {None}
        return axes.pop() if len(axes) == 1 else None
    return None


def _is_elementwise(op: Operation) -> bool:
    """Whether an op keeps each element of a tile in its place."""
    if op.regions or len(op.results) != 1 or not isinstance(op.results[0].type, TensorType):
        return False
    shape = _extents(op.results[0])
    tiles = [operand for operand in op.operands if isinstance(operand.type, TensorType)]
    return bool(tiles) and all(_extents(operand) == shape for operand in tiles)


def _multiply_add(op: DotOp, m: int, n: int, warps: int) -> Instruction:
    split = split_warps(m, n, warps, (4 * THREAD_EDGE, 8 * THREAD_EDGE))
    total = operand_name(_element(op.c))
    return Instruction("fma", (THREAD_EDGE, THREAD_EDGE, 1), *_operand_names(op), total, split)


def _convert_operands(op: DotOp, element: Attribute) -> None:
    for position in (0, 1):
        op.operands[position] = _converted(op, op.operands[position], element)


def _converted(op: DotOp, value: SSAValue, element: Attribute) -> SSAValue:
    assert isinstance(value.type, TensorType)
    if value.type.element_type == element:
        return value
    narrows = isinstance(value.type.element_type, Float32Type)
    cast = (arith.TruncFOp if narrows else arith.ExtFOp)(
        value, TensorType(element, value.type.get_shape())
    )
    insert_before(op, [cast])
    return cast.result


def _rounded(op: DotOp, value: SSAValue) -> SSAValue:
    """An operand rounded to tf32, by the op that another product has it from if there is one."""
    for use in value.uses:
        known = use.operation
        if isinstance(known, elementwise.RoundTF32Op) and known.parent is op.parent:
            assert op.parent is not None
            if known.is_before_in_block(op):
                return known.result
    rounding = elementwise.RoundTF32Op(value)
    insert_before(op, [rounding])
    return rounding.result


def _zero_beyond(op: DotOp, value: SSAValue, axis: int) -> SSAValue:
    """Zeros where the layout, whose sizes are powers of two, goes beyond the tile along K.

    What is loaded is zero there already, unless it is filled with another value.
    """
    assert isinstance(value.type, TensorType)
    shape = value.type.get_shape()
    extent = shape[axis]
    if ceil_pow2(extent) == extent or _is_zero_beyond(value):
        return value
    counts = TensorType(i32, shape)
    coordinate = IotaOp(len(shape) + axis, counts)
    limit = arith.ConstantOp(IntegerAttr(extent, i32))
    spread = tile.SplatOp(limit.result, counts)
    inside = elementwise.CmpIOp(coordinate.result, spread.result, "slt")
    element = value.type.element_type
    zero = arith.ConstantOp(zero_attr(element))
    zeros = tile.SplatOp(zero.result, TensorType(element, shape))
    chosen = tile.SelectOp(inside.result, value, zeros.result)
    insert_before(op, [coordinate, limit, spread, inside, zero, zeros, chosen])
    return chosen.result


_KEEP_ZERO = (
    arith.ExtFOp,
    arith.TruncFOp,
    elementwise.ElementCast,
    TransposeOp,
)
"""Ops that map zeros to zeros in the same place."""


def _is_zero_beyond(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, _KEEP_ZERO):
        return _is_zero_beyond(owner.operands[0])
    return isinstance(owner, tile.LoadOp) and owner.fill is None


def _extents(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, TensorType)
    return value.type.get_shape()


def _element(value: SSAValue) -> Attribute:
    assert isinstance(value.type, TensorType)
    return value.type.element_type


# ---- runs


def _to_run_dot(op: vector.ReductionOp) -> None:
    product = op.vector.owner
    if op.kind.data is not vector.CombiningKindFlag.ADD or not isinstance(product, arith.MuliOp):
        return
    left, right = _bytes(product.lhs), _bytes(product.rhs)
    if left is None or right is None or op.dest.type != i32:
        return
    (a, unsigned_a), (b, unsigned_b) = left, right
    if a.type != b.type:
        return
    start = op.acc
    if start is None:
        zero = arith.ConstantOp(_ZERO)
        insert_before(op, [zero])
        start = zero.result
    dot = tile.RunDotOp(a, b, start, unsigned_a=unsigned_a, unsigned_b=unsigned_b)
    insert_before(op, [dot])
    dot.result.name_hint = op.dest.name_hint
    op.dest.replace_all_uses_with(dot.result)
    for dead in (op, product, product.lhs.owner, product.rhs.owner):
        assert isinstance(dead, Operation)
        if not any(result.uses for result in dead.results) and dead.parent is not None:
            dead.detach()
            dead.erase()


def _bytes(value: SSAValue) -> tuple[SSAValue, bool] | None:
    """The run of bytes that a value widens to 32 bits, and whether without sign."""
    owner = value.owner
    if not isinstance(owner, elementwise.ExtSIOp | elementwise.ExtUIOp):
        return None
    run = owner.input.type
    if not isinstance(run, VectorType) or run.element_type != i8 or run.get_shape()[-1] % 4:
        return None
    return owner.input, isinstance(owner, elementwise.ExtUIOp)
