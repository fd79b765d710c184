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
from dataclasses import field
from enum import StrEnum
from math import prod
from pathlib import Path
from typing import Any

from phobos.diagnostics import PhobosError, did_you_mean
from phobos.record import Value, record
from phobos.targets.ptx.contract_reader import Reader, is_integer_list, is_number, is_positive

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

MAP_TYPE_BYTES: dict[str, int] = {**TYPE_BYTES, "tf32": 4}
"""Bytes of one element of each type that a tensor map copies; `tf32` is f32, rounded on the way."""

SWIZZLES = (0, 32, 64, 128)
"""The bytes of shared memory that a tensor map's swizzle permutes; 0 permutes none."""

MAP_BYTES = 128
MAP_ALIGNMENT = 64
MAX_MAP_AXES = 5
MAX_BOX_EXTENT = 256
MAP_UNIT = 16
"""Bytes that a row of a tensor map's box is a multiple of."""

MAX_CLUSTER = 8
"""CTAs of a cluster that every GPU with clusters takes."""


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
class TensorMap(Value):
    """A tensor map that an entry takes behind the parameters of the ABI: 128 bytes, aligned to 64.

    The host encodes it (`cuTensorMapEncodeTiled`) for the array that it passes as `tensor`; what
    lies outside the array reads as 0.

    Attributes:
        tensor: the name of the tensor parameter.
        type: the element type as it is copied: the tensor's own, or `tf32` for an f32 tensor whose
            elements are rounded to that on the way.
        box: the extents of what one copy moves, in elements, an entry for each axis of the
            tensor, outermost first.
        swizzle: the bytes of a row of shared memory that the copy permutes: 0, 32, 64 or 128.
    """

    tensor: str
    type: str
    box: tuple[int, ...]
    swizzle: int

    @property
    def row_bytes(self) -> int:
        """Bytes of one innermost row of the box."""
        return self.box[-1] * MAP_TYPE_BYTES[self.type]

    def __str__(self) -> str:
        """The map in a few words: `A: boxes of 64 x 64 f16, swizzled by 128 bytes`."""
        swizzled = f", swizzled by {self.swizzle} bytes" if self.swizzle else ""
        return f"{self.tensor}: boxes of {' x '.join(map(str, self.box))} {self.type}{swizzled}"


def map_parameter_name(tensor: str, position: int) -> str:
    """The name of the entry's parameter for the tensor map at a position among all: `A_map_0`."""
    return f"{tensor}_map_{position}"


Cluster = tuple[int, int, int]

NO_CLUSTER: Cluster = (1, 1, 1)


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
    `tensor_maps` are further arguments, in this order behind those of `parameters`. `cluster` is
    how many CTAs along x, y and z form a cluster, which the PTX demands: the grid of a launch must
    be a multiple of it along each axis.
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
    tensor_maps: tuple[TensorMap, ...] = ()
    cluster: Cluster = NO_CLUSTER

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
    reader = Reader(data, name, "")
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


def _extent_multiples(reader: Reader) -> dict[str, int]:
    """Missing in contracts of compilers that had one number for all dims."""
    found = reader.optional("extent_multiples", reader.object)
    return {} if found is None else found.mapping("a positive integer", is_positive)


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
        "tensor_maps": [_map_to_json(one) for one in kernel.tensor_maps],
        "cluster": list(kernel.cluster),
    }


def _map_to_json(one: TensorMap) -> dict[str, Any]:
    return {
        "tensor": one.tensor,
        "type": one.type,
        "box": list(one.box),
        "swizzle": one.swizzle,
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


def _kernel_from_json(reader: Reader) -> KernelContract:
    bounds = reader.optional("launch_bounds", reader.object)
    grid = reader.optional("grid", reader.texts)
    if grid is not None and len(grid) != 3:
        raise reader.error("grid", "three expressions", grid)
    parameters = tuple(map(_parameter_from_json, reader.objects("parameters")))
    return KernelContract(
        name=reader.text("name"),
        threads=reader.integer("threads", least=1),
        parameters=parameters,
        launch_bounds=bounds
        and LaunchBounds(
            bounds.integer("threads", least=1),
            bounds.optional("min_ctas", bounds.integer),
            bounds.optional("max_regs", bounds.integer),
        ),
        static_shared_bytes=reader.integer("static_shared_bytes", least=0),
        dynamic_shared_bytes=reader.integer("dynamic_shared_bytes", least=0),
        persistent=reader.boolean("persistent"),
        constants=reader.object("constants").mapping("a number", is_number),
        autotune={
            name: tuple(values)
            for name, values in reader.object("autotune").mapping("a list", is_integer_list).items()
        },
        aligned=reader.object("aligned").mapping("a positive integer", is_positive),
        grid=None if grid is None else (grid[0], grid[1], grid[2]),
        grid_from=reader.choice("grid_from", GridSource),
        tensor_maps=_maps_from_json(reader, parameters),
        cluster=_cluster_from_json(reader),
    )


def _maps_from_json(reader: Reader, parameters: tuple[Parameter, ...]) -> tuple[TensorMap, ...]:
    """Missing in contracts of compilers that had none."""
    listed = reader.optional("tensor_maps", reader.objects)
    tensors = {one.name: one for one in parameters if isinstance(one, TensorParameter)}
    return tuple(_map_from_json(one, tensors) for one in listed or ())


def _map_from_json(reader: Reader, tensors: dict[str, TensorParameter]) -> TensorMap:
    tensor = tensors[reader.one_of("tensor", tuple(tensors))]
    types = (tensor.type, "tf32") if tensor.type == "f32" else (tensor.type,)
    box = reader.integers("box")
    one = TensorMap(
        tensor.name, reader.one_of("type", types), box, reader.one_of("swizzle", SWIZZLES)
    )
    if not 1 <= tensor.rank <= MAX_MAP_AXES:
        raise reader.error("tensor", f"a tensor of 1 to {MAX_MAP_AXES} axes", tensor.name)
    if len(box) != tensor.rank or not all(1 <= extent <= MAX_BOX_EXTENT for extent in box):
        form = f"{tensor.rank} integers from 1 to {MAX_BOX_EXTENT}"
        raise reader.error("box", form, list(box))
    if one.row_bytes % MAP_UNIT or (one.swizzle and one.row_bytes > one.swizzle):
        most = f", at most {one.swizzle}" if one.swizzle else ""
        form = f"of rows that are a multiple of {MAP_UNIT} bytes{most}"
        raise reader.error("box", form, list(box))
    return one


def _cluster_from_json(reader: Reader) -> Cluster:
    found = reader.optional("cluster", reader.integers)
    if found is None:
        return NO_CLUSTER
    if len(found) != 3 or min(found) < 1 or prod(found) > MAX_CLUSTER:
        form = f"three positive integers whose product is at most {MAX_CLUSTER}"
        raise reader.error("cluster", form, list(found))
    x, y, z = found
    return x, y, z


def _parameter_from_json(reader: Reader) -> Parameter:
    kind = reader.one_of("kind", ("tensor", "scalar"))
    name, type_name = reader.text("name"), reader.one_of("type", tuple(TYPE_BYTES))
    if kind == "scalar":
        return ScalarParameter(name, type_name)
    dims = tuple(map(_dimension_from_json, reader.objects("dims")))
    return TensorParameter(name, type_name, dims, reader.choice("access", Access))


def _dimension_from_json(reader: Reader) -> Dimension:
    name = reader.optional("name", reader.text)
    extent = reader.optional("extent", reader.integer)
    if name is None and extent is None:
        raise reader.error("extent", "an integer, since the axis has no name", None)
    return Dimension(name, extent)


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"
