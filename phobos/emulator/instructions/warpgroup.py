"""`wgmma`: products of warpgroups, with operands in shared memory or A in registers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from phobos.emulator.checks.registers import HeldRegisters, held_operands
from phobos.emulator.decode import Operands, Reader, Step, Writer
from phobos.emulator.errors import FindingKind
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.instructions.warps import (
    check_whole_warpgroups,
    check_whole_warps,
    read_warps,
    write_warps,
)
from phobos.emulator.memory.access import Access
from phobos.emulator.memory.spaces import SHARED
from phobos.emulator.tensor import products
from phobos.emulator.tensor.descriptor import PIECE, SharedTile, split_descriptors
from phobos.emulator.tensor.elements import (
    ELEMENT_BITS,
    INTEGERS,
    SMALL_FLOATS,
    numbers,
    pack,
    per_register,
    unpack,
)
from phobos.emulator.tensor.fragments import Fragment, fragment_a, fragment_c
from phobos.emulator.types import B32, B64, PRED, Selection
from phobos.emulator.warpgroup import WARPS, Flags, IntArray, Product
from phobos.emulator.wave import WARP, Wave
from phobos.targets.ptx.parse.records import Operand, Vector

_ROWS = 64
_WARP_ROWS = 16
_A_REGISTERS = 4
_SHAPE = re.compile(r"m64n(\d+)k(\d+)")
_HALVES = frozenset({"f16", "bf16"})
_FLOAT_COLUMNS = frozenset(range(8, 257, 8))
_INTEGER_COLUMNS = frozenset({8, 24, *range(16, 257, 16)})
_RESULTS: Mapping[str, frozenset[str]] = {
    "f16": frozenset({"f16", "f32"}),
    "bf16": frozenset({"f32"}),
    "tf32": frozenset({"f32"}),
    **dict.fromkeys(SMALL_FLOATS, frozenset({"f16", "f32"})),
    **dict.fromkeys(("s8", "u8"), frozenset({"s32"})),
}
"""The types of D by that of A."""


@decodes("wgmma")
def _wgmma(ops: Operands) -> Step:
    match ops.instruction.suffix:
        case ("fence", "sync", "aligned"):
            ops.expect_count(0)
            return _of_warps(ops, lambda wave, sel: wave.products.fence(sel))
        case ("commit_group", "sync", "aligned"):
            ops.expect_count(0)
            return _of_warps(ops, lambda wave, sel: wave.products.commit(sel))
        case ("wait_group", "sync", "aligned"):
            ops.expect_count(1)
            in_flight = ops.immediate(0, "the number of groups")
            return _of_warps(ops, lambda wave, sel: wave.products.wait(sel, in_flight))
        case ("mma_async", "sp", *_):
            ops.refuse("sparse products are not supported")
        case ("mma_async", "sync", "aligned", *_):
            return _ProductSite(ops, _form(ops)).issue
    ops.refuse("is not supported in the emulator")


def _of_warps(ops: Operands, act: Step) -> Step:
    def step(wave: Wave, sel: Selection) -> None:
        check_whole_warps(ops, wave, sel)
        act(wave, sel)

    return step


# The form ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Form:
    """The instruction taken apart: 64 x `columns` x `depth`, types of D, A and B, and modifiers.

    A and B are multiplied by their signs. `a` is the tile of A in shared memory, None where A is
    held in registers.
    """

    columns: int
    depth: int
    types: tuple[str, str, str]
    saturates: bool
    signs: tuple[int, int]
    a: SharedTile | None
    b: SharedTile


def _form(ops: Operands) -> _Form:
    shape, *rest = ops.instruction.suffix[3:] or ("",)
    saturates = rest[3:] == ["satfinite"]
    types = rest[:3]
    match = _SHAPE.fullmatch(shape)
    if match is None or len(types) != 3 or (len(rest) != 3 and not saturates):
        ops.refuse("takes the form .sync.aligned.m64nNkK.D.A.B")
    columns, depth = (int(number) for number in match.groups())
    d, a, b = types
    _check_types(ops, d, a, b)
    bits = ELEMENT_BITS[a]
    if depth != 8 * 32 // bits:
        ops.refuse(f"has k{8 * 32 // bits} on .{a}, got k{depth}")
    if columns not in (_INTEGER_COLUMNS if a in INTEGERS else _FLOAT_COLUMNS):
        ops.refuse(f"there is no shape with {columns} columns for .{a}")
    if saturates and a not in INTEGERS:
        ops.refuse("`.satfinite` is for integers")
    signs, major = _modifiers(ops, a)
    in_registers = isinstance(ops.operand(1), Vector)
    a_tile = None if in_registers else SharedTile(_ROWS, bits, major[0])
    b_tile = SharedTile(columns, bits, major[1])
    return _Form(columns, depth, (d, a, b), saturates, signs, a_tile, b_tile)


def _check_types(ops: Operands, d: str, a: str, b: str) -> None:
    if a not in _RESULTS:
        ops.refuse(f"does not multiply .{a} in the emulator")
    if a != b and not ({a, b} <= SMALL_FLOATS or {a, b} <= {"s8", "u8"}):
        ops.refuse(f"cannot multiply .{a} by .{b}")
    if d not in _RESULTS[a]:
        ops.refuse(f"cannot accumulate .{a} in .{d}")


def _modifiers(ops: Operands, a: str) -> tuple[tuple[int, int], tuple[bool, bool]]:
    """The signs of A and B, and whether each is K-major."""
    if a in INTEGERS:
        ops.expect_count(4)
        return (1, 1), (True, True)
    in_registers = isinstance(ops.operand(1), Vector)
    transposes = 0 if a not in _HALVES else 1 if in_registers else 2
    ops.expect_count(6 + transposes)
    signs = [ops.immediate(4 + i, f"the scale of {'AB'[i]}") for i in range(2)]
    if not set(signs) <= {1, -1}:
        ops.refuse("A and B can be scaled by 1 and -1 only")
    flags = [ops.immediate(6 + i, "a transposition") for i in range(transposes)]
    if not set(flags) <= {0, 1}:
        ops.refuse("a transposition is 0 or 1")
    flags = [0] * (2 - transposes) + flags
    return (signs[0], signs[1]), (not flags[0], not flags[1])


# The instruction ---------------------------------------------------------------------------------


@dataclass
class _ProductSite:
    """One `mma_async`: issues products, and computes them later."""

    operands: Operands
    form: _Form
    held: HeldRegisters | None = field(init=False)
    access: Access = field(init=False)
    _writers: list[Writer] = field(init=False)
    _readers: list[Reader] = field(init=False)
    _a_readers: list[Reader] = field(init=False)
    _a: Reader | None = field(init=False)

    def __post_init__(self) -> None:
        ops, form = self.operands, self.form
        elements = ops.elements(ops.operand(0))
        wanted = self._result.elements // per_register(form.types[0])
        if len(elements) != wanted:
            ops.refuse(f"D takes {wanted} registers, got {len(elements)}")
        self._writers = [ops.writer(element, B32) for element in elements]
        self._readers = [ops.reader(element, B32) for element in elements]
        self._a_readers = self._readers_of_a(ops.operand(1))
        self._a = None if form.a is None else ops.read(1, B64)
        self._b = ops.read(2, B64)
        self._scale = ops.read(3, PRED)
        self.access = Access(ops, "reads", PIECE, is_write=False)
        self.held = self._held_registers()

    def _held_registers(self) -> HeldRegisters | None:
        watched = self.operands.environment.watched
        if not watched.is_on:
            return None
        d, *a = held_operands(self.operands.instruction)
        return HeldRegisters(
            site=watched.note_site(self.operands),
            shape=self.operands.instruction.suffix[3],
            accumulators=watched.rows_of(self.operands, [d]),
            a=watched.rows_of(self.operands, a),
        )

    def _readers_of_a(self, operand: Operand) -> list[Reader]:
        if self.form.a is not None:
            return []
        elements = self.operands.elements(operand)
        if len(elements) != _A_REGISTERS:
            self.operands.refuse(f"A takes {_A_REGISTERS} registers, got {len(elements)}")
        return [self.operands.reader(element, B32) for element in elements]

    @cached_property
    def _result(self) -> Fragment:
        return fragment_c(_WARP_ROWS, self.form.columns)

    def a_rows(self) -> IntArray:
        """See `ProductSite`."""
        tile = self.form.a
        return np.zeros(0, dtype=np.int64) if tile is None else tile.row_of_piece()

    # Issue ---------------------------------------------------------------------------------------

    def issue(self, wave: Wave, sel: Selection) -> None:
        """The step of the instruction."""
        threads = check_whole_warpgroups(self.operands, wave, sel)
        a = self._a
        form = self.form
        scale = self._uniform(wave, sel, self._scale, threads, "scale-d")
        a_pieces = None
        if a is not None and form.a is not None:
            a_pieces = self._pieces(wave, sel, a, form.a, threads, "A")
        product = Product(
            site=self,
            serial=wave.products.next_serial(),
            threads=threads,
            group=wave.products.group_of(threads[:, ::WARP] // WARP),
            accumulates=scale,
            a_registers=read_warps(wave, sel, self._a_readers) if self._a_readers else None,
            pieces=(a_pieces, self._pieces(wave, sel, self._b, form.b, threads, "B")),
        )
        wave.products.issue(product)

    def _uniform(
        self, wave: Wave, sel: Selection, read: Reader, threads: npt.NDArray[np.intp], what: str
    ) -> npt.NDArray:
        """One value a warpgroup of an operand; all its threads must give the same."""
        values = np.broadcast_to(read(wave, sel), (threads.size,)).reshape(threads.shape)
        differs = values != values[:, :1]
        if differs.any():
            self.operands.report(
                FindingKind.DIVERGENCE,
                wave,
                int(threads[differs][0]),
                f"gives `{self.operands.instruction.mnemonic}` another {what} than the first "
                "thread of its warpgroup",
            )
        return values[:, 0].copy()

    def _pieces(
        self,
        wave: Wave,
        sel: Selection,
        read: Reader,
        tile: SharedTile,
        threads: npt.NDArray[np.intp],
        name: str,
    ) -> IntArray:
        """Where the pieces of an operand lie, after all checks of where they may."""
        values = self._uniform(wave, sel, read, threads, f"descriptor of {name}")
        descriptors = split_descriptors(values)
        fault = tile.fault(descriptors)
        if fault is not None:
            self.operands.report(
                FindingKind.ALIGNMENT if fault.is_misaligned else FindingKind.BOUNDS,
                wave,
                int(threads[fault.place, 0]),
                f"gives a descriptor of {name}, {int(values[fault.place]):#x}, that "
                f"{fault.explain}",
            )
        addresses = tile.addresses(descriptors)
        flat = addresses.reshape(-1).astype(np.uint64)
        firsts = np.repeat(threads[:, 0], tile.pieces)
        _, index = SHARED.examine(wave, firsts, flat, self.access)
        return index.reshape(addresses.shape)

    # Results -------------------------------------------------------------------------------------

    def read(self, wave: Wave, product: Product) -> None:
        """See `ProductSite`."""
        product.factors = self._factors(wave, product, np.ones(len(product.threads), np.bool_))

    def finish(self, wave: Wave, product: Product, mask: Flags) -> None:
        """See `ProductSite`."""
        if product.factors is None:
            a, b = self._factors(wave, product, mask)
        else:
            a, b = (factor[mask] for factor in product.factors)
        sel = wave.normalised(product.threads[mask].reshape(-1))
        c = self._accumulators(wave, product, mask)
        d = self._multiply(
            a.reshape(-1, _WARP_ROWS, self.form.depth), np.repeat(b, WARPS, axis=0), c
        )
        write_warps(wave, sel, self._writers, pack(self._result.scatter(d), self.form.types[0]))

    def _factors(
        self, wave: Wave, product: Product, mask: Flags
    ) -> tuple[npt.NDArray, npt.NDArray]:
        """A as [warpgroup, 64, k] and B as [warpgroup, k, column], as numbers."""
        form = self.form
        a_pieces, b_pieces = product.pieces
        _, a_type, b_type = form.types
        if a_pieces is not None and form.a is not None:
            a = self._load(wave, form.a, a_pieces[mask], a_type)
        else:
            assert product.a_registers is not None
            warps = product.a_registers.reshape(-1, WARPS, WARP, _A_REGISTERS)[mask]
            fragment = fragment_a(_WARP_ROWS, form.depth, per_register(a_type))
            rows = fragment.gather(unpack(warps.reshape(-1, WARP, _A_REGISTERS), a_type))
            a = rows.reshape(-1, _ROWS, form.depth)
        b = self._load(wave, form.b, b_pieces[mask], b_type).transpose(0, 2, 1)
        return a * form.signs[0], b * form.signs[1]

    def _load(self, wave: Wave, tile: SharedTile, pieces: IntArray, kind: str) -> npt.NDArray:
        """An operand in shared memory as numbers, shaped [warpgroup, row, k]."""
        words = wave.memories.shared.store.views[8][(pieces >> 3)[..., None] + np.arange(2)]
        return numbers(tile.elements(words.view(np.uint8)), kind)

    def _accumulators(self, wave: Wave, product: Product, mask: Flags) -> npt.NDArray:
        """What the products are added to, shaped [warp, row, column]."""
        kind = self.form.types[0]
        warps = WARPS * int(np.count_nonzero(mask))
        dtype = np.int64 if kind == "s32" else np.float64
        c = np.zeros((warps, _WARP_ROWS, self.form.columns), dtype=dtype)
        adding = mask & product.accumulates
        if adding.any():
            sel = wave.normalised(product.threads[adding].reshape(-1))
            held = unpack(read_warps(wave, sel, self._readers), kind)
            c[np.repeat(product.accumulates[mask], WARPS)] = self._result.gather(held)
        return c

    @cached_property
    def _multiply(self) -> Callable[[npt.NDArray, npt.NDArray, npt.NDArray], npt.NDArray]:
        d, a, _ = self.form.types
        if a in INTEGERS:
            saturate = self.form.saturates
            return lambda x, y, z: products.multiply_integers(x, y, z, saturate=saturate)
        is_small = a in SMALL_FLOATS
        adder = products.OF_WARPGROUPS_8_BIT if is_small else products.OF_WARPGROUPS
        return lambda x, y, z: products.multiply_floats(x, y, z, d, adder)
