"""Products of a warpgroup: wgmma (PTX manual, asynchronous warpgroup level matrix instructions).

Four warps multiply tiles that lie in shared memory while they go on with other work::

    %a, %b = ptx.wgmma.fence sync.aligned {%0, %1}
    %c, %d = ptx.wgmma.mma_async sync.aligned.m64n8k16.f16.f16.f16 {%a, %b}, %x, %y, 1, 1, 1, 0, 0
    ptx.wgmma.commit_group sync.aligned
    %e, %f = ptx.wgmma.wait_group sync.aligned 0, {%c, %d}

The accumulators are tied: operand and result are one register, so that a chain of products and a
loop around it need no moves. Which registers a fence or a wait is about PTX does not say; here they
go through it as operands and results, so that what must be written before a fence is its operand,
and what is there only after a wait is its result.
"""

from __future__ import annotations

from dataclasses import dataclass

from phobos.dialects.ptx.forms import Form, Version
from phobos.dialects.ptx.instruction import Effect, Instruction

WARPGROUP_ROWS = 64
"""Rows of A and of the accumulator: those of a warpgroup."""

_NEEDS = "has_wgmma"
_FIRST: Version = (8, 0)
_EVERY_8 = "8..256/8"
_INTEGER_SIZES = "8..24/8,32..256/16"


@dataclass(frozen=True, slots=True)
class WgmmaShape:
    """One row of the table of wgmma.mma_async: D = A * B + D, with A of 64 x k and B of k x n.

    ``a``, ``b`` and ``accumulator`` are the types of the elements. A comes from shared memory or
    from four registers, B from shared memory. Both lie with k contiguous; those of types that are
    ``transposable`` may lie the other way. A row of k elements is always 32 bytes.
    """

    k: int
    a: str
    b: str
    accumulator: str
    columns: str = _EVERY_8
    """The sizes n that there are, as ranges of a form."""
    transposable: bool = False
    satfinite: bool = False
    since: Version = _FIRST

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes n that there are, smallest first."""
        ranges = (part.replace("/", "..").split("..") for part in self.columns.split(","))
        return tuple(n for f, t, s in ranges for n in range(int(f), int(t) + 1, int(s)))

    def accumulator_registers(self, n: int) -> int:
        """Registers of the accumulator that a lane has: 64 n / 128 elements, two f16 in one."""
        return n // (4 if self.accumulator == "f16" else 2)

    def name(self, n: int) -> str:
        """The shape as PTX spells it: ``m64n128k16``."""
        return f"m{WARPGROUP_ROWS}n{n}k{self.k}"

    def suffix(self, n: int) -> str:
        """The suffix of the instruction, without ``.satfinite``."""
        return f"sync.aligned.{self.name(n)}.{self.accumulator}.{self.a}.{self.b}"

    def immediates(self, *, a_in_registers: bool) -> tuple[str, ...]:
        """The literals that follow the operands, each with the values it may have.

        Whether the accumulator is added to (1) or overwritten (0); the signs of A and of B; whether
        A and B lie transposed, with m and n contiguous (1).
        """
        signs = () if self.accumulator == "s32" else ("#1|-1", "#1|-1")
        both = 1 if a_in_registers else 2
        return ("#0|1", *signs, *(("#0|1",) * both if self.transposable else ()))

    def form(self, *, a_in_registers: bool) -> Form:
        """The row as a form."""
        shape = f"m{WARPGROUP_ROWS}n{{{self.columns}}}k{self.k}"
        tail = ".satfinite?" if self.satfinite else ""
        registers = f"b32{{n/{4 if self.accumulator == 'f16' else 2}}}"
        a = "b32!{4}" if a_in_registers else "b64!"
        literals = ", ".join(self.immediates(a_in_registers=a_in_registers))
        return Form(
            f"sync.aligned.{shape}.{self.accumulator}.{self.a}.{self.b}{tail}",
            f"{registers} = &{registers}, {a}, b64!, {literals}",
            _NEEDS,
            self.since,
        )


def _rows() -> tuple[WgmmaShape, ...]:
    rows = [
        WgmmaShape(16, "f16", "f16", "f32", transposable=True),
        WgmmaShape(16, "f16", "f16", "f16", transposable=True),
        WgmmaShape(16, "bf16", "bf16", "f32", transposable=True),
        WgmmaShape(8, "tf32", "tf32", "f32"),
    ]
    small = ("e4m3", "e5m2")
    rows += [WgmmaShape(32, a, b, total) for a in small for b in small for total in ("f32", "f16")]
    rows += [
        WgmmaShape(
            32,
            a,
            b,
            "s32",
            columns=_INTEGER_SIZES,
            satfinite=True,
            since=_FIRST if a == b else (8, 4),
        )
        for a in ("s8", "u8")
        for b in ("s8", "u8")
    ]
    return tuple(rows)


WGMMA_SHAPES: tuple[WgmmaShape, ...] = _rows()
"""All types of wgmma.mma_async; those of sparse and of one-bit matrices are left out."""


class WgmmaMmaAsyncOp(Instruction):
    """D = A * B + D on the accumulators of a warpgroup, begun and not waited for.

    Operands: the accumulators, A (the descriptor of a tile in shared memory, or four registers),
    and the descriptor of B. Until a wait nothing else may touch the registers.
    """

    name = "ptx.wgmma.mma_async"
    effect = Effect.WRITE
    forms = tuple(
        row.form(a_in_registers=in_registers)
        for row in WGMMA_SHAPES
        for in_registers in (False, True)
    )


class WgmmaFenceOp(Instruction):
    """Let the products that follow see what was written to registers before."""

    name = "ptx.wgmma.fence"
    effect = Effect.WRITE
    forms = (Form("sync.aligned", "b32{..} = &b32{..}", _NEEDS, _FIRST),)


class WgmmaCommitGroupOp(Instruction):
    """Make the products since the last commit a group."""

    name = "ptx.wgmma.commit_group"
    effect = Effect.WRITE
    forms = (Form("sync.aligned", "", _NEEDS, _FIRST),)


class WgmmaWaitGroupOp(Instruction):
    """Wait until at most so many of the newest groups are still at work."""

    name = "ptx.wgmma.wait_group"
    effect = Effect.WRITE
    forms = (Form("sync.aligned", "b32{..} = #0..7, &b32{..}", _NEEDS, _FIRST),)
