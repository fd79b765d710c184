"""Which branches and loops split the threads, and which named values are not the same in all."""

from __future__ import annotations

from xdsl.dialects import gpu
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from phobos.analysis.uniformity import Uniformity, Variation, analyze
from phobos.explain.places import Places, order_of
from phobos.explain.records import Split, Step, Threads, Varying
from phobos.ir.locations import location_of_value
from phobos.transforms.infer_uniformity import SPLITTERS, chain_notes


def threads_of_kernel(kernel: gpu.FuncOp, places: Places) -> Threads:
    """How far the threads of a kernel differ, from the tile IR."""
    result = analyze(kernel)
    splits = {
        _split(op, divergence.condition, divergence.level, result, places): None
        for op, divergence in result.control.items()
        if not _is_constant_false(divergence.condition)
    }
    ordered = sorted(splits, key=lambda one: order_of(one.place))
    return Threads(tuple(ordered), _values(kernel, result, places))


def _is_constant_false(condition: SSAValue) -> bool:
    owner = condition.owner
    value = getattr(owner, "value", None)
    return isinstance(value, IntegerAttr) and value.value.data == 0


def _split(
    op: Operation, condition: SSAValue, level: Variation, result: Uniformity, places: Places
) -> Split:
    chain = tuple(
        Step(note.message, places.at(note.location)) for note in chain_notes(condition, result)
    )
    return Split(places.of(op), SPLITTERS[op.name].name.strip("`"), str(level), chain)


def _values(kernel: gpu.FuncOp, result: Uniformity, places: Places) -> tuple[Varying, ...]:
    """Named values that are not uniform, each name once with how far it differs at most."""
    worst: dict[str, SSAValue] = {}
    for value, level in result.levels.items():
        name = value.name_hint
        if name is None or not level or location_of_value(value) is None:
            continue
        if name not in worst or level > result.level(worst[name]):
            worst[name] = value
    found = [
        Varying(name, places.of_value(value), str(result.level(value)))
        for name, value in worst.items()
    ]
    return tuple(sorted(found, key=lambda one: order_of(one.place)))
