"""The shipped matrix products on the emulator, with all its checks: equal to the last bit."""

from __future__ import annotations

import pytest

import phobos
from phobos.runtime.device import Program
from phobos.runtime.emulator_device import EmulatorDevice
from tests.support.kernel_cases import (
    ALL_FILES,
    BATCHED,
    GEMMS,
    GROUPED,
    SPLITK,
    SPLITK_CLUSTER,
    STREAMK,
    Shipped,
    fill_grouped,
)

TILES = {"TILE_M": 32, "TILE_N": 32, "TILE_K": 32}
LAUNCHES = [
    ("sm_75", (33, 65, 100), 1),
    ("sm_80", (1, 7, 33), 0),
    ("sm_86", (100, 33, 7), 1),
    ("sm_89", (65, 100, 1), 0),
    ("sm_90", (33, 65, 100), 0),
    ("sm_120", (7, 1, 65), 1),
]
"""Chip; M, N and K; whether the old C counts. Each program is tried with three of them."""


class Checked(EmulatorDevice):
    """The emulator with all its checks, and room for more CTAs."""

    def __init__(self) -> None:
        super().__init__(checks="all")

    def resident_ctas(self, program: Program) -> int:
        return 16


def test_every_program_is_tried() -> None:
    assert set(phobos.kernels.names()) == ALL_FILES


@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("program", GEMMS, ids=lambda program: program.file)
def test_gemm(program: Shipped, turn: int) -> None:
    chip, (m, n, k), beta = LAUNCHES[(3 * turn + GEMMS.index(program)) % len(LAUNCHES)]
    module = program.load(chip, TILES)
    program.run(module, {"M": m, "N": n, "K": k}, Checked(), beta=beta)


@pytest.mark.parametrize("chip", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_batched(chip: str, beta: float) -> None:
    module = BATCHED.load(chip, TILES)
    BATCHED.run(module, {"Z": 3, "M": 33, "N": 7, "K": 65}, Checked(), beta=beta)


TABLE = [(33, 7, 65, 0, 0), (0, 40, 30, 33, 65), (40, 40, 33, 40, 65), (1, 33, 1, 80, 98)]
"""Problems of a grouped product: m, n, k and where in A and B. One is empty, and some rows are
nobody's."""


@pytest.mark.parametrize(("chip", "ctas"), [("sm_75", 1), ("sm_86", 3), ("sm_90", 9)])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_grouped(chip: str, ctas: int, beta: float) -> None:
    module = GROUPED.load(chip, TILES)
    dims = {"R": 90, "K": 70, "S": 100, "N": 41, "G": len(TABLE)}
    GROUPED.run(module, dims, Checked(), fill=fill_grouped(TABLE), grid=(ctas, 1, 1), beta=beta)


@pytest.mark.parametrize(("chip", "ctas"), [("sm_75", 3), ("sm_80", 8), ("sm_120", 1)])
@pytest.mark.parametrize("splits", [1, 3])
def test_split_k(chip: str, ctas: int, splits: int) -> None:
    """More CTAs than parts, and fewer; parts that K leaves empty."""
    module = SPLITK.load(chip, {**TILES, "SPLITS": splits})
    for m, n, k in ((33, 40, 100), (1, 7, 33)):
        dims = {"M": m, "N": n, "K": k}
        SPLITK.run(module, dims, Checked(), grid=(ctas, 1, 1), beta=splits % 2)


@pytest.mark.parametrize(
    ("chip", "splits"), [("sm_75", 1), ("sm_90", 2), ("sm_90", 4), ("sm_90a", 8), ("sm_120", 4)]
)
def test_split_k_by_clusters(chip: str, splits: int) -> None:
    """Several clusters, and one; parts that K leaves empty."""
    rows = 64 if chip == "sm_90a" else 32
    threads = {"THREADS": 128} if chip == "sm_90a" else {}
    module = SPLITK_CLUSTER.load(chip, {**TILES, **threads, "TILE_M": rows, "SPLITS": splits})
    for m, n, k in ((33, 40, 100), (1, 7, 33)):
        SPLITK_CLUSTER.run(module, {"M": m, "N": n, "K": k}, Checked(), beta=splits % 4)


@pytest.mark.parametrize(
    ("chip", "ctas", "rows"),
    [("sm_75", 3, 6), ("sm_80", 5, 10), ("sm_90", 7, 14), ("sm_90", 5, 6), ("sm_120", 4, 0)],
)
def test_stream_k(chip: str, ctas: int, rows: int) -> None:
    """Shares that end within tiles, of several CTAs a tile; too few rows of W, or none."""
    module = STREAMK.load(chip, TILES)
    for m, n, k in ((33, 40, 100), (1, 7, 133)):
        dims = {"M": m, "N": n, "K": k, "R": 32 * rows}
        STREAMK.run(module, dims, Checked(), grid=(ctas, 1, 1), beta=ctas % 2)
