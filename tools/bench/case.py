"""What a benchmark case is: the arrays, what is computed, and who computes it.

A case is data. It names its dims and arrays, gives the reference in plain operators, and says how
Phobos, PyTorch and Triton compute it; the harness makes the arrays, checks and measures.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from phobos.targets.ptx.contract import TYPE_BYTES

ROOT = Path(__file__).resolve().parents[2]

Extents = Mapping[str, int]
"""The value of each dim of a case."""
Choices = Mapping[str, int]
"""The tuning constants of one candidate, such as {"BLOCK": 1024, "num_warps": 4}."""


class Role(StrEnum):
    """What a contender does with an array."""

    READ = "read"
    WRITTEN = "written"
    SCRATCH = "scratch"
    """A workspace of Phobos' kernel: zero if it holds integers, neither compared nor counted."""


class Rate(StrEnum):
    """What a case is measured in: the thing that limits it."""

    BYTES = "bytes"
    FLOPS = "flops"


@dataclass(frozen=True)
class Array:
    """An array of a case: its dims by name or as numbers, and its type if it is always the same.

    Integers with `below` are subscripts: from 0 up to that dim.
    """

    name: str
    dims: tuple[str | int, ...]
    role: Role
    dtype: str | None = None
    below: str | None = None


def read(name: str, *dims: str | int, dtype: str | None = None, below: str | None = None) -> Array:
    """An input. Without `dtype` it has the type that the case is run with."""
    return Array(name, dims, Role.READ, dtype, below)


def written(name: str, *dims: str | int, dtype: str | None = None) -> Array:
    """An output. Without `dtype` it has the type that the case is run with."""
    return Array(name, dims, Role.WRITTEN, dtype)


def scratch(name: str, *dims: str | int, dtype: str) -> Array:
    """A workspace that Phobos' kernel asks for."""
    return Array(name, dims, Role.SCRATCH, dtype)


@dataclass(frozen=True)
class PhobosKernel:
    """How Phobos computes a case. The kernel's parameters are called as the case's arrays are.

    Attributes:
        source: the program for a dtype, as text or as the path of a file.
        kernel: the name of the kernel in it.
        search: the constants to try; the fastest candidate is reported.
        ctas_per_multiprocessor: for a grid-stride kernel, the grids to try besides the one that
            the launch contract gives.
        chip: the chip to compile for, if not the machine's own.
        others: other programs for the same, which are tried too.
        label: what tells the candidates of this program from those of others.
    """

    source: Callable[[str], str | Path]
    kernel: str
    search: tuple[Choices, ...] = ({},)
    ctas_per_multiprocessor: tuple[int, ...] = ()
    chip: str | None = None
    others: tuple[PhobosKernel, ...] = ()
    label: str = ""


@dataclass(frozen=True)
class TritonKernel:
    """How Triton computes a case.

    Attributes:
        function: the kernel, decorated with `tools.bench.triton_language.jit`.
        arguments: the names of the arrays, scalars and dims that it takes, in order.
        grid: the grid for some extents and choices.
        search: the candidates: values for its constexpr parameters, `num_warps`, `num_stages`.
    """

    function: Any
    arguments: tuple[str, ...]
    grid: Callable[[Extents, Choices], tuple[int, ...]]
    search: tuple[Choices, ...]


Values = SimpleNamespace
"""The arrays and scalars of one run, as attributes by name."""
TorchCall = Callable[[Any, Values], object]
"""Takes the module `torch` and the values; writes to the outputs."""


@dataclass(frozen=True)
class Case:
    """One benchmark.

    Attributes:
        name: what it is called on the command line.
        summary: what is computed, in one line.
        dims: the names of its extents, in the order of `--size`.
        sizes: the sizes that are run by default.
        dtypes: the types it can be run with; all are run by default.
        arrays: what is read and written.
        reference: takes the inputs as f64 arrays and the scalars, and returns the output, or a
            tuple of them in their order. It is written with operators and methods that NumPy
            and PyTorch share.
        phobos, torch, triton: the contenders; PyTorch may have several ways, by label.
        scalars: the values of scalar parameters.
        flops: floating-point operations of one run.
        bytes: bytes of one run; by default each array counts once.
        magnitude: how large an output typically is before rounding. Absolute errors are judged
            relative to it: for a sum of K terms of size 1 it is sqrt(K).
        rate: what the table shows, bytes or operations a second.
        zeroed: outputs that the kernels of Phobos and Triton add to. They are cleared before
            every launch, and the time that this takes is part of it.
        tolerance: how far a result may be off, relative to its magnitude; by default that of the
            output's type.
        trial: a size at which the emulator tries the kernel in reasonable time, where extents
            around 10 and 100 are not such.
    """

    name: str
    summary: str
    dims: tuple[str, ...]
    sizes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    arrays: tuple[Array, ...]
    reference: Callable[[Values], Any]
    phobos: PhobosKernel
    torch: Mapping[str, TorchCall]
    triton: TritonKernel | None = None
    scalars: Mapping[str, float] = field(default_factory=dict)
    flops: Callable[[Extents], int] = lambda _: 0
    bytes: Callable[[Problem], int] | None = None
    magnitude: Callable[[Extents], float] = lambda _: 1.0
    rate: Rate = Rate.BYTES
    zeroed: tuple[str, ...] = ()
    tolerance: float | None = None
    trial: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        names = {dim for array in self.arrays for dim in array.dims if isinstance(dim, str)}
        unknown = names - set(self.dims)
        assert not unknown, f"{self.name}: dims {sorted(unknown)} are not among {self.dims}"
        assert all(len(size) == len(self.dims) for size in self.sizes), f"{self.name}: sizes"
        assert self.outputs, f"{self.name} writes nothing"
        outputs = {array.name for array in self.outputs}
        assert outputs.issuperset(self.zeroed), f"{self.name}: zeroed arrays are outputs"

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The arrays that are read."""
        return tuple(array for array in self.arrays if array.role is Role.READ)

    @property
    def outputs(self) -> tuple[Array, ...]:
        """The arrays that are written."""
        return tuple(array for array in self.arrays if array.role is Role.WRITTEN)

    @property
    def workspaces(self) -> tuple[Array, ...]:
        """The arrays that Phobos' kernel alone needs."""
        return tuple(array for array in self.arrays if array.role is Role.SCRATCH)


@dataclass(frozen=True)
class Problem:
    """A case at one size and type."""

    case: Case
    dtype: str
    size: tuple[int, ...]

    @property
    def extents(self) -> dict[str, int]:
        """The value of each dim."""
        return dict(zip(self.case.dims, self.size, strict=True))

    @property
    def size_text(self) -> str:
        """The size as `--size` takes it."""
        return "x".join(map(str, self.size))

    def shape(self, array: Array) -> tuple[int, ...]:
        """The extents of an array."""
        extents = self.extents
        return tuple(extents[dim] if isinstance(dim, str) else dim for dim in array.dims)

    def dtype_of(self, array: Array) -> str:
        """The language's name of an array's type."""
        return array.dtype or self.dtype

    def below(self, array: Array) -> int | None:
        """The end of the range that an array of subscripts is drawn from."""
        return None if array.below is None else self.extents[array.below]

    def array_bytes(self, array: Array) -> int:
        """The bytes that an array takes."""
        return math.prod(self.shape(array)) * TYPE_BYTES[self.dtype_of(array)]

    @property
    def footprint(self) -> int:
        """The bytes that all arrays take."""
        return sum(map(self.array_bytes, self.case.arrays))

    @property
    def bytes(self) -> int:
        """The bytes that one run must move."""
        if self.case.bytes is not None:
            return self.case.bytes(self)
        return sum(map(self.array_bytes, (*self.case.inputs, *self.case.outputs)))

    @property
    def flops(self) -> int:
        """The floating-point operations of one run."""
        return self.case.flops(self.extents)


# What case files are written with ----------------------------------------------------------------


def choices(**values: int | tuple[int, ...]) -> tuple[Choices, ...]:
    """Every combination: `choices(BLOCK=(512, 1024), num_warps=4)` gives two candidates."""
    axes = [value if isinstance(value, tuple) else (value,) for value in values.values()]
    return tuple(
        dict(zip(values, combination, strict=True)) for combination in itertools.product(*axes)
    )


def example(name: str) -> Path:
    """A program in examples/."""
    return ROOT / "examples" / name


def shipped(name: str) -> Path:
    """A program in phobos/kernels/."""
    return ROOT / "phobos" / "kernels" / f"{name}.ph"


def ceildiv(a: int, b: int) -> int:
    """The quotient, rounded up."""
    return -(-a // b)
