"""Checked expressions that fold, move or make tiles; a continuation of `typed`."""

from __future__ import annotations

from phobos.frontend.typed import Expr, Memory, Stmt
from phobos.record import record


@record
class TileFold(Expr):
    """A fold of a tile along axes, which stay with extent 1; `kind` is the dialect's word."""

    kind: str
    axes: tuple[int, ...]
    value: Expr


@record
class TilePosition(Expr):
    """Where along an axis the value is that a fold finds; the first place of several."""

    kind: str
    axis: int
    value: Expr


@record
class TileScan(Expr):
    """Each element folded with all before it along an axis."""

    kind: str
    axis: int
    value: Expr


@record
class ThreadPosition(Expr):
    """Which thread of the scope has the value that a fold finds; the first of several."""

    kind: str
    scope: str
    value: Expr


@record
class ThreadScan(Expr):
    """The sum of this thread's value and those of all threads before it in the scope."""

    scope: str
    value: Expr


@record
class Transpose(Expr):
    """A tile with its last two axes exchanged."""

    value: Expr


@record
class Reshape(Expr):
    """The elements of a tile in row-major order in another shape."""

    value: Expr


@record
class Concatenation(Expr):
    """Tiles one behind the other along an axis."""

    axis: int
    parts: tuple[Expr, ...]


@record
class Iota(Expr):
    """The coordinate of each element along an axis."""

    axis: int


@record
class Contraction(Expr):
    """`c` plus the product of two matrices; without `c`, the product alone."""

    a: Expr
    b: Expr
    c: Expr | None = None


@record
class ClusterSum(Expr):
    """The sum of the tiles of all CTAs of a cluster, of which each gets the part of its rank.

    Axis 0 of `value` counts the parts; that of the result has extent 1.
    """

    value: Expr


@record
class Valid(Expr):
    """Which elements of the slice that begins at `starts` are inside the tensor."""

    tensor: Memory
    starts: tuple[Expr, ...]


@record
class PaddedRead(Expr):
    """The tile of a tensor at `starts`, with a scalar that is no constant outside of it."""

    tensor: Memory
    starts: tuple[Expr, ...]
    fill: Expr


@record
class GatherRead(Expr):
    """The elements of a tensor that subscripts name; those outside are 0.

    Along an axis a scalar of `starts` begins a span, and a tile holds the subscripts: one for
    each element of the result, or repeated along axes of extent 1.
    """

    tensor: Memory
    starts: tuple[Expr, ...]


@record
class ScatterWrite(Stmt):
    """Writes a tile to the elements that subscripts name; those outside are skipped."""

    tensor: Memory
    starts: tuple[Expr, ...]
    value: Expr
