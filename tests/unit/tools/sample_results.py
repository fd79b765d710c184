"""Results as a run on a GPU gives them, for tests of what is made of results."""

from __future__ import annotations

from dataclasses import replace

from tools.bench.case import Rate
from tools.bench.entrants import Contender
from tools.bench.results import Result, Stage, Status
from tools.bench.spread import Spread

SAXPY = Result(
    case="saxpy",
    dtype="f32",
    size="1000000",
    bytes=12_000_000,
    flops=2_000_000,
    rate_kind=Rate.BYTES,
    contender=Contender.PHOBOS,
    choices="BLOCK=1024",
    stage=Stage.CONTEST,
    status=Status.OK,
    gpu="Test GPU",
    seconds=Spread(4e-6, 3.9e-6, 4.2e-6, 50),
    host_seconds=3e-5,
    launches=32,
    buffer_sets=12,
    largest_difference=1e-7,
)


def timed(result: Result, contender: Contender, choices: str, median: float) -> Result:
    """The result of another contender on the same problem."""
    seconds = Spread(median, 0.9 * median, 1.1 * median, 50)
    return replace(result, contender=contender, choices=choices, seconds=seconds)


TORCH = timed(SAXPY, Contender.TORCH, "add", 5e-6)
TRITON = timed(SAXPY, Contender.TRITON, "BLOCK=4096", 4.4e-6)
SEARCHED = replace(SAXPY, choices="BLOCK=8192", stage=Stage.SEARCH)
UNTIMED = replace(SAXPY, stage=Stage.SEARCH, seconds=None, host_seconds=None)
WRONG = replace(UNTIMED, choices="BLOCK=16", status=Status.WRONG, note="out[3] is nan")
PEER_FAILED = replace(
    UNTIMED, contender=Contender.TRITON, choices="", status=Status.FAILED, note="TypeError: no"
)
OLDER = replace(timed(SAXPY, Contender.PHOBOS, "BLOCK=1024", 5e-6), stage=Stage.OLDER, chip="sm_75")
ALL = [SEARCHED, SAXPY, TORCH, TRITON]
