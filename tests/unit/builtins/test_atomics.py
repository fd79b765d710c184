"""Atomic updates of every type and operation, acquire and release, and the grid barrier."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.emulator import EmulatorError
from phobos.runtime.emulator_device import EmulatorDevice
from tests.support.cases import Arrays
from tests.unit.builtins.trying import check, compiled

TYPES = ("i32", "u32", "i64", "u64", "f32", "f64", "f16", "bf16")
INTEGERS = TYPES[:4]

UPDATE = """\
@launch(64)
kernel k(X: tensor<{type}>[100], H: tensor<{type}>[4]) {{
{tile}  let i = ctx.block.x * ctx.threads + ctx.thread
  if i < 100 {{
    {name}({target}, i % 4, X[i])
  }}
{behind}}}
"""


def folded(name: str, x: np.ndarray, start: np.ndarray) -> np.ndarray:
    function = {
        "add": np.add,
        "max": np.maximum,
        "min": np.minimum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[name]
    out = start.copy()
    for place in range(4):
        out[place] = function.reduce([start[place], *x[place::4]])
    return out


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        *((name, type_) for name in ("add", "max", "min") for type_ in TYPES),
        *((name, type_) for name in ("and", "or", "xor") for type_ in INTEGERS),
    ],
)
def test_updates(name: str, type_: str) -> None:
    source = UPDATE.format(type=type_, name=f"atomic_{name}", target="H", tile="", behind="")

    def reference(tensors: Arrays, _: object) -> Arrays:
        return {"H": folded(name, tensors["X"], tensors["H"])}

    coarse = {"f16": 0.1, "bf16": 0.7}.get(type_, 1e-5)
    check(source, reference, [{}], grid=(2,), absolute=coarse)


@pytest.mark.parametrize("type_", ["i32", "u64", "f32", "f64", "f16", "bf16"])
def test_updates_of_a_tile(type_: str) -> None:
    source = (
        UPDATE.format(
            type=type_,
            name="atomic_max",
            target="t",
            tile=f"  var t: tile<{type_}>[4] = H[:]\n",
            behind="  H[:] = t\n",
        )
        .replace("[100]", "[60]")
        .replace("< 100", "< 60")
    )

    def reference(tensors: Arrays, _: object) -> Arrays:
        return {"H": folded("max", tensors["X"], tensors["H"])}

    check(source, reference, [{}])


@pytest.mark.parametrize("type_", TYPES)
def test_exchange_and_compare_exchange(type_: str) -> None:
    source = f"""\
@launch(32)
kernel k(X: tensor<{type_}>[32], Y: tensor<{type_}>[32], Z: tensor<{type_}>[32]) {{
  let i = ctx.thread
  let old = atomic_exchange(X, i, Y[i])
  Z[i] = atomic_cas(Y, i, X[i], old)
}}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        return {"X": tensors["Y"], "Y": tensors["X"], "Z": tensors["Y"]}

    check(source, reference, [{}])


def test_each_thread_gets_another_number() -> None:
    source = """\
kernel k(N: tensor<i32>[1], Seen: tensor<i32>[512]) {
  let number = atomic_add(N, 0, 1)
  Seen[number] = 1
}
"""

    def prepare(tensors: Arrays) -> None:
        tensors["N"][...] = 0
        tensors["Seen"][...] = 0

    check(
        source,
        lambda *_: {"N": np.array([512]), "Seen": np.ones(512)},
        [{}],
        grid=(2,),
        prepare=prepare,
        chips=("sm_80",),
        widths=(32, 64),
    )


@pytest.mark.parametrize("type_", ["i32", "f32", "i64", "f16", "i8"])
def test_a_flag_passes_data_between_ctas(type_: str) -> None:
    source = f"""\
@launch(32)
kernel k(Data: tensor<{type_}>[32], Flag: tensor<{type_}>[1], Out: tensor<{type_}>[32]) {{
  if ctx.block.x == 0 {{
    Data[ctx.thread] = {type_}(ctx.thread)
    barrier()
    if ctx.thread == 0 {{
      store_release(Flag, 0, 1)
    }}
  }} else {{
    while load_acquire(Flag, 0) != 1 {{
    }}
    Out[ctx.thread] = Data[ctx.thread]
  }}
}}
"""
    module = compiled(source)
    assert module.contract.index_bits == 64
    assert "ld.acquire.sys.global" in module.ptx
    assert "st.release.sys.global" in module.ptx

    def prepare(tensors: Arrays) -> None:
        tensors["Flag"][...] = 0

    check(
        source,
        lambda *_: {"Data": np.arange(32), "Flag": np.ones(1), "Out": np.arange(32)},
        [{}],
        grid=(2,),
        prepare=prepare,
        chips=("sm_75",),
    )


GRID = """\
@persistent
@launch(64)
kernel k(X: tensor<f32>[N], Parts: tensor<f32>[B], Y: tensor<f32>[N], state: tensor<i32>[2]) {
  var own: f32 = 0
  for i in range(ctx.block.x * 64 + ctx.thread, N, ctx.blocks.x * 64) {
    own += X[i]
  }
  let total = sum<over ctx.thread>(own)
  if ctx.thread == 0 {
    Parts[ctx.block.x] = total
  }
  grid_barrier(state)
  var all: f32 = 0
  for b in range(0, ctx.blocks.x) {
    all += Parts[b]
  }
  for i in range(ctx.block.x * 64 + ctx.thread, N, ctx.blocks.x * 64) {
    Y[i] = X[i] / all
  }
  grid_barrier(state)
}
"""


def test_the_grid_waits() -> None:
    def prepare(tensors: Arrays) -> None:
        tensors["state"][...] = 0
        tensors["X"][...] = np.abs(tensors["X"])

    def reference(tensors: Arrays, _: object) -> Arrays:
        x = tensors["X"]
        parts = np.zeros(len(tensors["Parts"]))
        for block in range(4):
            parts[block] = sum(x[i : i + 64].sum() for i in range(block * 64, len(x), 256))
        return {"Parts": parts, "Y": x / x.sum(), "state": np.array([0, 0])}

    check(
        GRID,
        reference,
        [{"N": 1000, "B": 4}, {"N": 64, "B": 4}],
        grid=(4,),
        prepare=prepare,
        relative=1e-5,
        widths=(32, 64),
    )


def test_a_grid_of_three_dimensions_waits() -> None:
    source = """\
@persistent
@launch(32)
kernel k(Parts: tensor<i32>[4], Y: tensor<i32>[4], state: tensor<i32>[2]) {
  let own = (ctx.block.z * ctx.blocks.y + ctx.block.y) * ctx.blocks.x + ctx.block.x
  if ctx.thread == 0 { Parts[own] = i32(own) }
  grid_barrier(state)
  if ctx.thread == 0 { Y[own] = Parts[3 - own] }
}
"""

    def prepare(tensors: Arrays) -> None:
        tensors["state"][...] = 0

    check(
        source,
        lambda *_: {
            "Parts": np.arange(4),
            "Y": np.arange(4)[::-1],
            "state": np.array([-(2**31), 0]),
        },
        [{}],
        grid=(1, 2, 2),
        prepare=prepare,
        chips=("sm_80",),
    )


def test_grids_of_other_sizes_go_on_with_the_state() -> None:
    kernel = phobos.compile(GRID, chip="sm_80")["k"]
    x, state = np.arange(1, 301, dtype=np.float32), np.zeros(2, np.int32)
    for grid in (3, 1, 4, 2, 3):
        y = np.zeros_like(x)
        kernel(x, np.zeros(grid, np.float32), y, state, grid=grid, device="emulator")
        np.testing.assert_allclose(y, x / x.sum(), rtol=1e-6)


def test_the_race_check_misses_a_grid_barrier() -> None:
    def prepare(tensors: Arrays) -> None:
        tensors["state"][...] = 0

    source = GRID.replace("  grid_barrier(state)\n", "", 1)
    with pytest.raises(EmulatorError, match="race"):
        check(
            source,
            lambda *_: {},
            [{"N": 1000, "B": 4}],
            grid=(4,),
            prepare=prepare,
            chips=("sm_80",),
        )


def test_a_barrier_of_the_grid_needs_uniform_flow() -> None:
    source = GRID.replace(
        "  grid_barrier(state)\n", "  if ctx.lane == 0 { grid_barrier(state) }\n", 1
    )
    with pytest.raises(phobos.PhobosError, match="`grid_barrier` needs uniform control flow"):
        phobos.compile(source, chip="sm_80", cache=False)


def test_what_an_update_gives_varies() -> None:
    source = """\
kernel k(N: tensor<i32>[1], Y: tensor<i32>[8]) {
  Y[:] = full(atomic_add(N, 0, 1), 8)
}
"""
    with pytest.raises(phobos.PhobosError, match="a scalar that meets a tile must be uniform"):
        phobos.compile(source, chip="sm_80", cache=False)


HANDED_OVER = """\
@launch(64)
@dynshared
kernel k(A: tensor<f16>[32, K], B: tensor<f16>[K, 32], C: tensor<f32>[32, 32], Ready: tensor<i32>[S]) {{
  if ctx.block.x == 1 {{
    for k in range(0, K, 16) {{
      A[0 :+ 32, k :+ 16] = 2.0 * A[0 :+ 32, k :+ 16]
      barrier()
      if ctx.thread == 0 {{
        store_release(Ready, k / 16, 1)
      }}
    }}
  }} else {{
    var total: tile<f32>[32, 32] = 0.0
    for k in range(0, K, 16) {{
      while {wait} != 1 {{
      }}
      barrier()
      total += dot(A[0 :+ 32, k :+ 16], B[k :+ 16, 0 :+ 32])
    }}
    C[:, :] = total
  }}
}}
"""  # noqa: E501


def hand_over(wait: str, seed: int) -> str:
    """One CTA doubles the tiles of A that the other multiplies; the PTX, if the result is right."""
    module = compiled(HANDED_OVER.format(wait=wait))
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((32, 96), (96, 32)))
    wanted = 2 * a.astype(np.float32) @ b.astype(np.float32)
    c, ready = np.zeros((32, 32), np.float32), np.zeros(6, np.int32)
    module["k"](a, b, c, ready, grid=2, device=EmulatorDevice(seed=seed, checks="all"))
    np.testing.assert_array_equal(c, wanted)
    return module.ptx


@pytest.mark.parametrize("seed", range(3))
def test_tiles_that_are_waited_for_are_not_loaded_ahead(seed: int) -> None:
    """What the flag orders is loaded behind it, in every iteration."""
    assert "cp.async" not in hand_over("load_acquire(Ready, k / 16)", seed)


def test_an_update_orders_nothing_and_the_race_check_says_so() -> None:
    """Loops load ahead over updates: that is only wrong where another CTA writes the tiles."""
    assert "cp.async" in compiled(HANDED_OVER.format(wait="atomic_add(Ready, k / 16, 0)")).ptx
    with pytest.raises(EmulatorError, match="race: kernel `k`"):
        hand_over("atomic_add(Ready, k / 16, 0)", 1)


LOCKED = """\
@launch(32)
kernel k(Total: tensor<i32>[1], Lock: tensor<i32>[1]) {{
  if ctx.thread == 0 {{
    while atomic_cas(Lock, 0, 0, 1) != 0 {{
    }}{acquired}
    Total[0] = Total[0] + i32(ctx.block.x)
    store_release(Lock, 0, 0)
  }}
}}
"""


def locked(acquired: str, seed: int) -> int:
    total, lock = np.zeros(1, np.int32), np.zeros(1, np.int32)
    device = EmulatorDevice(seed=seed, checks="all")
    compiled(LOCKED.format(acquired=acquired))["k"](total, lock, grid=5, device=device)
    return int(total[0])


@pytest.mark.parametrize("seed", range(3))
def test_a_lock_is_an_update_and_an_acquire(seed: int) -> None:
    assert locked("\n    let mine = load_acquire(Lock, 0)", seed) == 10
    with pytest.raises(EmulatorError, match=r"(?s)Total.*with nothing to order the two"):
        locked("", seed)
