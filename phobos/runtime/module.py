"""A compiled module in Python: its PTX, its contract and its kernels, ready to be launched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phobos.diagnostics import PhobosError, SourceMap
from phobos.runtime.abi import entry_arguments
from phobos.runtime.device import Device, Launch, Program
from phobos.runtime.launcher import GridArgument, prepare
from phobos.runtime.multiples import MAX_EXTENT_MULTIPLE, Multiples, multiples_of
from phobos.targets.ptx.contract import Contract, KernelContract, load

if TYPE_CHECKING:
    from phobos.runtime.plans import PlanCache


@dataclass(frozen=True, slots=True)
class Variant:
    """What may differ between two compilations of one source for different launches.

    `index_bits` is None where the source decides.
    """

    multiples: Multiples
    index_bits: int | None
    line_info: bool
    tensor_maps: bool = False


Compile = Callable[[Variant], tuple[str, Contract]]
"""Compiles a source for a variant; gives the PTX and its contract."""


class Module:
    """The kernels of one source: `module["saxpy"](x, y, out, 2.0)`.

    Attributes:
        ptx: the PTX text, compiled as it was asked for.
        contract: how to launch it.
        sources: the text of the source, for the excerpts of what a launch reports.

    A launch may use another variant of the same source, compiled for the extents of the arrays
    that it gets (see `phobos.compile`), and with `tensor_maps` such that may take those. A module
    that was made from files has the one variant.
    """

    def __init__(
        self,
        ptx: str,
        contract: Contract,
        *,
        variant: Variant | None = None,
        compile: Compile | None = None,
        tensor_maps: bool = False,
        sources: SourceMap | None = None,
    ) -> None:
        self.ptx = ptx
        self.contract = contract
        self.sources = sources
        self._variant = variant
        self._compile = compile
        self._tensor_maps = tensor_maps
        self._kernels: dict[str, Kernel] = {}
        self._variants: dict[Variant, tuple[str, Contract]] = {}
        if variant is not None:
            self._variants[variant] = (ptx, contract)

    @classmethod
    def from_files(cls, ptx: str | Path, contract: str | Path | None = None) -> Module:
        """A module from a `.ptx` file and the contract beside it, or the one named.

        Raises PhobosError if a file cannot be read or is no contract, or if the two are not of one
        compilation, as far as the names of the parameters tell.
        """
        path = Path(ptx)
        launch_contract = load(path.with_suffix(".json") if contract is None else contract)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PhobosError.at(None, f"cannot read {path}: {error}") from error
        _check_entries(path, text, launch_contract)
        return cls(text, launch_contract)

    def __repr__(self) -> str:
        return f"<module of {', '.join(self) or 'no kernel'} for {self.contract.chip}>"

    def __getitem__(self, name: str) -> Kernel:
        """The kernel of a name; PhobosError if there is none."""
        if name not in self._kernels:
            self._kernels[name] = Kernel(self, self.contract.kernel(name))
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        """The names of the kernels."""
        return (kernel.name for kernel in self.contract.kernels)

    def __len__(self) -> int:
        """The number of kernels."""
        return len(self.contract.kernels)

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The kernels by name."""
        return {name: self[name] for name in self}

    def program(
        self,
        kernel: str,
        extents: Mapping[str, int],
        index_bits: int,
        *,
        line_info: bool,
        map_fault: str | None = None,
    ) -> Program:
        """The variant of a kernel that is right for these extents (`ProgramSource`)."""
        if self._compile is None or self._variant is None:
            self._check_fixed(kernel, extents, index_bits)
            _check_no_fault(kernel, map_fault)
            return _program(self.ptx, self.contract, kernel)
        wanted = self._variant.index_bits
        if wanted is None and index_bits > self.contract.index_bits:
            wanted = index_bits
        multiples = multiples_of(self.contract.kernel(kernel), extents)
        variant = Variant(
            multiples,
            wanted,
            line_info or self._variant.line_info,
            tensor_maps=self._tensor_maps and map_fault is None,
        )
        if variant not in self._variants:
            self._variants[variant] = self._compile(variant)
        ptx, contract = self._variants[variant]
        _check_index(contract, kernel, index_bits)
        return _program(ptx, contract, kernel)

    @contextmanager
    def located(self) -> Iterator[None]:
        """Give errors raised inside the text of the source, whose lines they may name."""
        try:
            yield
        except PhobosError as error:
            known, own = error.sources or SourceMap(), self.sources or SourceMap()
            for name in own.names():
                text = own.text(name)
                if known.text(name) is None and text is not None:
                    known.add(name, text)
            error.with_sources(known)
            raise

    def _check_fixed(self, kernel: str, extents: Mapping[str, int], index_bits: int) -> None:
        for name, extent in extents.items():
            compiled_for = self.contract.extent_multiple_of(name)
            if extent % compiled_for:
                raise PhobosError.at(
                    None,
                    f"`{kernel}` was compiled for a `{name}` that is a multiple of "
                    f"{compiled_for}, and that of the arrays passed is {extent}",
                    help=f"compile it with --extent-multiple {name}="
                    f"{gcd(extent, MAX_EXTENT_MULTIPLE)}",
                )
        _check_index(self.contract, kernel, index_bits)


_COMMENT = re.compile(r"//[^\n]*")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?")
_PARAMETER = re.compile(r"([\w$]+)\s*(?:\[\d+\])?\s*(?:,|$)")


def _check_entries(path: Path, text: str, contract: Contract) -> None:
    """Refuse PTX whose entries take other arguments than a launch by the contract passes.

    They are passed by their order, so that the kernel would take one for another.
    """
    entries = dict(_ENTRY.findall(_COMMENT.sub("", text)))
    for kernel in contract.kernels:
        if kernel.name not in entries:
            continue
        taken = _PARAMETER.findall(entries[kernel.name])
        passed = [one.name for one in entry_arguments(kernel, contract.index_bits)]
        for position, (one, other) in enumerate(zip_longest(taken, passed), 1):
            if one != other:
                raise PhobosError.at(
                    None,
                    f"{path} and its launch contract do not belong together: argument "
                    f"{position} of `{kernel.name}` is {_quoted(one)} in one and "
                    f"{_quoted(other)} in the other",
                    help="compile the program again, which writes both",
                )


def _quoted(name: str | None) -> str:
    return "none" if name is None else f"`{name}`"


def _check_no_fault(kernel: str, map_fault: str | None) -> None:
    if map_fault is not None:
        raise PhobosError.at(
            None,
            f"`{kernel}` was compiled to copy by tensor maps, and an array passed cannot have one: "
            f"{map_fault}",
            help="compile it without --tensor-maps",
        )


def _check_index(contract: Contract, kernel: str, index_bits: int) -> None:
    if index_bits > contract.index_bits:
        raise PhobosError.at(
            None,
            f"`{kernel}` was compiled with an index of {contract.index_bits} bits, and an extent "
            "or stride of the arrays passed is larger than that",
            help=f"compile it with --index-bits {index_bits}",
        )


def _program(ptx: str, contract: Contract, kernel: str) -> Program:
    return Program(ptx, contract.chip, contract.index_bits, contract.kernel(kernel))


class Kernel:
    """One kernel of a module; calling it launches it.

    Attributes:
        module: the module that it belongs to.
        contract: how to launch it.
    """

    def __init__(self, module: Module, contract: KernelContract) -> None:
        self.module = module
        self.contract = contract
        self._plans: PlanCache | None = None

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.contract.name

    def __call__(
        self,
        *args: Any,
        grid: GridArgument = None,
        device: str | Device = "auto",
        stream: Any = None,
        **named: Any,
    ) -> None:
        """Launch the kernel on arrays and scalars, in the order of its parameters or by name.

        Args:
            args: NumPy arrays, or arrays with `__cuda_array_interface__` or DLPack, and numbers.
            grid: CTAs along x, y and z; by default what the contract says.
            device: `cuda`, `emulator`, or `auto` for the GPU if there is one.
            stream: the CUDA stream, by default the current one of the arrays' framework.
            named: parameters by name.

        NumPy arrays are written when this returns. With arrays on a GPU the kernel is queued on
        the stream, as any kernel is. Raises PhobosError if the launch is wrong; nothing is
        written then.
        """
        is_plain = stream is None and not named
        if is_plain and self._plans is not None and self._plans.launch(args, grid, device):
            return
        chosen, launch = prepare(
            self.module, self.contract, args, named, grid=grid, device=device, stream=stream
        )
        if launch is None:
            return
        with self.module.located():
            chosen.launch(launch)
        if is_plain and chosen.name == "cuda":
            self._remember(args, grid, device, chosen, launch)

    def _remember(
        self,
        args: tuple[Any, ...],
        grid: GridArgument,
        device: str | Device,
        chosen: Device,
        launch: Launch,
    ) -> None:
        """Make the next launch with like arguments quick."""
        if self._plans is None:
            from phobos.runtime.plans import PlanCache

            self._plans = PlanCache(self.contract)
        self._plans.remember(args, grid, device, chosen, launch)

    def __repr__(self) -> str:
        """The kernel's signature."""
        return f"<kernel {self.contract}>"
