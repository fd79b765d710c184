"""Registers that products of warpgroups hold: used too early, or without a `wgmma.fence`.

From its issue to the wait of its thread, a product holds its accumulators and the registers of A.
Nothing may read or write them, but later products of the same shape may go on with the same
accumulators, and others may share A. A register that anything else has used must be fenced before
a product takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import numpy.typing as npt

from phobos.diagnostics import Note
from phobos.emulator.errors import FindingKind
from phobos.emulator.types import WARP, Selection
from phobos.targets.ptx.parse.records import (
    Address,
    Arguments,
    Function,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Vector,
)

if TYPE_CHECKING:
    from phobos.emulator.blocks import Onward, Terminator
    from phobos.emulator.decode import Operands, Step
    from phobos.emulator.schedule import Scheduler
    from phobos.emulator.warpgroup import Product
    from phobos.emulator.wave import Wave

Rows = npt.NDArray[np.intp]
Warps = npt.NDArray[np.intp]
_NO_ROWS: Rows = np.array([], dtype=np.intp)


def registers_in(operands: Iterable[Operand], *, addresses: bool = True) -> Iterable[Register]:
    """The registers that operands name, those that addresses are made of only if wanted."""
    for operand in operands:
        match operand:
            case Register():
                yield operand
            case Vector() | Arguments():
                yield from registers_in(operand.elements, addresses=addresses)
            case Pair():
                yield from registers_in((operand.first, operand.second), addresses=addresses)
            case Negated():
                yield operand.operand
            case Address() if addresses:
                if isinstance(operand.base, Register):
                    yield operand.base
                yield from registers_in(operand.coordinates)
            case _:
                pass


def is_product(instruction: Instruction) -> bool:
    """Whether an instruction issues a product of a warpgroup."""
    return instruction.opcode == "wgmma" and instruction.suffix[:1] == ("mma_async",)


def held_operands(instruction: Instruction) -> tuple[Operand, ...]:
    """The operands of a product whose registers it holds: D, and A unless it is a descriptor."""
    return tuple(
        operand
        for place, operand in enumerate(instruction.operands[:2])
        if place == 0 or isinstance(operand, Vector)
    )


@dataclass(eq=False)
class WatchedRegisters:
    """The registers of a program that products hold.

    Attributes:
        rows: Numbers from 0, by the register's slot in the wave.
        names: Names, by number.
        sites: The instructions that name such a register.
        is_on: Whether anything looks at them.
        has_products: Whether the program issues products.
    """

    rows: dict[int, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    sites: list[Operands] = field(default_factory=list)
    is_on: bool = True
    has_products: bool = False

    def collect(self, functions: Iterable[Function], bases: Mapping[str, int]) -> None:
        """Find the registers; `bases` are the first slots of the functions."""
        for function in functions:
            for instruction in filter(is_product, function.body):
                self.has_products = True
                for register in registers_in(held_operands(instruction)):
                    slot = bases[function.name] + register.index
                    if slot not in self.rows:
                        self.rows[slot] = len(self.names)
                        self.names.append(register.name)

    def rows_of(self, ops: Operands, operands: Iterable[Operand]) -> Rows:
        """The numbers of the watched registers among operands."""
        slots = [ops.slot(register) for register in registers_in(operands)]
        return np.array([self.rows[s] for s in slots if s in self.rows], dtype=np.intp)

    def _used_rows(self, ops: Operands) -> Rows:
        """The registers to look at where an instruction runs."""
        if not (self.is_on and self.has_products):
            return _NO_ROWS
        return self.rows_of(ops, ops.instruction.operands)

    def note_site(self, ops: Operands) -> int:
        """The number of an instruction, from 1."""
        self.sites.append(ops)
        return len(self.sites)

    def step(self, ops: Operands, step: Step) -> Step:
        """The step, behind a look at the watched registers that it uses."""
        rows = self._used_rows(ops)
        if not len(rows) or is_product(ops.instruction):
            return step
        site = self.note_site(ops)

        def run(wave: Wave, sel: Selection) -> None:
            wave.products.registers.use(ops, rows, site, sel)
            step(wave, sel)

        return run

    def terminator(self, ops: Operands, terminator: Terminator) -> Terminator:
        """The terminator, behind a look at the watched registers that it uses."""
        rows = self._used_rows(ops)
        if not len(rows):
            return terminator
        site = self.note_site(ops)

        def run(scheduler: Scheduler, sel: Selection) -> Onward:
            scheduler.wave.products.registers.use(ops, rows, site, sel)
            return terminator(scheduler, sel)

        return run


@dataclass(frozen=True, eq=False)
class HeldRegisters:
    """The registers that one instruction issues products on, by number, and its shape."""

    site: int
    shape: str
    accumulators: Rows
    a: Rows

    def goes_on_with(self, other: HeldRegisters) -> bool:
        """Whether it adds to the same accumulators as another, in the same way."""
        return self.shape == other.shape and np.array_equal(self.accumulators, other.accumulators)


class RegisterWatch:
    """What the warps of a wave did to the watched registers."""

    def __init__(self, wave: Wave, watched: WatchedRegisters) -> None:
        warps, count = wave.size // WARP, len(watched.names)
        self._wave = wave
        self._watched = watched
        self._products: dict[int, Product] = {}
        self._by_site: dict[int, HeldRegisters] = {}
        # The last product on each register, and the last that each warp has waited for.
        self._last = np.zeros((count, warps), dtype=np.int64)
        self._waited = np.zeros(warps, dtype=np.int64)
        # The instruction that used each register last since the fence, or 0.
        self._used_by = np.zeros((count, warps), dtype=np.int32)
        self._has_fenced = np.zeros(warps, dtype=np.bool_)

    def use(self, ops: Operands, rows: Rows, site: int, sel: Selection) -> None:
        """An instruction that is no product reads or writes registers."""
        warps = self._warps(sel)
        grid = np.ix_(rows, warps)
        held = self._last[grid] > self._waited[warps]
        if held.any():
            place = np.unravel_index(int(np.argmax(held)), held.shape)
            self._report_held(ops, int(rows[place[0]]), int(warps[place[1]]), sel)
        self._used_by[grid] = site

    def fence(self, sel: Selection) -> None:
        """Warps execute `wgmma.fence`."""
        warps = self._warps(sel)
        self._has_fenced[warps] = True
        self._used_by[:, warps] = 0

    def hold(self, held: HeldRegisters, product: Product) -> None:
        """A product takes its registers; raises if it must not yet."""
        ops = product.site.operands
        warps = product.warps.reshape(-1)
        if not self._has_fenced[warps].all():
            warp = int(warps[int(np.argmin(self._has_fenced[warps]))])
            self._report_unfenced(ops, warp, "with no `wgmma.fence` before it", ())
        self._by_site[held.site] = held
        for rows, is_a in ((held.accumulators, False), (held.a, True)):
            if not len(rows):
                continue
            grid = np.ix_(rows, warps)
            self._check_held(held, product, rows, warps, is_a=is_a)
            self._check_fenced(held, product, rows, warps, is_a=is_a)
            self._last[grid] = product.serial
            self._used_by[grid] = held.site
        self._products[product.serial] = product

    def release(self, product: Product, done: npt.NDArray[np.bool_]) -> None:
        """Warps, shaped [warpgroup, 4], have waited for a product."""
        self._waited[product.warps[done]] = product.serial
        if not product.is_open.any():
            self._products.pop(product.serial, None)

    def _warps(self, sel: Selection) -> Warps:
        if sel is None:
            return np.arange(len(self._waited))
        return np.unique(sel // WARP)

    def _check_held(
        self, held: HeldRegisters, product: Product, rows: Rows, warps: Warps, *, is_a: bool
    ) -> None:
        """Raise if another product in flight forbids this one its registers."""
        last = self._last[np.ix_(rows, warps)]
        in_flight = last > self._waited[warps]
        if not in_flight.any():
            return
        for serial in np.unique(last[in_flight]).tolist():
            other = self._products[serial].site.held
            assert other is not None
            forbidden = (in_flight & (last == serial)) & ~_shared(held, other, rows, is_a=is_a)
            if forbidden.any():
                r, w = np.argwhere(forbidden)[0]
                threads = product.threads.reshape(-1)
                self._report_held(product.site.operands, int(rows[r]), int(warps[w]), threads)

    def _check_fenced(
        self, held: HeldRegisters, product: Product, rows: Rows, warps: Warps, *, is_a: bool
    ) -> None:
        """Raise if a register was used since the last fence, but by a product like this one."""
        used_by = self._used_by[np.ix_(rows, warps)]
        for site in np.unique(used_by[used_by != 0]).tolist():
            unfenced = used_by == site
            other = self._by_site.get(site)
            if other is not None:
                unfenced &= ~_shared(held, other, rows, is_a=is_a)
            if unfenced.any():
                r, w = np.argwhere(unfenced)[0]
                user = self._watched.sites[site - 1]
                self._report_unfenced(
                    product.site.operands,
                    int(warps[w]),
                    f"on register {self._watched.names[rows[r]]}, which was used since the last "
                    "`wgmma.fence`",
                    (Note(f"`{user.instruction.mnemonic}` uses it here", user.location),),
                )

    # Reports -------------------------------------------------------------------------------------

    def _report_held(self, ops: Operands, row: int, warp: int, sel: Selection) -> NoReturn:
        product = self._products[int(self._last[row, warp])]
        holder = product.site.operands
        threads = self._wave.selected(sel)
        held = product.site.held
        does = "writes" if held is not None and row in held.accumulators else "reads"
        ops.report(
            FindingKind.RACE,
            self._wave,
            int(threads[threads // WARP == warp][0]),
            f"uses register {self._watched.names[row]} by `{ops.instruction.mnemonic}` while a "
            f"`wgmma` still {does} it",
            notes=(Note(f"`{holder.instruction.mnemonic}` was issued here", holder.location),),
            help="`wgmma.commit_group`, then `wgmma.wait_group` before the register is used",
        )

    def _report_unfenced(
        self, ops: Operands, warp: int, explain: str, notes: tuple[Note, ...]
    ) -> NoReturn:
        ops.report(
            FindingKind.RACE,
            self._wave,
            warp * WARP,
            f"executes `{ops.instruction.mnemonic}` {explain}",
            notes=notes,
            help="put `wgmma.fence.sync.aligned` before the first product on registers that "
            "other instructions used",
        )


def _shared(
    held: HeldRegisters, other: HeldRegisters, rows: Rows, *, is_a: bool
) -> npt.NDArray[np.bool_]:
    """Which of its registers a product may take from another, shaped [register, 1]."""
    if is_a:
        allowed = np.isin(rows, other.a) & ~np.isin(rows, other.accumulators)
    else:
        allowed = ~np.isin(rows, other.a) & held.goes_on_with(other)
    return allowed[:, None]
