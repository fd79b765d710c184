"""The built-in functions of the language, as tables.

A function that works element by element and is one operation of `arith` or `math` is a row of
`_ELEMENTWISE` and needs nothing else. A function with a rule of its own is a row of `SPECIAL`
and a rule in `check_calls`. `PLANNED` lists what the language defines and this compiler does not
translate yet: a use of it stops with an error that says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from phobos.frontend import ast
from phobos.frontend.types import I32, Kind, ScalarType
from phobos.record import Record, record

_FLOAT_ONLY = "floats"
_INTEGER_ONLY = "integers"


@record
class Elementwise(Record):
    """A built-in that is one operation on scalars, runs and tiles alike.

    `ops` names the operation for each kind of element that is allowed; None where the value
    itself is the answer. The operands are first brought to one type, which is the result's
    unless `result` names another that it is converted to. `bits` is the width that it must have,
    if only one will do.
    """

    name: str
    arity: int
    usage: str
    ops: Mapping[Kind, str | None]
    result: ScalarType | None = None
    bits: int | None = None

    @property
    def accepts(self) -> str:
        """The word for the values it takes."""
        if Kind.FLOAT not in self.ops:
            return _INTEGER_ONLY
        return _FLOAT_ONLY if Kind.SIGNED not in self.ops else "numbers"


def _integers(signed: str, unsigned: str | None) -> dict[Kind, str | None]:
    return {Kind.SIGNED: signed, Kind.INDEX: signed, Kind.UNSIGNED: unsigned}


def _float(op: str) -> dict[Kind, str | None]:
    return {Kind.FLOAT: op}


def _bits(op: str) -> dict[Kind, str | None]:
    return {Kind.SIGNED: op, Kind.UNSIGNED: op}


_ELEMENTWISE = (
    # A NaN loses to a number in min and max, and wins in minnan and maxnan.
    Elementwise(
        "min",
        2,
        "min(a, b)",
        {**_integers("arith.minsi", "arith.minui"), **_float("arith.minnumf")},
    ),
    Elementwise(
        "max",
        2,
        "max(a, b)",
        {**_integers("arith.maxsi", "arith.maxui"), **_float("arith.maxnumf")},
    ),
    Elementwise("minnan", 2, "minnan(a, b)", _float("arith.minimumf")),
    Elementwise("maxnan", 2, "maxnan(a, b)", _float("arith.maximumf")),
    Elementwise("abs", 1, "abs(x)", {**_integers("math.absi", None), **_float("math.absf")}),
    Elementwise("floor", 1, "floor(x)", _float("math.floor")),
    Elementwise("ceil", 1, "ceil(x)", _float("math.ceil")),
    # Ties go to the even neighbour.
    Elementwise("round", 1, "round(x)", _float("math.roundeven")),
    Elementwise("trunc", 1, "trunc(x)", _float("math.trunc")),
    Elementwise("sqrt", 1, "sqrt(x)", _float("math.sqrt")),
    Elementwise("rsqrt", 1, "rsqrt(x)", _float("math.rsqrt")),
    Elementwise("exp", 1, "exp(x)", _float("math.exp")),
    Elementwise("exp2", 1, "exp2(x)", _float("math.exp2")),
    Elementwise("log", 1, "log(x)", _float("math.log")),
    Elementwise("log2", 1, "log2(x)", _float("math.log2")),
    Elementwise("sin", 1, "sin(x)", _float("math.sin")),
    Elementwise("cos", 1, "cos(x)", _float("math.cos")),
    Elementwise("tanh", 1, "tanh(x)", _float("math.tanh")),
    Elementwise("pow", 2, "pow(x, y)", _float("math.powf")),
    Elementwise("erf", 1, "erf(x)", _float("math.erf")),
    Elementwise("fma", 3, "fma(a, b, c)", _float("math.fma")),
    Elementwise("popcount", 1, "popcount(x)", _bits("math.ctpop"), result=I32),
    Elementwise("clz", 1, "clz(x)", _bits("math.ctlz"), result=I32),
    Elementwise("brev", 1, "brev(x)", _bits("tile.brev")),
    Elementwise("byteperm", 3, "byteperm(a, b, selector)", _bits("tile.byteperm"), bits=32),
)

ELEMENTWISE: dict[str, Elementwise] = {row.name: row for row in _ELEMENTWISE}
"""The elementwise built-ins by name."""


@record
class Special(Record):
    """A built-in with a rule of its own; `usage` shows how it is called."""

    name: str
    arity: int
    usage: str
    is_statement: bool = False


_SPECIAL = (
    Special("clamp", 3, "clamp(x, low, high)"),
    Special("where", 3, "where(condition, a, b)"),
    Special("sigmoid", 1, "sigmoid(x)"),
    Special("isnan", 1, "isnan(x)"),
    Special("extent", 2, "extent(tensor, axis)"),
    Special("bitcast", 1, "bitcast<f32>(x)"),
    Special("sum", 1, "sum(A[i, k :+ 16])"),
    Special("elem", 1, "elem(A[i, k :+ 16])"),
    Special("word", 1, "word(A[i, k :+ 4])"),
    Special("store", 2, "store(A[i, k :+ 16], run)", is_statement=True),
    Special("dp4a", 3, "dp4a(a, b, c)"),
    Special("f16bits", 1, "f16bits(x)"),
    Special("shuffle", 2, "shuffle(x, lane)"),
    Special("shuffle_xor", 2, "shuffle_xor(x, mask)"),
    Special("shuffle_up", 2, "shuffle_up(x, n)"),
    Special("shuffle_down", 2, "shuffle_down(x, n)"),
    Special("ballot", 1, "ballot(p)"),
    Special("barrier", 0, "barrier()", is_statement=True),
)

SPECIAL: dict[str, Special] = {row.name: row for row in _SPECIAL}
"""The built-ins that have a rule of their own, by name."""


@record
class TileBuiltin(Record):
    """A built-in that folds, moves or makes tiles; `most` is None if arguments have no limit."""

    name: str
    usage: str
    fewest: int
    most: int | None
    generic: type[ast.Generic] | None = None
    """What may stand in `< >`."""

    def takes(self, count: int) -> bool:
        """Whether it can be called with so many arguments."""
        return self.fewest <= count and (self.most is None or count <= self.most)


_TILE_BUILTINS = (
    TileBuiltin("rowsum", "rowsum(t)", 1, 1),
    TileBuiltin("rowmax", "rowmax(t)", 1, 1),
    TileBuiltin("rowmin", "rowmin(t)", 1, 1),
    TileBuiltin("rowargmax", "rowargmax(t)", 1, 1),
    TileBuiltin("cumsum", "cumsum(t)", 1, 1),
    TileBuiltin("transpose", "transpose(t)", 1, 1),
    TileBuiltin("reshape", "reshape(t, R, C)", 2, None),
    TileBuiltin("flat", "flat(t)", 1, 1),
    TileBuiltin("iota", "iota(n)` or `iota<1>(R, C)", 1, None, ast.IntArgument),
    TileBuiltin("full", "full(value, R, C)", 2, None, ast.TypeArgument),
    TileBuiltin("tril", "tril(t)` or `tril(t, diagonal)", 1, 2),
    TileBuiltin("triu", "triu(t)` or `triu(t, diagonal)", 1, 2),
    TileBuiltin("pad", "pad(A[i :+ 16], value)", 2, 2),
    TileBuiltin("valid", "valid(A[i :+ 16])", 1, 1),
    TileBuiltin("cat", "cat<1>(a, b)", 2, None, ast.IntArgument),
    TileBuiltin("gather", "gather(A, t, axis)", 3, 3),
    TileBuiltin("cluster_sum", "cluster_sum(t)", 1, 1),
    TileBuiltin("dot", "dot(a, b)", 2, 2),
    TileBuiltin("dot_t", "dot_t(a, b)", 2, 2),
    TileBuiltin("t_dot", "t_dot(a, b)", 2, 2),
)

TILE_BUILTINS: dict[str, TileBuiltin] = {row.name: row for row in _TILE_BUILTINS}
"""The built-ins that fold, move or make tiles, by name."""

# What the arguments of `sum(A[i, k :+ 16])` and its like hold is one thread's run, not a tile.
RUN_FORMS = frozenset({"sum", "elem", "word", "store"})

SHUFFLES = {"shuffle": "idx", "shuffle_xor": "xor", "shuffle_up": "up", "shuffle_down": "down"}
"""The dialect's word for each shuffle."""


@record
class Fold(Record):
    """A collective: its word in the dialect for signed and float, unsigned and bool operands.

    None where it has no meaning for such operands.
    """

    signed: str | None
    unsigned: str | None
    boolean: str | None

    def kind_for(self, element: ScalarType) -> str | None:
        """The dialect's word for operands of a scalar type."""
        if element.kind is Kind.BOOL:
            return self.boolean
        return self.unsigned if element.is_unsigned else self.signed


FOLDS: dict[str, Fold] = {
    "sum": Fold("add", "add", "count"),
    "prod": Fold("mul", "mul", None),
    "max": Fold("max", "umax", None),
    "min": Fold("min", "umin", None),
    "any": Fold(None, None, "any"),
    "all": Fold(None, None, "all"),
    "count": Fold(None, None, "count"),
}
"""The collectives `op<over scope>(x)` by name."""

POSITIONS = {"argmax": "max", "argmin": "min"}
"""The folds that tell where a value is, and the fold that finds the value."""

SCANS = {"scan": "sum", "scanmax": "max"}
"""The scans of a tile, and the fold that runs."""

ATOMICS: dict[str, dict[Kind, str]] = {
    "atomic_add": {Kind.SIGNED: "add", Kind.UNSIGNED: "add", Kind.FLOAT: "add"},
    "atomic_max": {Kind.SIGNED: "max", Kind.UNSIGNED: "umax", Kind.FLOAT: "max"},
    "atomic_min": {Kind.SIGNED: "min", Kind.UNSIGNED: "umin", Kind.FLOAT: "min"},
    "atomic_and": {Kind.SIGNED: "and", Kind.UNSIGNED: "and"},
    "atomic_or": {Kind.SIGNED: "or", Kind.UNSIGNED: "or"},
    "atomic_xor": {Kind.SIGNED: "xor", Kind.UNSIGNED: "xor"},
    "atomic_exchange": {
        Kind.SIGNED: "exchange",
        Kind.UNSIGNED: "exchange",
        Kind.FLOAT: "exchange",
    },
}
"""The atomic updates of an element: the dialect's word for each kind of element."""

SHARED_MEMORY: dict[str, str] = {
    **{name: f"{name}(t, i, value)" for name in ATOMICS},
    "atomic_cas": "atomic_cas(t, i, expected, desired)",
    "load_acquire": "load_acquire(t, i)",
    "store_release": "store_release(t, i, value)",
    "grid_barrier": "grid_barrier(state)",
}
"""The built-ins by which threads share memory, and how they are called."""

DEBUGGING = {
    "assert": 'assert(condition, "text")',
    "print": 'print("x is {}", x)',
}
"""The built-ins of debug builds, and how they are called."""

PLANNED: frozenset[str] = frozenset(
    {
        *("sort", "topk"),
    }
)
"""The built-ins that the language defines and this compiler does not translate yet."""

BUILTIN_FUNCTIONS: frozenset[str] = frozenset(
    {
        *ELEMENTWISE,
        *SPECIAL,
        *TILE_BUILTINS,
        *FOLDS,
        *POSITIONS,
        *SCANS,
        *SHARED_MEMORY,
        "assert",
        "print",
        *PLANNED,
    }
)
"""The names of all built-in functions, without conversions such as `f32(x)`."""


def usage_of(name: str) -> str:
    """How a built-in function is called."""
    for table in (ELEMENTWISE, SPECIAL, TILE_BUILTINS):
        row = table.get(name)
        if row is not None:
            return row.usage
    if name in FOLDS or name in POSITIONS or name in SCANS:
        return f"{name}<over 0>(t)"
    return SHARED_MEMORY.get(name) or DEBUGGING.get(name) or f"{name}(x)"
