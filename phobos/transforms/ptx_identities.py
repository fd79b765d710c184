"""Algebraic identities of instructions, each exact for every value of the registers.

A rule looks at an instruction and answers with a value that always equals its result, made if
need be from simpler instructions, or with None. Constants are moved outward through additions, so
that addresses that differ by a constant share everything else and the constant ends up in the
offset of the access. Floats are left alone: an identity that holds for numbers fails for NaN
payloads, signed zeros or flushed subnormals.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.transforms.ptx_division import divide_by_constant, remainder_by_constant
from phobos.transforms.ptx_evaluate import bits_of, evaluate, is_integer, read_number, to_pattern
from phobos.transforms.ptx_workbench import Candidate, Rule, Workbench

_WIDE_ADDS = ("u32", "s32", "u64", "s64")


def _with_constant(
    bench: Workbench, operands: Sequence[SSAValue]
) -> tuple[SSAValue, int | None, SSAValue]:
    """Two operands of a commutative instruction, a constant one second with its pattern."""
    left, right = operands[:2]
    pattern = bench.constant(right)
    if pattern is None and (swapped := bench.constant(left)) is not None:
        return right, swapped, left
    return left, pattern, right


def _plus_constant(bench: Workbench, value: SSAValue, bits: int) -> tuple[SSAValue, int] | None:
    """If a value is another plus a constant of this width: both."""
    found = bench.definition(value, ptx.AddOp)
    if found is None or not is_integer(found[0]) or bits_of(found[0]) != bits:
        return None
    pattern = bench.constant(found[1][1])
    return None if pattern is None else (found[1][0], pattern)


# Sums and products -------------------------------------------------------------------------------


def _add(bench: Workbench, op: Candidate) -> SSAValue | None:
    suffix = op.suffix
    if not is_integer(suffix):
        return None
    bits = bits_of(suffix)
    value, pattern, other = _with_constant(bench, op.operands)
    if pattern == 0:
        return value
    inner = _plus_constant(bench, value, bits)
    if pattern is not None:
        if inner is not None:
            return bench.make(ptx.AddOp, suffix, inner[0], inner[1] + pattern)
        if value is not op.operands[0]:
            return bench.make(ptx.AddOp, suffix, value, pattern)
        return None
    if suffix not in _WIDE_ADDS:
        return None
    if inner is None:
        inner, other = _plus_constant(bench, other, bits), value
    if inner is None:
        return None
    total = bench.make(ptx.AddOp, suffix, inner[0], other)
    return bench.make(ptx.AddOp, suffix, total, inner[1])


def _sub(bench: Workbench, op: Candidate) -> SSAValue | None:
    if not is_integer(op.suffix):
        return None
    left, right = op.operands
    if left is right:
        return bench.imm(0, op.result)
    pattern = bench.constant(right)
    if pattern is not None:
        return bench.make(ptx.AddOp, op.suffix, left, -pattern)
    inner = _plus_constant(bench, left, bits_of(op.suffix))
    if inner is None:
        return None
    difference = bench.make(ptx.SubOp, op.suffix, inner[0], right)
    return bench.make(ptx.AddOp, op.suffix, difference, inner[1])


def _mul(bench: Workbench, op: Candidate) -> SSAValue | None:
    part, _, type_name = op.suffix.partition(".")
    if part not in ("lo", "wide"):
        return None
    value, pattern, _ = _with_constant(bench, op.operands)
    if pattern is None:
        return None
    if pattern == 0:
        return bench.imm(0, op.result)
    if part == "wide":
        return _widened(bench, type_name, value) if pattern == 1 else None
    if pattern == 1:
        return value
    bits = bits_of(type_name)
    inner = _plus_constant(bench, value, bits)
    if inner is not None:
        product = bench.make(ptx.MulOp, op.suffix, inner[0], pattern)
        return bench.make(ptx.AddOp, type_name, product, inner[1] * pattern)
    if pattern.bit_count() == 1:
        return bench.make(ptx.ShlOp, f"b{bits}", value, pattern.bit_length() - 1)
    if bits == 64 and (product := _widening_product(bench, value, pattern)) is not None:
        return product
    if value is not op.operands[0]:
        return bench.make(ptx.MulOp, op.suffix, value, pattern)
    return None


def _widened(bench: Workbench, type_name: str, value: SSAValue) -> SSAValue:
    wide = f"{type_name[0]}{2 * bits_of(type_name)}"
    return bench.make(ptx.CvtOp, f"{wide}.{type_name}", value)


def _mad(bench: Workbench, op: Candidate) -> SSAValue | None:
    part, _, type_name = op.suffix.partition(".")
    if part not in ("lo", "wide"):
        return None
    value, pattern, factor = _with_constant(bench, op.operands)
    addend = op.operands[2]
    wide = type_name if part == "lo" else f"{type_name[0]}{2 * bits_of(type_name)}"
    if bench.constant(addend) == 0:
        return bench.make(ptx.MulOp, op.suffix, value, factor)
    if pattern is None:
        return _mad_plus_constant(bench, op, wide)
    if pattern == 0:
        return addend
    if pattern == 1:
        term = value if part == "lo" else _widened(bench, type_name, value)
        return bench.make(ptx.AddOp, wide, term, addend)
    if bench.constant(value) is not None:
        product = bench.make(ptx.MulOp, op.suffix, value, pattern)
        return bench.make(ptx.AddOp, wide, product, addend)
    if part == "lo" and (inner := _plus_constant(bench, value, bits_of(type_name))) is not None:
        total = bench.make(ptx.MadOp, op.suffix, inner[0], pattern, addend)
        return bench.make(ptx.AddOp, wide, total, inner[1] * pattern)
    return _mad_plus_constant(bench, op, wide)


def _mad_plus_constant(bench: Workbench, op: Candidate, wide: str) -> SSAValue | None:
    """``a * b + (c + constant)`` as ``(a * b + c) + constant``."""
    inner = _plus_constant(bench, op.operands[2], bits_of(wide))
    if inner is None:
        return None
    total = bench.make(ptx.MadOp, op.suffix, *op.operands[:2], inner[0])
    return bench.make(ptx.AddOp, wide, total, inner[1])


# Logic and shifts --------------------------------------------------------------------------------


def _and(bench: Workbench, op: Candidate) -> SSAValue | None:
    value, pattern, other = _with_constant(bench, op.operands)
    if pattern is None:
        return value if value is other else None
    if pattern == 0:
        return other
    if pattern == to_pattern(-1, op.result.bits):
        return value
    inner = bench.definition(value, ptx.AndOp)
    mask = None if inner is None else bench.constant(inner[1][1])
    if inner is None or mask is None:
        return None
    return bench.make(ptx.AndOp, op.suffix, inner[1][0], mask & pattern)


def _or(bench: Workbench, op: Candidate) -> SSAValue | None:
    value, pattern, other = _with_constant(bench, op.operands)
    if pattern is None:
        return value if value is other else None
    if pattern == 0:
        return value
    return other if pattern == to_pattern(-1, op.result.bits) else None


def _xor(bench: Workbench, op: Candidate) -> SSAValue | None:
    value, pattern, other = _with_constant(bench, op.operands)
    if value is other:
        return bench.imm(0, op.result)
    if pattern == 0:
        return value
    if pattern == to_pattern(-1, op.result.bits):
        return bench.make(ptx.NotOp, op.suffix, value)
    return None


_INVERSE = {
    "eq": "ne",
    "ne": "eq",
    "lt": "ge",
    "ge": "lt",
    "le": "gt",
    "gt": "le",
    "lo": "hs",
    "hs": "lo",
    "ls": "hi",
    "hi": "ls",
}


def _not(bench: Workbench, op: Candidate) -> SSAValue | None:
    (value,) = op.operands
    inner = bench.definition(value, ptx.NotOp)
    if inner is not None:
        return inner[1][0]
    comparison = bench.definition(value, ptx.SetpOp)
    if comparison is None or len(comparison[1]) != 2:
        return None
    compare, _, type_name = comparison[0].partition(".")
    if not is_integer(type_name):
        return None
    return bench.make(ptx.SetpOp, f"{_INVERSE[compare]}.{type_name}", *comparison[1])


def _shl(bench: Workbench, op: Candidate) -> SSAValue | None:
    value, amount = op.operands
    count = bench.constant(amount)
    bits = bits_of(op.suffix)
    if count is None:
        return None
    if count == 0:
        return value
    if count >= bits:
        return bench.imm(0, op.result)
    inner = bench.definition(value, ptx.ShlOp)
    first = None if inner is None else bench.constant(inner[1][1])
    if inner is not None and first is not None:
        return bench.make(ptx.ShlOp, op.suffix, inner[1][0], min(first, bits) + count)
    total = _plus_constant(bench, value, bits)
    if total is None:
        return _widening_product(bench, value, 1 << count) if bits == 64 else None
    shifted = bench.make(ptx.ShlOp, op.suffix, total[0], count)
    return bench.make(ptx.AddOp, f"u{bits}", shifted, total[1] << count)


def _widening_product(bench: Workbench, value: SSAValue, factor: int) -> SSAValue | None:
    """A widened 32-bit value times a constant in one instruction, if the factor has 32 bits."""
    widened = bench.definition(value, ptx.CvtOp)
    if widened is not None and widened[0] in _WIDENINGS:
        kind = _WIDENINGS[widened[0]]
        if factor < 1 << (31 if kind == "s32" else 32):
            return bench.make(ptx.MulOp, f"wide.{kind}", widened[1][0], factor)
        return None
    product = bench.definition(value, ptx.MulOp)
    if product is None or product[0] not in ("wide.s32", "wide.u32"):
        return None
    kind = product[0].removeprefix("wide.")
    inner = bench.constant(product[1][1])
    if inner is None:
        return None
    total = read_number(inner, kind) * factor
    limit = 1 << (31 if kind == "s32" else 32)
    if not (-limit if kind == "s32" else 0) <= total < limit:
        return None
    return bench.make(ptx.MulOp, product[0], product[1][0], total)


_WIDENINGS = {"s64.s32": "s32", "u64.u32": "u32"}


def _shr(bench: Workbench, op: Candidate) -> SSAValue | None:
    value, amount = op.operands
    count = bench.constant(amount)
    if count == 0:
        return value
    if count is not None and op.suffix[0] != "s" and count >= bits_of(op.suffix):
        return bench.imm(0, op.result)
    return None


# Comparisons, selection, conversion --------------------------------------------------------------


def _same_operands(bench: Workbench, op: Candidate) -> SSAValue | None:
    """min and max of a value with itself; floats may be quieted or flushed, so integers only."""
    left, right = op.operands[:2]
    return left if left is right and is_integer(op.suffix) else None


def _setp(bench: Workbench, op: Candidate) -> SSAValue | None:
    compare, _, type_name = op.suffix.partition(".")
    if not is_integer(type_name) or len(op.operands) != 2:
        return None
    left, right = op.operands
    if left is right:
        return bench.imm(int(compare in ("eq", "le", "ge", "ls", "hs")), op.result)
    pattern = bench.constant(right)
    if pattern is None:
        return None
    if pattern == 0 and type_name[0] == "u" and compare in ("lt", "lo", "ge", "hs"):
        return bench.imm(int(compare in ("ge", "hs")), op.result)
    return _setp_of_selection(bench, op, pattern)


def _setp_of_selection(bench: Workbench, op: Candidate, pattern: int) -> SSAValue | None:
    """A comparison of ``selp c1, c2, p`` with a constant is p, its negation or a constant."""
    selection = bench.definition(op.operands[0], ptx.SelpOp)
    if selection is None:
        return None
    if_true, if_false = (bench.constant(value) for value in selection[1][:2])
    if if_true is None or if_false is None:
        return None
    outcomes = [
        evaluate(ptx.SetpOp, op.suffix, (1,), (value, pattern)) for value in (if_true, if_false)
    ]
    condition = selection[1][2]
    match outcomes:
        case [(1,), (0,)]:
            return condition
        case [(0,), (1,)]:
            return bench.make(ptx.NotOp, "pred", condition)
        case [(same,), (other,)] if same == other:
            return bench.imm(same, op.result)
        case _:
            return None


def _selp(bench: Workbench, op: Candidate) -> SSAValue | None:
    if_true, if_false, condition = op.operands
    if if_true is if_false:
        return if_true
    pattern = bench.constant(condition)
    if pattern is not None:
        return if_true if pattern else if_false
    negation = bench.definition(condition, ptx.NotOp)
    if negation is not None:
        return bench.make(ptx.SelpOp, op.suffix, if_false, if_true, negation[1][0])
    return None


def _cvt(bench: Workbench, op: Candidate) -> SSAValue | None:
    target, _, source = op.suffix.partition(".")
    if not (is_integer(target) and is_integer(source)):
        return None
    (value,) = op.operands
    bits = bits_of(target)
    if bits < 16 or bits_of(source) < 16:
        return None
    if bits == bits_of(source):
        return value if value.type == op.result else None
    inner = bench.definition(value, ptx.CvtOp)
    if inner is None or bits > bits_of(source):
        return None
    # The low half of an extended value is the value.
    middle, _, original = inner[0].partition(".")
    is_extension = (
        is_integer(middle)
        and is_integer(original)
        and bits_of(original) == bits
        and bits_of(middle) == bits_of(source)
    )
    return inner[1][0] if is_extension and inner[1][0].type == op.result else None


def _mov(bench: Workbench, op: Candidate) -> SSAValue | None:
    return op.operands[0]


def _pack(bench: Workbench, op: Candidate) -> SSAValue | None:
    """Putting together again what was cut apart."""
    owner = op.operands[0].owner
    if not isinstance(owner, ptx.UnpackOp) or tuple(owner.results) != tuple(op.operands):
        return None
    return owner.operands[0]


RULES: dict[type[ptx.Instruction], Rule] = {
    ptx.AddOp: _add,
    ptx.SubOp: _sub,
    ptx.MulOp: _mul,
    ptx.MadOp: _mad,
    ptx.AndOp: _and,
    ptx.OrOp: _or,
    ptx.XorOp: _xor,
    ptx.NotOp: _not,
    ptx.ShlOp: _shl,
    ptx.ShrOp: _shr,
    ptx.MinOp: _same_operands,
    ptx.MaxOp: _same_operands,
    ptx.SetpOp: _setp,
    ptx.SelpOp: _selp,
    ptx.CvtOp: _cvt,
    ptx.MovOp: _mov,
    ptx.PackOp: _pack,
    ptx.DivOp: divide_by_constant,
    ptx.RemOp: remainder_by_constant,
}
