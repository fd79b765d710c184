"""Timing entrants in rounds, so that all of them meet the same clocks, heat and caches."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from tools.bench.machine import Launch, Sample

SAMPLE_SECONDS = 2e-4
"""How long a sample should last: events are recorded to half a microsecond."""
MAX_LAUNCHES = 32
WARM_UP = 3
"""Samples of each entrant that do not count."""
MIN_ROUNDS = 5

Clock = Callable[[Sequence[Launch]], Sample]
"""Times some launches, queued back to back."""


@dataclass
class Contest:
    """Times entrants in rounds, each entrant once a round, over rotating sets of arrays.

    An entrant is a list of launches, one for each set. Every launch uses the set that was used
    the longest ago, whoever used it, so that no entrant finds its data in the cache.

    The order is drawn anew for each round. What comes behind a kernel that leaves much of the GPU
    idle is up to 1 % faster, and if entrants took turns the same one would come there most often.
    """

    clock: Clock
    sets: int
    _next_set: int = field(default=0, init=False)
    _orders: Random = field(default_factory=lambda: Random(0), init=False)

    def pilot(self, entrants: Sequence[Sequence[Launch]]) -> list[float]:
        """Roughly how long a launch of each entrant takes, after its warm-up."""
        rounds = [[self._sample(one, 1) for one in entrants] for _ in range(WARM_UP)]
        return [samples[-1].gpu for samples in zip(*rounds, strict=True)]

    def run(
        self, entrants: Sequence[Sequence[Launch]], rounds: int, launches: int
    ) -> list[list[Sample]]:
        """The samples of each entrant, all of which take part once in each round."""
        samples: list[list[Sample]] = [[] for _ in entrants]
        order = list(range(len(entrants)))
        for _ in range(rounds):
            self._orders.shuffle(order)
            for index in order:
                samples[index].append(self._sample(entrants[index], launches))
        return samples

    def _sample(self, entrant: Sequence[Launch], launches: int) -> Sample:
        chosen = [entrant[(self._next_set + i) % self.sets] for i in range(launches)]
        self._next_set = (self._next_set + launches) % self.sets
        return self.clock(chosen)


def launches_for(pilots: Sequence[float]) -> int:
    """How many launches a sample should hold, from rough times; the same for all entrants."""
    shortest = max(min(pilots), 1e-9)
    return min(MAX_LAUNCHES, max(1, math.ceil(SAMPLE_SECONDS / shortest)))


def rounds_within(pilots: Sequence[float], launches: int, wanted: int, seconds: float) -> int:
    """As many rounds as are wanted, or as fit a time limit, but not fewer than MIN_ROUNDS."""
    fitting = int(seconds / max(sum(pilots) * launches, 1e-9))
    return max(min(wanted, MIN_ROUNDS), min(wanted, fitting))


def median_seconds(samples: Sequence[Sample]) -> float:
    """The median time on the GPU."""
    return statistics.median(sample.gpu for sample in samples)


def buffer_sets(footprint: int, l2_bytes: int, free_bytes: int) -> int:
    """How many sets of arrays to rotate over.

    At least two, and enough that what lies between two uses of a set is twice the cache, up to
    MAX_SETS and to what the memory holds; 0 if not even one set fits.

    With 12 MB a set and a cache of 50 MB: 1 + ceil(100 / 12) = 10.
    """
    wanted = 1 + max(1, math.ceil(2 * l2_bytes / footprint))
    return min(wanted, MAX_SETS, free_bytes // footprint)


MAX_SETS = 256
"""Beyond this, for arrays of some kilobytes, launching takes longer than memory in any case."""
