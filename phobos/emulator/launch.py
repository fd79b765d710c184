"""A launch: arguments checked and placed in memory, waves of CTAs run, results copied back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from phobos.diagnostics import PhobosError, SourceMap, did_you_mean
from phobos.emulator.arguments import place_arguments
from phobos.emulator.barriers import Barriers
from phobos.emulator.checks.bulk_race import BulkRaceMonitor
from phobos.emulator.checks.product_race import ProductRaceMonitor
from phobos.emulator.checks.race import RaceMonitor
from phobos.emulator.checks.registers import WatchedRegisters
from phobos.emulator.decode import Environment
from phobos.emulator.memory.buffers import GlobalMemory
from phobos.emulator.memory.layout import Layout
from phobos.emulator.memory.spaces import Memories
from phobos.emulator.memory.variables import initialise_variables, reserve_variables
from phobos.emulator.monitor import Monitor, Monitors
from phobos.emulator.profiling.counts import Profile
from phobos.emulator.program import Program, build_program, reachable_functions
from phobos.emulator.requirements import FLOORS, Requirements
from phobos.emulator.schedule import Scheduler
from phobos.emulator.wave import Dim3, Geometry, Wave
from phobos.targets.ptx.parse import parse_ptx
from phobos.targets.ptx.parse.records import Function, Instruction, Module

CHECKS = frozenset({"bounds", "align", "init", "divergence", "async", "race", "overflow"})
"""The checks there are. Bounds and alignment are always checked: the emulator cannot go on."""

_OPTIONAL = frozenset({"overflow"})
"""Checks that `all` leaves out: wrapping is no fault in itself."""

DEFAULT_CHECKS = ("bounds", "align", "init", "divergence", "async")
_WAVE_THREADS = 65536
_RACE_WAVE_THREADS = 8192
"""Threads of a wave, without and with the race check, whose cost grows with their square."""

_WAVE_BYTES = 256 * 1024 * 1024
"""Shared and local memory of a wave at most."""

_MAX_THREADS = 1024
_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_BLOCK_LIMITS = (1024, 1024, 64)
_MAX_CLUSTER = 8
"""CTAs of a cluster that every chip with clusters takes."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to run a kernel.

    Attributes:
        checks: What to look for, from `CHECKS`.
        seed: Seeds every choice that a GPU leaves open: the order of CTAs and warps, and when
            asynchronous copies land. 0 is the order that runs fastest.
        resident: CTAs that run at the same time at most; None takes as many as are fast. Kernels
            whose CTAs wait for each other need all of them resident.
        uninitialised: Numbers of the array arguments whose content counts as not written.
        sources: The texts that `.file` names, for excerpts in findings.
        progress: Called with the CTAs done and their number, after every wave.
        profile: Counts what the kernel does.
        output: Takes what the kernel prints.
    """

    checks: frozenset[str] = frozenset(DEFAULT_CHECKS)
    seed: int = 0
    resident: int | None = None
    uninitialised: frozenset[int] = frozenset()
    sources: SourceMap = field(default_factory=SourceMap)
    progress: Callable[[int, int], None] | None = None
    profile: Profile | None = None
    output: Callable[[str], object] = sys.stdout.write


def emulate(
    ptx: str,
    entry: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    shared: int = 0,
    checks: Iterable[str] = DEFAULT_CHECKS,
    seed: int = 0,
    *,
    resident: int | None = None,
    uninitialised: Iterable[int] = (),
    sources: SourceMap | None = None,
    progress: Callable[[int, int], None] | None = None,
    profile: Profile | None = None,
    output: Callable[[str], object] | None = None,
    name: str = "<ptx>",
    cluster: int | Sequence[int] | None = None,
) -> None:
    """Run a kernel of a PTX module on the CPU.

    Args:
        ptx: The text of the module.
        entry: The name of the kernel.
        grid: CTAs of the grid, up to three numbers.
        block: Threads of a CTA, up to three numbers.
        args: One value a parameter: NumPy arrays are passed as pointers and written in place,
            scalars and bytes by value, `TensorMapArgument`s as the 128 bytes of a tensor map.
        shared: Bytes of dynamic shared memory.
        checks: What to look for; see `CHECKS`.
        seed: Seeds every choice that a GPU leaves open: the order of CTAs and warps, and when
            asynchronous copies land. 0 is the order that runs fastest.
        resident: CTAs that run at the same time at most.
        uninitialised: Numbers of the array arguments whose content counts as not written.
        sources: The texts that `.file` names, for excerpts in findings.
        progress: Called with the CTAs done and their number as the run goes on.
        profile: Counts what the kernel does, line by line.
        output: Takes what the kernel prints; standard output if not given.
        name: What messages call the PTX text.
        cluster: CTAs of a cluster, up to three numbers that divide those of the grid; not given,
            what the kernel requires, or clusters of one.

    Raises:
        EmulatorError: The kernel did something wrong; no array was changed.
        PhobosError: The PTX, the launch or an argument is wrong; no array was changed.
    """
    options = Options(
        checks=known_checks(checks),
        seed=seed,
        resident=resident,
        uninitialised=frozenset(uninitialised),
        sources=sources or SourceMap(),
        progress=progress,
        profile=profile,
        output=output or sys.stdout.write,
    )
    loaded = _loaded(ptx, name)
    geometry = Geometry(_dim3(grid, "grid"), _dim3(block, "block"))
    wanted = None if cluster is None else _dim3(cluster, "cluster")
    Launch(loaded, entry, geometry, wanted, shared, options).run(args)


@dataclass(frozen=True)
class Loaded:
    """A parsed module, and its kernels as far as they were decoded.

    `programs` has what was decoded by all that decoding depends on: the kernel, the checks, and
    where its variables lie.
    """

    module: Module
    programs: dict[object, tuple[Environment, Program]] = field(default_factory=dict)


_MOST_PROGRAMS = 4
"""Programs of a module that are kept: decoding takes longer than most runs in tests."""


@lru_cache(maxsize=16)
def _loaded(ptx: str, name: str) -> Loaded:
    """The module; a kernel is often launched more than once."""
    return Loaded(parse_ptx(ptx, name))


def known_checks(checks: str | Iterable[str]) -> frozenset[str]:
    """The checks of some names, `all` among them; PhobosError if there is none of a name."""
    found = frozenset([checks] if isinstance(checks, str) else checks)
    if "all" in found:
        found = (found - {"all"}) | (CHECKS - _OPTIONAL)
    for check in sorted(found - CHECKS):
        known = ", ".join(sorted(CHECKS))
        raise PhobosError.at(
            None,
            f"there is no check `{check}`; there are {known}",
            help=did_you_mean(check, CHECKS),
        )
    return found


_LIMITS = {"grid": _GRID_LIMITS, "block": _BLOCK_LIMITS, "cluster": (_MAX_CLUSTER,) * 3}


def _dim3(value: int | Sequence[int], what: str) -> Dim3:
    numbers = [value] if isinstance(value, int | np.integer) else list(value)
    limits = _LIMITS[what]
    if not 1 <= len(numbers) <= 3:
        raise PhobosError.at(None, f"the {what} has one to three extents, got {len(numbers)}")
    numbers += [1] * (3 - len(numbers))
    for axis, number, limit in zip("xyz", numbers, limits, strict=True):
        if not isinstance(number, int | np.integer) or not 1 <= number <= limit:
            raise PhobosError.at(
                None, f"extent {axis} of the {what} must be from 1 to {limit}, got {number}"
            )
    x, y, z = (int(number) for number in numbers)
    return (x, y, z)


class Launch:
    """One launch of a kernel; `run` may be called once for each set of arguments."""

    def __init__(
        self,
        loaded: Loaded,
        entry: str,
        geometry: Geometry,
        cluster: Dim3 | None,
        shared: int,
        options: Options,
    ) -> None:
        self.module = module = loaded.module
        self._programs = loaded.programs
        self.options = options
        self.function = _entry(module, entry)
        self._check_version()
        self.geometry = geometry
        self._check_block()
        self.geometry = replace(geometry, cluster=self._cluster(cluster))
        functions = reachable_functions(module, self.function)
        self.layout = Layout(module, functions, shared)
        self._functions = functions
        seeded = options.seed != 0
        self._generator = np.random.default_rng(options.seed) if seeded else None
        if module.text and options.sources.text(module.name) is None:
            options.sources.add(module.name, module.text)

    def _check_version(self) -> None:
        """Refuse a `.version` that does not know the `.target`."""
        chip, floor = self.module.chip, FLOORS.get(self.module.chip)
        if floor is not None and self.module.version < floor:
            have, wanted = (".".join(map(str, v)) for v in (self.module.version, floor))
            raise PhobosError.at(
                None, f"{chip} needs .version {wanted} or newer, but the module has {have}"
            )

    def _check_block(self) -> None:
        threads = self.geometry.threads
        if threads > _MAX_THREADS:
            raise PhobosError.at(None, f"a CTA has at most {_MAX_THREADS} threads, got {threads}")
        for directive in ("maxntid", "reqntid"):
            bound = self.function.directives.get(directive)
            if not bound:
                continue
            wanted = (*bound, 1, 1)[:3]
            if directive == "reqntid" and wanted != self.geometry.block:
                self._refuse_block(f"requires blocks of {wanted}")
            limit = wanted[0] * wanted[1] * wanted[2]
            if threads > limit:
                self._refuse_block(f"allows at most {limit} threads in a CTA")

    def _cluster(self, wanted: Dim3 | None) -> Dim3:
        """The shape of the clusters, checked."""
        required = self.function.directives.get("reqnctapercluster")
        if required:
            x, y, z = (*required, 1, 1)[:3]
            if wanted is not None and wanted != (x, y, z):
                self._refuse(f"requires clusters of {(x, y, z)}, got {wanted}")
            wanted = (x, y, z)
        if wanted is None or wanted == (1, 1, 1):
            return (1, 1, 1)
        chip = self.module.chip
        if not Requirements(chip, self.module.version).has_chip("90+"):
            self._refuse(f"is for {chip}, which has no clusters; they need sm_90 or newer")
        size = wanted[0] * wanted[1] * wanted[2]
        if size > _MAX_CLUSTER:
            self._refuse(f"has clusters of at most {_MAX_CLUSTER} CTAs, got {wanted}")
        if any(g % c for g, c in zip(self.geometry.grid, wanted, strict=True)):
            self._refuse(
                f"has a grid of {self.geometry.grid}, which clusters of {wanted} do not divide"
            )
        return wanted

    def _refuse(self, reason: str) -> NoReturn:
        raise PhobosError.at(None, f"kernel `{self.function.name}` {reason}")

    def _refuse_block(self, reason: str) -> NoReturn:
        self._refuse(f"{reason}, got {self.geometry.block}")

    def run(self, args: Sequence[Any]) -> None:
        """Run the grid and write the results into the arrays."""
        buffers = GlobalMemory()
        reserve_variables(self.layout, buffers, self.module)
        arguments = place_arguments(
            self.function, self.layout, buffers, args, self.options.uninitialised
        )
        initialise_variables(self.layout, buffers, self.module)
        program = self._program()
        monitor = self._monitor(program)
        with np.errstate(all="ignore"):
            started = 0
            for ctas in self._waves():
                started += len(ctas)
                self._run_wave(program, buffers, ctas, started, monitor)
        arguments.write_back(buffers)

    def _program(self) -> Program:
        """The kernel, decoded for where its variables lie now, or as it was before."""
        key = (self.function.name, self.options.checks, self.layout.key())
        environment, program = self._programs.get(key, (None, None))
        if environment is None or program is None:
            environment = Environment(
                self.module,
                self.function.name,
                self.layout,
                self.options.checks,
                self.options.sources,
                Requirements(self.module.chip, self.module.version),
                watched=WatchedRegisters(is_on="async" in self.options.checks),
            )
            program = build_program(environment, self._functions)
            if len(self._programs) >= _MOST_PROGRAMS:
                self._programs.clear()
            self._programs[key] = environment, program
        # The one thing of a launch that decoded instructions ask for, where they report.
        environment.sources = self.options.sources
        return program

    def _monitor(self, program: Program) -> Monitor | None:
        monitors: list[Monitor] = []
        if "race" in self.options.checks:
            kind = RaceMonitor
            if any(_is_asynchronous(i) for function in self._functions for i in function.body):
                kind = BulkRaceMonitor
            elif program.watched.has_products:
                kind = ProductRaceMonitor
            monitors.append(kind(self.geometry, program.smallest_access))
        if self.options.profile is not None:
            monitors.append(self.options.profile)
        if len(monitors) > 1:
            return Monitors(monitors)
        return monitors[0] if monitors else None

    def _resident_ctas(self) -> int:
        """CTAs of a wave: whole clusters, as many as are fast and as memory leaves room for."""
        size = self.geometry.cluster_size
        return max(size, self._most_ctas() // size * size)

    def _most_ctas(self) -> int:
        if self.options.resident is not None:
            return self.options.resident
        threads = _RACE_WAVE_THREADS if "race" in self.options.checks else _WAVE_THREADS
        local = self.layout.local.size * self.geometry.padded
        private = max(1, self.layout.shared.size + local)
        return min(threads // self.geometry.padded, _WAVE_BYTES // private)

    def _waves(self) -> Iterable[np.ndarray]:
        total = self.geometry.ctas
        clusters = self.geometry.ctas_by_cluster()
        if self._generator is not None:
            self._generator.shuffle(clusters)
        order = clusters.reshape(-1)
        size = self._resident_ctas()
        for start in range(0, total, size):
            stop = min(start + size, total)
            yield order[start:stop]
            if self.options.progress is not None:
                self.options.progress(stop, total)

    def _run_wave(
        self,
        program: Program,
        buffers: GlobalMemory,
        ctas: npt.NDArray[np.int64],
        started: int,
        monitor: Monitor | None,
    ) -> None:
        checks = self.options.checks
        threads = len(ctas) * self.geometry.padded
        memories = Memories(
            self.layout,
            buffers,
            len(ctas),
            threads,
            check_init="init" in checks,
            check_async="async" in checks,
        )
        wave = Wave(
            self.geometry,
            ctas,
            program.register_bits,
            memories,
            monitor,
            self._generator,
            self.options.output,
            program.watched,
        )
        barriers = Barriers(wave, check_exited="divergence" in checks)
        behind = self.geometry.ctas - started
        if monitor is not None:
            monitor.start(wave)
        Scheduler(
            wave, program.blocks, barriers, behind, self._generator, self.options.profile
        ).run()
        wave.bulk.finish()
        if monitor is not None:
            monitor.finish(wave)


def _is_asynchronous(instruction: Instruction) -> bool:
    """Whether the race check needs to know of more than CTA barriers and products."""
    suffix = instruction.suffix
    return instruction.opcode == "mbarrier" or "bulk" in suffix[:2] or suffix[:1] == ("cluster",)


def _entry(module: Module, name: str) -> Function:
    function = module.functions.get(name)
    if function is None or not function.is_entry or function.is_declaration:
        names = [entry.name for entry in module.entries]
        listed = ", ".join(f"`{known}`" for known in names) or "none"
        raise PhobosError.at(
            None,
            f"the module has no kernel `{name}`; it has {listed}",
            help=did_you_mean(name, names),
        )
    return function
