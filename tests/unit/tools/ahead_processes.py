"""What the processes that compile ahead do in tests: they count units, hang or crash."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tools.bench.ahead import Unit, add_to
from tools.bench.entrants import Selection

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized


def count_units(
    units: Sequence[Unit],
    selection: Selection,
    processes: int,
    following: Synchronized[int],
    builds: Synchronized[int],
) -> None:
    """Take units and note each as a build."""
    while add_to(following) < len(units):
        add_to(builds)


def hang_after_one(
    units: Sequence[Unit],
    selection: Selection,
    processes: int,
    following: Synchronized[int],
    builds: Synchronized[int],
) -> None:
    """Do one unit, take another and never end it."""
    _do_one_take_another(following, builds)
    time.sleep(600)


def crash_after_one(
    units: Sequence[Unit],
    selection: Selection,
    processes: int,
    following: Synchronized[int],
    builds: Synchronized[int],
) -> None:
    """Do one unit, take another and crash."""
    _do_one_take_another(following, builds)
    os._exit(7)


def _do_one_take_another(following: Synchronized[int], builds: Synchronized[int]) -> None:
    add_to(following)
    add_to(builds)
    add_to(following)
