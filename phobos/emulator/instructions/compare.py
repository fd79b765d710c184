"""Comparisons: setp and set, on integers, floats and packed halves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from phobos.emulator.arithmetic.floats import flush_subnormals
from phobos.emulator.arithmetic.formats import unpack_half
from phobos.emulator.decode import Operands, Step
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.types import F32, PRED, ScalarType, Selection, Value
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Pair, Sink

Relation = Callable[[Value, Value], Value]

_ORDERED: Mapping[str, Relation] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED_NAMES: Mapping[str, str] = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_COMBINE: Mapping[str, Callable[[Value, Value], Value]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def _is_unordered(a: Value, b: Value) -> Value:
    return np.isnan(a) | np.isnan(b)


def _float_relation(name: str) -> Relation | None:
    """Relations on floats: plain ones are false for NaN (`ne` too), those ending in u true."""
    if name == "num":
        return lambda a, b: ~_is_unordered(a, b)
    if name == "nan":
        return _is_unordered
    if name == "ne":
        return lambda a, b: np.not_equal(a, b) & ~_is_unordered(a, b)
    if name in _ORDERED:
        return _ORDERED[name]
    if name.endswith("u") and name[:-1] in _ORDERED:
        ordered = _ORDERED[name[:-1]]
        return lambda a, b: ordered(a, b) | _is_unordered(a, b)
    return None


def _relation(ops: Operands, name: str, kind: ScalarType) -> Relation:
    is_float = kind.is_float or kind.name in ("f16x2", "bf16x2")
    found = _float_relation(name) if is_float else _ORDERED.get(_UNSIGNED_NAMES.get(name, name))
    if found is None:
        ops.refuse(f"`.{name}` does not compare .{kind.name}")
    return found


class _Comparison:
    """The parts of a comparison's suffix and its operand readers."""

    def __init__(self, ops: Operands, types: int) -> None:
        suffix = ops.instruction.suffix
        if len(suffix) < types + 1:
            ops.refuse("needs a comparison and a type")
        self.kind = ops.type(suffix[-1])
        middle = set(suffix[1 : len(suffix) - types])
        flush = "ftz" in middle
        combine = middle - {"ftz"}
        if len(combine) > 1 or not combine <= set(_COMBINE):
            ops.refuse(f"unknown modifiers `.{'.'.join(sorted(combine))}`")
        self.combine = _COMBINE[combine.pop()] if combine else None
        ops.expect_count(4 if self.combine else 3)
        self.relation = _relation(ops, suffix[0], self.kind)
        self._flush = flush and self.kind is F32
        self._a, self._b = ops.read(1, self.kind), ops.read(2, self.kind)
        self.c = ops.read(3, PRED) if self.combine else None

    def results(self, wave: Wave, sel: Selection) -> list[Value]:
        """The relation for each element: one, or two for packed halves."""
        a, b = self._a(wave, sel), self._b(wave, sel)
        if self.kind.name in ("f16", "bf16", "f16x2", "bf16x2"):
            pairs = zip(unpack_half(a, self.kind), unpack_half(b, self.kind), strict=True)
            return [self.relation(left, right) for left, right in pairs]
        if self._flush:
            a, b = flush_subnormals(a), flush_subnormals(b)
        return [self.relation(a, b)]


@decodes("setp")
def _setp(ops: Operands) -> Step:
    comparison = _Comparison(ops, 1)
    target = ops.operand(0)
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, Sink())
    write_p, write_q = ops.writer(first, PRED), ops.writer(second, PRED)
    is_packed = comparison.kind.name in ("f16x2", "bf16x2")
    combine, third = comparison.combine, comparison.c

    def step(wave: Wave, sel: Selection) -> None:
        results = comparison.results(wave, sel)
        others = results[1:] if is_packed else [~results[0]]
        if combine is not None and third is not None:
            condition = third(wave, sel)
            results = [combine(result, condition) for result in results]
            others = [combine(result, condition) for result in others]
        write_p(wave, sel, results[0])
        write_q(wave, sel, others[0])

    return step


@decodes("set")
def _set(ops: Operands) -> Step:
    comparison = _Comparison(ops, 2)
    result = ops.type(ops.instruction.suffix[-2])
    write = ops.write(0, result)
    pattern = np.array(_true_pattern(result), dtype=np.uint64).astype(result.storage)
    width = result.bits // (2 if comparison.kind.name in ("f16x2", "bf16x2") else 1)
    combine, third = comparison.combine, comparison.c
    zero = result.storage.type(0)

    def step(wave: Wave, sel: Selection) -> None:
        results = comparison.results(wave, sel)
        if combine is not None and third is not None:
            condition = third(wave, sel)
            results = [combine(one, condition) for one in results]
        value = np.where(results[0], pattern, zero)
        if len(results) > 1:
            value = value | (np.where(results[1], pattern, zero) << zero.dtype.type(width))
        write(wave, sel, value.view(result.dtype))

    return step


def _true_pattern(result: ScalarType) -> int:
    """What `set` writes for true: 1.0 for floats, all ones for integers, per element."""
    ones = {"f16": 0x3C00, "f16x2": 0x3C00, "bf16": 0x3F80, "bf16x2": 0x3F80, "f32": 0x3F800000}
    if result.name in ones:
        return ones[result.name]
    return (1 << result.bits) - 1
