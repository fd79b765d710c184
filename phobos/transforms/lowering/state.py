"""What one sweep of the lowering carries: where it writes, and which registers hold what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

from xdsl.dialects import gpu
from xdsl.dialects.builtin import IndexType, TensorType, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from phobos.diagnostics import PhobosError
from phobos.dialects import ptx
from phobos.dialects.collective import ReduceKind
from phobos.dialects.contraction import DotOp
from phobos.dialects.ptx import B16, InstructionBuilder
from phobos.dialects.tile import LayoutAttr
from phobos.ir.kernel import index_bits_of, threads_of
from phobos.ir.locations import error_at, location_of_value
from phobos.layout.build import REGISTER
from phobos.record import Record, record
from phobos.targets.ptx.chips import WARP_LANES, Chip
from phobos.targets.ptx.contract import TensorMap
from phobos.transforms.lowering.registers import WORD_BITS, Kind, Share, kind_of

_INDEX = IndexType()
_HALVES = (B16, B16)

Handler = Callable[["Lowering", Operation], None]

BETWEEN_PRODUCTS = "phobos.between_products"
"""On an op that the contraction behind it does not need: done when half of its products are.

ptxas keeps the order of products, stores and barriers by and large. Where stores wait for loads,
products in front of them and behind them are what the tensor cores do meanwhile.
"""


@record
class TensorParameter(Record):
    """The registers of a memref descriptor; sizes and strides are of index width.

    `base` is the global address of element 0. The last stride is 1 and is not read.
    """

    base: SSAValue
    sizes: tuple[SSAValue, ...]
    strides: tuple[SSAValue, ...]


ScanKey = tuple[Block | None, SSAValue, tuple[int, ...], ReduceKind]
"""A block, a tile that is folded in it, the axes, and how."""


class Lowering:
    """The state of the sweep over one kernel."""

    def __init__(
        self,
        kernel: gpu.FuncOp,
        builder: InstructionBuilder,
        chip: Chip,
        handler_of: Callable[[type[Operation]], Handler | None],
    ):
        self.kernel = kernel
        self.build = builder
        self.chip = chip
        self.index_bits = index_bits_of(kernel)
        self.threads = threads_of(kernel)
        self.tensors: dict[SSAValue, TensorParameter] = {}
        self.scan_totals: dict[ScanKey, dict[tuple[int, ...], SSAValue]] = {}
        """What the lanes of a warp hold together of a tile that was scanned, by its place on the
        other axes: a fold of the same tile in the same block needs no more."""
        self.copies_if: SSAValue | None = None
        """On what the asynchronous copies depend that are being lowered."""
        self.tensor_maps: Mapping[TensorMap, int] = {}
        """The positions of the parameters for the tensor maps."""
        self.full_stage: tuple[SSAValue, int] | None = None
        """Address and offset of the barrier of the stage whose copies are being lowered."""
        self.wide: dict[SSAValue, SSAValue] = {}
        """bf16 values that were computed in f32, and that f32, where the chip has no bf16."""
        self._shares: dict[SSAValue, Share] = {}
        self._made: list[list[tuple[Share, str]]] = []
        """For each branch that is being lowered, the forms of shares that it made."""
        self._waiting: list[Operation] = []
        """What is to be lowered between the products of the next contraction."""
        self._handler_of = handler_of
        # Made in the first block, so that they dominate every use; what is unused goes later.
        self.thread = builder.sreg("tid.x")
        self.lane = builder.emit(ptx.AndOp, "b32", self.thread, 31)
        self.warp = builder.emit(ptx.ShrOp, "u32", self.thread, 5)

    @cached_property
    def uniform_warp(self) -> SSAValue:
        """The number of the warp, as a value of which ptxas knows that its lanes have it in common.

        Made in the first block, whenever it is first asked for.
        """
        made = self.build.emit(ptx.ShflOp, "sync.idx.b32", self.warp, 0, WARP_LANES - 1, -1)
        op, before = made.owner, self.warp.owner
        assert isinstance(op, Operation)
        assert isinstance(before, Operation)
        first = before.parent
        assert first is not None
        op.detach()
        first.insert_op_after(op, before)
        return made

    # ---- the sweep

    def block(self, block: Block) -> None:
        """Lowers the ops of a block in order."""
        for op in block.ops:
            if BETWEEN_PRODUCTS in op.attributes:
                self._waiting.append(op)
                continue
            if self._waiting and not isinstance(op, DotOp):
                self.lower_waiting()
            self._lower(op)

    def lower_waiting(self) -> None:
        """Lowers what is to be done between products, if it is not done yet."""
        waiting, self._waiting = self._waiting, []
        for op in waiting:
            self._lower(op)

    def _lower(self, op: Operation) -> None:
        handler = self._handler_of(type(op))
        if handler is None:
            raise error_at(op, f"`{op.name}` is not supported yet by the PTX back end")
        self.build.location = op.location
        handler(self, op)

    @contextmanager
    def branch(self) -> Iterator[None]:
        """Code that does not run on every way to what follows.

        Words that it unpacked, or elements that it packed, are unpacked anew behind it.
        """
        self._made.append([])
        try:
            yield
        finally:
            for share, form in self._made.pop():
                setattr(share, form, None)

    def _note(self, share: Share, form: str) -> None:
        if self._made:
            self._made[-1].append((share, form))

    # ---- values

    def kind(self, type_: Attribute, op: Operation) -> Kind:
        """How a type's elements live in registers; PhobosError where none can hold them."""
        found = kind_of(type_, self.index_bits)
        if found is None:
            raise error_at(op, f"values of type {type_} are not supported yet by the PTX back end")
        return found

    @property
    def index_kind(self) -> Kind:
        """The kind of `index` in this module."""
        found = kind_of(_INDEX, self.index_bits)
        assert found is not None
        return found

    def share(self, value: SSAValue) -> Share:
        """The registers of a value that the sweep has passed."""
        return self._shares[value]

    def scalar(self, value: SSAValue) -> SSAValue:
        """The register of a scalar."""
        return self.elements(value)[0]

    def elements(self, value: SSAValue) -> tuple[SSAValue, ...]:
        """The registers of a value, one an element."""
        share = self._shares[value]
        if share.elements is None:
            assert share.words is not None
            kind = kind_of(value.type, self.index_bits)
            assert kind is not None
            share.elements = self.unpack(share.words, kind)
            self._note(share, "elements")
        return share.elements

    def words(self, value: SSAValue) -> tuple[SSAValue, ...]:
        """The registers of a value of halves or bytes, packed into 32-bit words."""
        share = self._shares[value]
        if share.words is None:
            assert share.elements is not None
            kind = kind_of(value.type, self.index_bits)
            assert kind is not None
            share.words = self.pack(share.elements, kind)
            self._note(share, "words")
        return share.words

    def set(self, value: SSAValue, *registers: SSAValue) -> None:
        """Says which registers hold a value, one an element."""
        self._shares[value] = Share(registers)

    def set_share(self, value: SSAValue, share: Share) -> None:
        """Says in which form a value is held."""
        self._shares[value] = share

    def share_size(self, value: SSAValue) -> int:
        """How many registers of a thread hold its share; PhobosError if a tile has no layout."""
        type_ = value.type
        if isinstance(type_, TensorType):
            if not isinstance(type_.encoding, LayoutAttr):
                raise PhobosError.at(
                    location_of_value(value), "a tile needs a layout: run ph-assign-layouts first"
                )
            return type_.encoding.data.in_size(REGISTER)
        if isinstance(type_, VectorType):
            return type_.get_shape()[0]
        return 1

    def unpack(self, words: Sequence[SSAValue], kind: Kind) -> tuple[SSAValue, ...]:
        """The elements of packed words, the first in the lowest bits of the first word."""
        if kind.is_half:
            halves = (self.build.emit_multi(ptx.UnpackOp, "b32", w, results=_HALVES) for w in words)
            return tuple(half for pair in halves for half in pair)
        return tuple(
            word if not shift else self.build.emit(ptx.ShrOp, "u32", word, shift)
            for word in words
            for shift in range(0, WORD_BITS, kind.bits)
        )

    def pack(self, elements: Sequence[SSAValue], kind: Kind) -> tuple[SSAValue, ...]:
        """Words of neighbouring elements; their number fills whole words."""
        per_word = WORD_BITS // kind.bits
        groups = [elements[i : i + per_word] for i in range(0, len(elements), per_word)]
        if kind.is_half:
            return tuple(self.build.emit(ptx.PackOp, "b32", *group) for group in groups)
        if kind.bits == 16:
            return tuple(self._permute(low, high, 0x5410) for low, high in groups)
        return tuple(self._pack_bytes(group) for group in groups)

    def _permute(self, low: SSAValue, high: SSAValue, selector: int) -> SSAValue:
        return self.build.emit(ptx.PrmtOp, "b32", low, high, selector)

    def _pack_bytes(self, group: Sequence[SSAValue]) -> SSAValue:
        # Bytes 0 of each register: first the pairs, then the two pairs side by side.
        low = self._permute(group[0], group[1], 0x0040)
        high = self._permute(group[2], group[3], 0x0040)
        return self._permute(low, high, 0x5410)

    def to_index(self, register: SSAValue) -> SSAValue:
        """A non-negative 32-bit value at index width."""
        if self.index_bits == 32:
            return register
        return self.build.emit(ptx.CvtOp, "u64.u32", register)
