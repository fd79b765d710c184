"""Loops that are unrolled do what they did: any number of iterations, bounds near the limits."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.diagnostics import PhobosError, PhobosWarning
from phobos.runtime.emulator_device import EmulatorDevice
from tests.support.cases import Arrays, Case, run_case
from tests.unit.builtins.trying import check, compiled

LENGTHS = (1, 31, 32, 33, 223, 224, 225, 255, 256, 257, 511, 600)
"""One lane's share is from nothing over whole groups of eight to a group and a rest."""


def test_lanes_add_up_a_vector_of_any_length() -> None:
    source = """\
@launch(32)
kernel total(x: tensor<f32>[N], out: tensor<f32>[1]) {
  var acc: f32 = 0.0
  for k in range(ctx.lane, extent(x, 0), ctx.lanes) {
    acc += x[k]
  }
  let all = sum<over ctx.lane>(acc)
  if ctx.lane == 0 { out[0] = all }
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        return {"out": tensors["x"].sum(keepdims=True)}

    check(source, reference, [{"N": n} for n in LENGTHS], widths=(32, 64), chips=("sm_90",))


BLOCKS = 2
"""A step of so many at least is one that the launch decides."""


def walk(bounds: str, factor: str) -> str:
    """A loop whose result depends on the order of its iterations."""
    return f"""\
@launch(1)
kernel walk(out: tensor<i32>[2], first: i32, last: i32) {{
  var count: i32 = 0
  var sum: i32 = 0
  for<unroll{factor}> k in range({bounds}) {{
    count += 1
    sum = sum * 5 + i32(k)
  }}
  if ctx.block.x == 0 {{
    out[0] = count
    out[1] = sum
  }}
}}
"""


def walked(first: int, last: int, step: int) -> Case:
    """What `walk` writes for these bounds."""
    total = 0
    for k in range(first, last, step):
        total = (total * 5 + k) & 0xFFFFFFFF
    result = np.array([len(range(first, last, step)), total], dtype=np.uint32).view(np.int32)
    scalars = {"first": first, "last": last}
    return Case(lambda tensors, scalars: {"out": result}, {}, scalars, (BLOCKS,))


@pytest.mark.parametrize("factor", [" 1", " 2", " 3", " 7"])
@pytest.mark.parametrize("step", ["6", "ctx.blocks.x * 3"])
def test_every_factor_visits_each_iteration_once_in_order(factor: str, step: str) -> None:
    module = compiled(walk(f"first, last, {step}", factor))
    for trips in (0, 1, 2, 6, 7, 8, 21):
        run_case(module, "walk", walked(4, 4 + 6 * trips, 6), EmulatorDevice())


@pytest.mark.parametrize("factor", ["", " 4"])
def test_constant_bounds(factor: str) -> None:
    for trips in (0, 1, 6, 8, 9):
        module = compiled(walk(f"4, {4 + 6 * trips}, 6", factor))
        run_case(module, "walk", walked(4, 4 + 6 * trips, 6), EmulatorDevice())


LIMIT = 2**31 - 1


@pytest.mark.parametrize("factor", [2, 4])
@pytest.mark.parametrize(
    ("step", "bounds"),
    [
        (3, [(LIMIT - 10, LIMIT), (LIMIT - 12, LIMIT)]),
        (1, [(LIMIT - 1, LIMIT), (-LIMIT - 1, -LIMIT + 3), (-LIMIT - 1, -LIMIT - 1)]),
        (4, [(5, -LIMIT - 1)]),
        (LIMIT // 2, [(0, LIMIT), (-LIMIT - 1, LIMIT)]),
        (LIMIT // 4, [(0, LIMIT), (-LIMIT - 1, LIMIT)]),
        (LIMIT, [(-5, LIMIT)]),
    ],
)
def test_bounds_near_the_limits_of_the_counter(
    step: int, bounds: list[tuple[int, int]], factor: int
) -> None:
    module = compiled(walk(f"first, last, {step}", f" {factor}"))
    for first, last in bounds:
        run_case(module, "walk", walked(first, last, step), EmulatorDevice())


def test_a_step_from_the_launch_near_the_limits() -> None:
    module = compiled(walk("first, last, ctx.blocks.x * 500", " 4"))
    for first in (LIMIT - 4000, LIMIT - 1000, LIMIT - 1):
        run_case(module, "walk", walked(first, LIMIT, 1000), EmulatorDevice())
    run_case(module, "walk", walked(-LIMIT - 1, -LIMIT + 9000, 1000), EmulatorDevice())


def test_a_loop_of_unknown_length_is_not_unrolled_wholly_and_says_so() -> None:
    source = """\
kernel k(x: tensor<f32>[N], n: i32) {
  for<unroll> i in range(0, n) {
    x[i] = 0.0
  }
}
"""
    with pytest.warns(PhobosWarning, match=r"this loop is not unrolled(.|\n)*\[-W fallback\]"):
        phobos.compile(source, cache=False)


def test_too_many_iterations_to_unroll_are_refused() -> None:
    source = """\
kernel k(x: tensor<f32>[N]) {
  for<unroll> i in range(0, 5000) {
    x[i] = 0.0
  }
}
"""
    with pytest.raises(PhobosError, match="5000 iterations, too many to unroll"):
        compiled(source)
