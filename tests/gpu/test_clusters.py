"""Sums over clusters on a GPU that has them: the built-in, and the shipped product."""

# ruff: noqa: F403

from __future__ import annotations

from collections.abc import Iterator

import pytest

from phobos.runtime.cuda_device import cuda_fault
from phobos.runtime.detect import gpu_capability
from tests.support.kernel_cases import SPLITK_CLUSTER
from tests.unit.builtins.test_clusters import *
from tests.unit.builtins.trying import on_gpu

pytestmark = pytest.mark.skipif(
    cuda_fault() is not None or (gpu_capability() or 0) < 90, reason="needs a GPU with clusters"
)


@pytest.fixture(autouse=True)
def _device(request: pytest.FixtureRequest) -> Iterator[None]:
    if "refused" in request.node.name or "inferred" in request.node.name:
        pytest.skip("not about a GPU")
    with on_gpu():
        yield


@pytest.mark.parametrize(
    "constants",
    [
        {},
        {"TILE_M": 128, "TILE_N": 128, "TILE_K": 64, "THREADS": 256},
        {"TILE_M": 128, "TILE_N": 256, "TILE_K": 64, "THREADS": 256, "SPLITS": 8},
        {"TILE_M": 128, "TILE_N": 64, "TILE_K": 64, "STAGES": 8},
        {"TILE_M": 64, "TILE_N": 128, "SPLITS": 4},
        {"SPLITS": 1},
    ],
    ids=lambda constants: "-".join(map(str, constants.values())),
)
@pytest.mark.parametrize("size", [(128, 4096, 4096), (100, 1000, 2052), (33, 7, 4097)])
def test_split_k(size: tuple[int, int, int], constants: dict[str, int]) -> None:
    module = SPLITK_CLUSTER.load(None, constants)
    for beta in (0.0, 0.5):
        SPLITK_CLUSTER.run(module, dict(zip("MNK", size, strict=True)), "cuda", beta=beta)
