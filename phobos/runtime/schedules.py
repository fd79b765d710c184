"""A kernel on the emulator as its checks, schedules and counts are asked for by `phobos-run`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from phobos.diagnostics import PhobosError
from phobos.runtime.device import Launch
from phobos.runtime.emulator_device import EmulatorDevice
from phobos.runtime.module import Module


@dataclass(frozen=True, slots=True)
class Emulation:
    """How to emulate a kernel.

    Attributes:
        checks: What to look for, from `phobos.emulator.CHECKS`, or `all`; None are the defaults.
        seed: The schedule of the first run; see `phobos.emulate`.
        schedules: Runs, with as many seeds from `seed` on, whose results must be the same.
        profiles: Whether to count what the first run does, line by line.
    """

    checks: tuple[str, ...] | None = None
    seed: int = 0
    schedules: int = 1
    profiles: bool = False

    def device(self) -> EmulatorDevice:
        """The emulator with these checks and the first schedule."""
        return EmulatorDevice(**self._options(self.seed))

    def _options(self, seed: int) -> dict[str, object]:
        options: dict[str, object] = {"seed": seed}
        if self.checks is not None:
            options["checks"] = self.checks
        return options

    def run(
        self,
        module: Module,
        launch: Launch,
        written: Mapping[str, np.ndarray],
        say: Callable[[str], None],
    ) -> None:
        """Run `launch` under each schedule; `written` are the arrays that it may change.

        They hold the results of the first schedule afterwards. `say` gets the table of counts.
        Raises EmulatorError on what the checks find, and PhobosError if a schedule gives other
        results than the first.
        """
        from phobos.emulator import Profile, profile_table

        profile = Profile() if self.profiles else None
        before = {name: array.copy() for name, array in written.items()}
        self._run_one(launch, self.seed, profile)
        first = {name: array.copy() for name, array in written.items()}
        for seed in range(self.seed + 1, self.seed + self.schedules):
            for name, array in written.items():
                array[...] = before[name]
            self._run_one(launch, seed, None)
            for name, array in written.items():
                _check_same(name, first[name], array, (self.seed, seed))
        if self.schedules > 1:
            say(f"{self.schedules} schedules gave the same results")
        if profile is not None:
            say(profile_table(profile, module.sources))

    def _run_one(self, launch: Launch, seed: int, profile: object) -> None:
        with _progress(f"schedule {seed}" if self.schedules > 1 else "emulating") as progress:
            options = self._options(seed) | {"profile": profile, "progress": progress}
            EmulatorDevice(**options).launch(launch)


def _check_same(name: str, first: np.ndarray, again: np.ndarray, seeds: tuple[int, int]) -> None:
    """Refuse results that differ in a bit; NaNs are compared as bits too."""
    size = first.dtype.itemsize
    one, two = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (first, again))
    differs = np.flatnonzero((one != two).reshape(-1, size).any(axis=1))
    if not differs.size:
        return
    place = np.unravel_index(differs[0], first.shape)
    where = f"{name}[{', '.join(map(str, place))}]"
    raise PhobosError.at(
        None,
        f"race: the result depends on the schedule: {differs.size:,} of {first.size:,} elements "
        f"of `{name}` differ between schedules {seeds[0]} and {seeds[1]}; {where} is "
        f"{first[place]} and {again[place]}",
        help="--check race looks for the lines that race; sums by floating-point atomics differ "
        "in their last bits without one",
    )


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr, where that is a terminal and the package rich is there."""
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield None
        return
    if not sys.stderr.isatty():
        yield None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
