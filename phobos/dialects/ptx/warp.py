"""Instructions in which the lanes of a warp work together."""

from __future__ import annotations

from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.instruction import Effect, Instruction

_SHUFFLE = "sync.{idx|up|down|bfly}.b32"


class ShflOp(Instruction):
    """Read a register of another lane: value, lane, clamp and segment mask, member mask.

    The clamp operand is ((32 - width) << 8) | 31 for idx, down and bfly, without the 31 for up.
    A second result says whether the source lane was inside the segment.
    """

    name = "ptx.shfl"
    effect = Effect.CONVERGENT
    forms = (
        Form(_SHUFFLE, "b32 = b32, b32, b32, b32"),
        Form(_SHUFFLE, "b32|pred = b32, b32, b32, b32"),
    )


class VoteOp(Instruction):
    """Combine a predicate over the lanes of the member mask."""

    name = "ptx.vote"
    effect = Effect.CONVERGENT
    forms = (
        Form("sync.{all|any|uni}.pred", "pred = pred!, b32"),
        Form("sync.ballot.b32", "b32 = pred!, b32"),
    )


class MatchOp(Instruction):
    """Which lanes hold the same value; ``all`` also says whether all do."""

    name = "ptx.match"
    effect = Effect.CONVERGENT
    forms = (
        Form("any.sync.{b32|b64}", "b32 = t, b32"),
        Form("all.sync.{b32|b64}", "b32|pred = t, b32"),
    )


class ReduxOp(Instruction):
    """Reduce a value over the lanes of the member mask."""

    name = "ptx.redux"
    effect = Effect.CONVERGENT
    forms = (
        Form("sync.{add|min|max}.{u32|s32}", "b32 = t, b32", "has_redux", (7, 0)),
        Form("sync.{and|or|xor}.b32", "b32 = b32, b32", "has_redux", (7, 0)),
    )


class ActivemaskOp(Instruction):
    """The lanes that execute this instruction together."""

    name = "ptx.activemask"
    effect = Effect.CONVERGENT
    forms = (Form("b32", "b32 ="),)


class ElectOp(Instruction):
    """Choose one lane of the member mask; the predicate is true in that lane only.

    A first result of two is the number of the lane.
    """

    name = "ptx.elect"
    effect = Effect.CONVERGENT
    forms = (
        Form("sync", "_|pred = b32", "has_elect", (8, 0)),
        Form("sync", "b32|pred = b32", "has_elect", (8, 0)),
    )
