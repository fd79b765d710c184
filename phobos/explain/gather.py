"""Gathers an explanation while a module is compiled: each fact where it still stands in the IR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from xdsl.dialects import gpu
from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, IntegerAttr, ModuleOp

from phobos.diagnostics import SourceMap
from phobos.dialects import ptx
from phobos.explain import contraction
from phobos.explain.accesses import accesses
from phobos.explain.coalescing import Facts, Key, access_facts
from phobos.explain.machine import barriers, machines, registers, waits
from phobos.explain.masks import Limits, masks, without_tensor_copies
from phobos.explain.places import Places
from phobos.explain.records import Explanation, Kernel, Pipelining
from phobos.explain.sass import disassemble
from phobos.explain.shared import shared_memory
from phobos.explain.tiles import register_tiles
from phobos.explain.variation import threads_of_kernel
from phobos.ir.kernel import (
    extent_multiple_of,
    extent_multiples_of,
    index_bits_of,
    kernel_name,
    kernels,
    threads_of,
)
from phobos.targets.ptx.chips import Chip, chip
from phobos.targets.ptx.tensor_maps import cluster_of, tensor_maps_of


@dataclass
class _Notes:
    """What is known of a kernel so far."""

    kernel: Kernel
    limits: Limits = field(default_factory=Limits)
    reasons: dict[tuple[int, int], contraction.Reason] = field(default_factory=dict)
    plans: dict[tuple[int, int], Pipelining] = field(default_factory=dict)
    homes: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)
    facts: dict[Key, Facts] = field(default_factory=dict)

    def add(self, **fields: object) -> None:
        self.kernel = replace(self.kernel, **fields)


class Explainer:
    """Looks at a module between passes; `explanation` is what it has found.

    The passes that a pipeline lacks leave their part of the explanation empty.
    """

    def __init__(
        self, source: str, chip_name: str, sources: SourceMap, *, tensor_maps: bool = False
    ) -> None:
        self.source = source
        self.target: Chip = chip(chip_name)
        self.tensor_maps = tensor_maps
        self.places = Places(sources)
        self.notes: dict[str, _Notes] = {}
        self.remarks: list[str] = []
        self.index_bits = self.extent_multiple = 0
        self.extent_multiples: dict[str, int] = {}

    def before(self, pass_name: str, module: ModuleOp) -> None:
        """Look at the module that a pass is about to get."""
        look = _LOOKS.get(pass_name)
        if look is None:
            return
        for kernel in kernels(module):
            look(self, kernel, self._notes_of(kernel))

    def finish(self, module: ModuleOp) -> None:
        """Look at the module behind the last pass."""
        for inner in module.body.block.ops:
            if not isinstance(inner, ptx.PtxModuleOp):
                continue
            for entry in inner.body.ops:
                if isinstance(entry, ptx.EntryOp) and entry.sym_name in self.notes:
                    notes = self.notes[entry.sym_name]
                    notes.add(
                        accesses=accesses(entry, notes.facts, self.places),
                        registers=registers(entry),
                        barriers=barriers(entry),
                        waits=waits(entry),
                        tensor_maps=tensor_maps_of(entry),
                        cluster=cluster_of(entry),
                    )

    def assembled(self, log: str, cubin: bytes) -> None:
        """Look at what ptxas said with `-v`, and at what it made."""
        mixes = disassemble(cubin)
        if isinstance(mixes, str):
            self.remarks.append(mixes)
            mixes = {}
        launches = {
            name: (notes.kernel.threads, _dynamic_bytes(notes.kernel))
            for name, notes in self.notes.items()
        }
        for name, machine in machines(log, mixes, launches, self.target).items():
            if name in self.notes:
                self.notes[name].add(machine=machine)

    @property
    def explanation(self) -> Explanation:
        """All that was found."""
        return Explanation(
            self.source,
            self.target.name,
            self.index_bits,
            self.extent_multiple,
            tuple(notes.kernel for notes in self.notes.values()),
            tuple(self.remarks),
            tuple(self.extent_multiples.items()),
        )

    def _notes_of(self, kernel: gpu.FuncOp) -> _Notes:
        name = kernel_name(kernel)
        if name not in self.notes:
            self.index_bits = index_bits_of(kernel)
            self.extent_multiple = extent_multiple_of(kernel)
            self.extent_multiples = extent_multiples_of(kernel)
            self.notes[name] = _Notes(
                Kernel(name, self.places.of(kernel), threads_of(kernel), _constants(kernel))
            )
        return self.notes[name]


def _constants(kernel: gpu.FuncOp) -> tuple[tuple[str, int | float], ...]:
    """The `@autotune` constants with the values that the kernel is compiled for."""
    given = kernel.attributes.get("phobos.constants")
    if not isinstance(given, DictionaryAttr):
        return ()
    return tuple(
        (name, value.value.data)
        for name, value in given.data.items()
        if isinstance(value, IntegerAttr | FloatAttr)
    )


def _dynamic_bytes(kernel: Kernel) -> int:
    return kernel.shared.bytes if kernel.shared.is_dynamic else 0


# What is looked at, and when


def _threads(explainer: Explainer, kernel: gpu.FuncOp, notes: _Notes) -> None:
    notes.add(variation=threads_of_kernel(kernel, explainer.places))


def _limits(explainer: Explainer, kernel: gpu.FuncOp, notes: _Notes) -> None:
    notes.limits = Limits.gather(kernel, explainer.places)


def _masks(explainer: Explainer, kernel: gpu.FuncOp, notes: _Notes) -> None:
    notes.add(masks=masks(notes.limits, kernel, explainer.places))


def _reasons(explainer: Explainer, kernel: gpu.FuncOp, notes: _Notes) -> None:
    notes.reasons = contraction.reasons(kernel, explainer.target, tensor_maps=explainer.tensor_maps)


def _plans(explainer: Explainer, kernel: gpu.FuncOp, notes: _Notes) -> None:
    notes.plans = contraction.plans(
        kernel,
        explainer.target,
        explainer.places,
        notes.limits,
        tensor_maps=explainer.tensor_maps,
    )
    notes.homes = contraction.homes(kernel)


def _tiles(explainer: Explainer, kernel: gpu.FuncOp, notes: _Notes) -> None:
    places = explainer.places
    notes.facts = access_facts(kernel, notes.limits)
    notes.add(
        tiles=register_tiles(kernel, places),
        masks=without_tensor_copies(notes.kernel.masks, kernel, places),
        shared=shared_memory(kernel, explainer.target, places),
        contractions=contraction.contractions(
            kernel, notes.reasons, notes.plans, notes.homes, places
        ),
    )


_LOOKS: dict[str, Callable[[Explainer, gpu.FuncOp, _Notes], None]] = {
    "ph-infer-uniformity": _threads,
    "ph-mask-slices": _limits,
    "ph-unroll-loops": _masks,
    "ph-select-contraction": _reasons,
    "ph-pipeline-loops": _plans,
    "ph-lower-to-ptx": _tiles,
}
"""The pass before which something is looked at."""
