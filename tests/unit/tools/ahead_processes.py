"""What the processes that compile ahead do in tests: they count units, hang or crash."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tools.bench.ahead import Unit
from tools.bench.entrants import Selection

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized


def _take(number: Synchronized[int]) -> int:
    with number.get_lock():
        number.value += 1
        return number.value - 1


def count_units(
    units: Sequence[Unit],
    selection: Selection,
    processes: int,
    following: Synchronized[int],
    builds: Synchronized[int],
) -> None:
    """Take units and note each as a build."""
    while _take(following) < len(units):
        _take(builds)


def hang_after_one(
    units: Sequence[Unit],
    selection: Selection,
    processes: int,
    following: Synchronized[int],
    builds: Synchronized[int],
) -> None:
    """Do one unit, take another and never end it."""
    _take(following)
    _take(builds)
    _take(following)
    time.sleep(600)


def crash_after_one(
    units: Sequence[Unit],
    selection: Selection,
    processes: int,
    following: Synchronized[int],
    builds: Synchronized[int],
) -> None:
    """Do one unit, take another and crash."""
    _take(following)
    _take(builds)
    _take(following)
    os._exit(7)
