"""The launch contract: what a host must know to launch a compiled kernel.

It is written as JSON beside the PTX and kept as an object in Python. Launchers, `phobos-run` and
tuners launch from it alone; none of them looks at the source or at the PTX again.

    {"format": 1, "chip": "sm_80", "index_bits": 32, "extent_multiple": 4, ...,
     "kernels": [{"name": "saxpy", "threads": 256, "grid": ["ceildiv(N, 16)", "1", "1"],
                  "parameters": [{"kind": "tensor", "name": "x", "type": "f32",
                                  "dims": [{"name": "N", "extent": null}], "access": "read"},
                                 {"kind": "scalar", "name": "alpha", "type": "f32"}], ...}]}

The module needs the standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from phobos.diagnostics import PhobosError, did_you_mean
from phobos.record import Record, Value, record

FORMAT = 1
"""The version of the JSON form; a reader refuses any other."""

TYPE_BYTES: dict[str, int] = {
    "bool": 1,
    "i8": 1,
    "u8": 1,
    "i16": 2,
    "u16": 2,
    "i32": 4,
    "u32": 4,
    "i64": 8,
    "u64": 8,
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
    "f8e4m3": 1,
    "f8e5m2": 1,
}
"""Bytes of one element of each scalar type of the language, in memory and as an argument."""

_T = TypeVar("_T")


class Access(StrEnum):
    """What a kernel does to the elements of a tensor."""

    NONE = "none"
    READ = "read"
    WRITE = "write"
    READWRITE = "readwrite"

    @property
    def reads(self) -> bool:
        """Whether elements are read."""
        return self in (Access.READ, Access.READWRITE)

    @property
    def writes(self) -> bool:
        """Whether elements are written."""
        return self in (Access.WRITE, Access.READWRITE)


class ChipSource(StrEnum):
    """Where the choice of the chip came from."""

    OPTION = "option"
    ENVIRONMENT = "PHOBOS_CHIP"
    GPU = "gpu"
    DEFAULT = "default"


class GridSource(StrEnum):
    """Where the default grid came from."""

    INFERRED = "inferred"
    ATTRIBUTE = "@grid"
    NONE = "none"


@record
class Dimension(Value):
    """One axis of a tensor: its name if it has one, its extent if that is compiled in."""

    name: str | None
    extent: int | None

    def __post_init__(self) -> None:
        assert self.name is not None or self.extent is not None

    def __str__(self) -> str:
        """The axis as it stands in the source, or its compiled-in extent."""
        return self.name if self.name is not None else str(self.extent)


@record
class TensorParameter(Value):
    """A tensor: 3 + 2 * rank arguments of the entry (pointers, offset, sizes, strides)."""

    name: str
    type: str
    dims: tuple[Dimension, ...]
    access: Access = Access.READWRITE

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.dims)

    def __str__(self) -> str:
        """The parameter as it is declared: `x: tensor<f32>[N]`."""
        return f"{self.name}: tensor<{self.type}>[{', '.join(map(str, self.dims))}]"


@record
class ScalarParameter(Value):
    """A scalar: one argument of the entry, of its own type."""

    name: str
    type: str

    def __str__(self) -> str:
        """The parameter as it is declared: `alpha: f32`."""
        return f"{self.name}: {self.type}"


Parameter = TensorParameter | ScalarParameter


@record
class LaunchBounds(Value):
    """What `@launch` declared: threads along x, and bounds for the register allocation."""

    threads: int
    min_ctas: int | None = None
    max_regs: int | None = None


@record
class KernelContract(Value):
    """How to launch one kernel.

    `threads` is the block size along x, in every case. `grid` holds expressions over the names
    of dims, constants and integer scalars (see `phobos.runtime.expressions`), or is None where
    the launch must name one. `aligned` maps a dim to the number its extent must be a multiple of.
    """

    name: str
    threads: int
    parameters: tuple[Parameter, ...]
    launch_bounds: LaunchBounds | None = None
    static_shared_bytes: int = 0
    dynamic_shared_bytes: int = 0
    persistent: bool = False
    constants: dict[str, int | float] = field(default_factory=dict)
    autotune: dict[str, tuple[int, ...]] = field(default_factory=dict)
    aligned: dict[str, int] = field(default_factory=dict)
    grid: tuple[str, str, str] | None = None
    grid_from: GridSource = GridSource.NONE

    @property
    def tensors(self) -> tuple[TensorParameter, ...]:
        """The tensor parameters, in order."""
        return tuple(p for p in self.parameters if isinstance(p, TensorParameter))

    @property
    def scalars(self) -> tuple[ScalarParameter, ...]:
        """The scalar parameters, in order."""
        return tuple(p for p in self.parameters if isinstance(p, ScalarParameter))

    @property
    def launch_dims(self) -> tuple[str, ...]:
        """The names of the extents that the launch decides, in order of first appearance."""
        named = (d.name for t in self.tensors for d in t.dims if d.extent is None)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def __str__(self) -> str:
        """The kernel's signature, without `kernel`."""
        return f"{self.name}({', '.join(map(str, self.parameters))})"


@record
class Contract(Value):
    """How to launch the kernels of one PTX module, and how that module was made."""

    source: str
    chip: str
    ptx_version: str
    index_bits: int
    extent_multiple: int
    kernels: tuple[KernelContract, ...]
    chip_from: ChipSource = ChipSource.OPTION
    compiler_name: str = "phobos"
    compiler_version: str = ""
    compiler_fingerprint: str = ""
    extent_multiples: dict[str, int] = field(default_factory=dict)

    def extent_multiple_of(self, dim: str) -> int:
        """What the code takes for granted to divide the extent of a dim."""
        return self.extent_multiples.get(dim, self.extent_multiple)

    def kernel(self, name: str | None = None) -> KernelContract:
        """The kernel of that name; without a name the only one. PhobosError if there is none."""
        names = [kernel.name for kernel in self.kernels]
        if not names:
            raise PhobosError.at(None, f"{self.source} has no kernel")
        if name is None:
            if len(names) == 1:
                return self.kernels[0]
            raise PhobosError.at(
                None,
                f"{self.source} has {len(names)} kernels and none was chosen",
                help=f"name one of {', '.join(names)}",
            )
        if name not in names:
            raise PhobosError.at(
                None,
                f"{self.source} has no kernel `{name}`",
                help=did_you_mean(name, names) or f"it has {', '.join(names)}",
            )
        return self.kernels[names.index(name)]

    def to_json(self) -> dict[str, Any]:
        """The contract as JSON values."""
        return {
            "format": FORMAT,
            "compiler": {
                "name": self.compiler_name,
                "version": self.compiler_version,
                "fingerprint": self.compiler_fingerprint,
            },
            "source": self.source,
            "chip": self.chip,
            "chip_from": self.chip_from.value,
            "ptx_version": self.ptx_version,
            "index_bits": self.index_bits,
            "extent_multiple": self.extent_multiple,
            "extent_multiples": dict(self.extent_multiples),
            "kernels": [_kernel_to_json(kernel) for kernel in self.kernels],
        }

    def dumps(self) -> str:
        """The JSON text, indented, with a line end."""
        return json.dumps(self.to_json(), indent=2) + "\n"


def loads(text: str, name: str = "contract") -> Contract:
    """The contract in a JSON text; `name` is the file in error messages.

    Raises PhobosError that names the field if the text is not a contract of this format.
    """
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise PhobosError.at(None, f"{name} is not JSON: {error}") from error
    return from_json(data, name)


def load(path: str | Path) -> Contract:
    """The contract in a file. Raises PhobosError if it cannot be read or is not one."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PhobosError.at(
            None,
            f"cannot read the launch contract {path}: {_reason(error)}",
            help="phobos-compile writes it beside the PTX, as FILE.json",
        ) from error
    return loads(text, str(path))


def from_json(data: Any, name: str = "contract") -> Contract:
    """The contract in JSON values. Raises PhobosError that names the field that is wrong."""
    reader = _Reader(data, name, "")
    version = reader.integer("format")
    if version != FORMAT:
        raise PhobosError.at(
            None,
            f"{name} is a launch contract of format {version}; this release reads format {FORMAT}",
            help="compile the kernel again",
        )
    compiler = reader.object("compiler")
    return Contract(
        source=reader.text("source"),
        chip=reader.text("chip"),
        chip_from=reader.choice("chip_from", ChipSource),
        ptx_version=reader.text("ptx_version"),
        index_bits=reader.one_of("index_bits", (32, 64)),
        extent_multiple=reader.integer("extent_multiple", least=1),
        extent_multiples=_extent_multiples(reader),
        kernels=tuple(map(_kernel_from_json, reader.objects("kernels"))),
        compiler_name=compiler.text("name"),
        compiler_version=compiler.text("version"),
        compiler_fingerprint=compiler.text("fingerprint"),
    )


def _extent_multiples(reader: _Reader) -> dict[str, int]:
    """Missing in contracts of compilers that had one number for all dims."""
    found = reader.optional("extent_multiples", reader.object)
    return {} if found is None else found.mapping("a positive integer", _is_positive)


# To JSON -----------------------------------------------------------------------------------------


def _kernel_to_json(kernel: KernelContract) -> dict[str, Any]:
    bounds = kernel.launch_bounds
    return {
        "name": kernel.name,
        "threads": kernel.threads,
        "launch_bounds": bounds
        and {"threads": bounds.threads, "min_ctas": bounds.min_ctas, "max_regs": bounds.max_regs},
        "static_shared_bytes": kernel.static_shared_bytes,
        "dynamic_shared_bytes": kernel.dynamic_shared_bytes,
        "persistent": kernel.persistent,
        "constants": dict(kernel.constants),
        "autotune": {name: list(values) for name, values in kernel.autotune.items()},
        "aligned": dict(kernel.aligned),
        "parameters": [_parameter_to_json(parameter) for parameter in kernel.parameters],
        "grid": None if kernel.grid is None else list(kernel.grid),
        "grid_from": kernel.grid_from.value,
    }


def _parameter_to_json(parameter: Parameter) -> dict[str, Any]:
    if isinstance(parameter, ScalarParameter):
        return {"kind": "scalar", "name": parameter.name, "type": parameter.type}
    return {
        "kind": "tensor",
        "name": parameter.name,
        "type": parameter.type,
        "dims": [{"name": dim.name, "extent": dim.extent} for dim in parameter.dims],
        "access": parameter.access.value,
    }


# From JSON ---------------------------------------------------------------------------------------


def _kernel_from_json(reader: _Reader) -> KernelContract:
    bounds = reader.optional("launch_bounds", reader.object)
    grid = reader.optional("grid", reader.texts)
    if grid is not None and len(grid) != 3:
        raise reader.error("grid", "three expressions", grid)
    return KernelContract(
        name=reader.text("name"),
        threads=reader.integer("threads", least=1),
        parameters=tuple(map(_parameter_from_json, reader.objects("parameters"))),
        launch_bounds=bounds
        and LaunchBounds(
            bounds.integer("threads", least=1),
            bounds.optional("min_ctas", bounds.integer),
            bounds.optional("max_regs", bounds.integer),
        ),
        static_shared_bytes=reader.integer("static_shared_bytes", least=0),
        dynamic_shared_bytes=reader.integer("dynamic_shared_bytes", least=0),
        persistent=reader.boolean("persistent"),
        constants=reader.object("constants").mapping("a number", _is_number),
        autotune={
            name: tuple(values)
            for name, values in reader.object("autotune").mapping("a list", _is_int_list).items()
        },
        aligned=reader.object("aligned").mapping("a positive integer", _is_positive),
        grid=None if grid is None else (grid[0], grid[1], grid[2]),
        grid_from=reader.choice("grid_from", GridSource),
    )


def _parameter_from_json(reader: _Reader) -> Parameter:
    kind = reader.one_of("kind", ("tensor", "scalar"))
    name, type_name = reader.text("name"), reader.one_of("type", tuple(TYPE_BYTES))
    if kind == "scalar":
        return ScalarParameter(name, type_name)
    dims = tuple(map(_dimension_from_json, reader.objects("dims")))
    return TensorParameter(name, type_name, dims, reader.choice("access", Access))


def _dimension_from_json(reader: _Reader) -> Dimension:
    name = reader.optional("name", reader.text)
    extent = reader.optional("extent", reader.integer)
    if name is None and extent is None:
        raise reader.error("extent", "an integer, since the axis has no name", None)
    return Dimension(name, extent)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_int_list(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int for item in value)


@record
class _Reader(Record):
    """Takes typed fields out of a JSON object; a wrong one is an error that names its path."""

    data: Any
    file: str
    path: str

    def __post_init__(self) -> None:
        if not isinstance(self.data, dict):
            place = f" at {self.path.rstrip('.')}" if self.path else ""
            raise PhobosError.at(None, f"{self.file} is no launch contract: no object{place}")

    def error(self, key: str, expected: str, got: object) -> PhobosError:
        shown = "nothing" if got is None else json.dumps(got)[:60]
        return PhobosError.at(
            None,
            f"{self.file} is no launch contract: `{self.path}{key}` must be {expected}, "
            f"and is {shown}",
        )

    def _get(self, key: str, expected: str, is_valid: Callable[[Any], bool]) -> Any:
        value = self.data.get(key)
        if not is_valid(value):
            raise self.error(key, expected, value)
        return value

    def text(self, key: str) -> str:
        return self._get(key, "a string", lambda value: isinstance(value, str))

    def boolean(self, key: str) -> bool:
        return self._get(key, "true or false", lambda value: isinstance(value, bool))

    def integer(self, key: str, least: int | None = None) -> int:
        expected = "an integer" if least is None else f"an integer of at least {least}"
        return self._get(
            key, expected, lambda value: type(value) is int and (least is None or value >= least)
        )

    def one_of(self, key: str, values: tuple[_T, ...]) -> _T:
        expected = f"one of {', '.join(map(str, values))}"
        return self._get(
            key, expected, lambda value: any(value == v and type(value) is type(v) for v in values)
        )

    def choice(self, key: str, enum: Callable[[str], _T]) -> _T:
        value = self.text(key)
        try:
            return enum(value)
        except ValueError:
            raise self.error(key, "a known value", value) from None

    def texts(self, key: str) -> list[str]:
        return self._get(
            key,
            "a list of strings",
            lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value),
        )

    def object(self, key: str) -> _Reader:
        value = self._get(key, "an object", lambda value: isinstance(value, dict))
        return _Reader(value, self.file, f"{self.path}{key}.")

    def objects(self, key: str) -> Iterator[_Reader]:
        values = self._get(key, "a list", lambda value: isinstance(value, list))
        for index, value in enumerate(values):
            yield _Reader(value, self.file, f"{self.path}{key}[{index}].")

    def mapping(self, expected: str, is_valid: Callable[[Any], bool]) -> dict[str, Any]:
        for key in self.data:
            self._get(key, expected, is_valid)
        return dict(self.data)

    def optional(self, key: str, read: Callable[[str], _T]) -> _T | None:
        return None if self.data.get(key) is None else read(key)


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"
