"""What a kernel says of itself: typed reading of a `gpu.func`'s attributes.

The front end writes them (see docs); another compiler that hands us a `gpu.func` may leave
out any of them and gets the defaults.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import gpu
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

DEFAULT_THREADS = 256
INDEX_BITS = "phobos.index_bits"
EXTENT_MULTIPLE = "phobos.extent_multiple"
LAUNCH_BOUNDS = "phobos.launch_bounds"
EXTENT_MULTIPLES = "phobos.extent_multiples"
FAST_MATH = "phobos.fast_math"
"""The attribute of a kernel that asks for approximate functions, and sums of fewer bits."""
CLUSTER = "phobos.cluster"
"""The attribute of a kernel whose CTAs form clusters: how many along x, y and z."""
DEFAULT_INDEX_BITS = 32
DEFAULT_EXTENT_MULTIPLE = 4


def kernels(module: ModuleOp) -> Iterator[gpu.FuncOp]:
    """The kernels of a module, in order."""
    for op in module.body.block.ops:
        if isinstance(op, gpu.ModuleOp):
            for inner in op.body.block.ops:
                if isinstance(inner, gpu.FuncOp) and inner.kernel is not None:
                    yield inner


def kernel_name(kernel: gpu.FuncOp) -> str:
    """The kernel's name, which is also its PTX entry's."""
    name = kernel.sym_name
    assert isinstance(name, StringAttr)
    return name.data


def threads_of(kernel: gpu.FuncOp) -> int:
    """Threads of a CTA, all along x."""
    block_size = kernel.known_block_size
    return int(block_size.get_values()[0]) if block_size is not None else DEFAULT_THREADS


def cluster_size_of(kernel: gpu.FuncOp) -> int:
    """How many CTAs along x form a cluster; 1 if the kernel does not say."""
    found = kernel.attributes.get(CLUSTER)
    if not isinstance(found, DenseArrayBase):
        return 1
    return int(found.get_values()[0]) if len(found) else 1


def launch_bound(kernel: gpu.FuncOp, name: str) -> int | None:
    """What `@launch` says of a kernel: its `threads`, `min_ctas` or `max_regs`; None if nothing."""
    bounds = kernel.attributes.get(LAUNCH_BOUNDS)
    found = bounds.data.get(name) if isinstance(bounds, DictionaryAttr) else None
    return found.value.data if isinstance(found, IntegerAttr) else None


def module_int(op: Operation, name: str, default: int) -> int:
    """An integer attribute of the nearest op around `op` that has it."""
    current: Operation | None = op
    while current is not None:
        found = current.attributes.get(name)
        if isinstance(found, IntegerAttr):
            return found.value.data
        current = current.parent_op()
    return default


def index_bits_of(op: Operation) -> int:
    """The width of `index` in the module around `op`: 32 or 64."""
    return module_int(op, INDEX_BITS, DEFAULT_INDEX_BITS)


def extent_multiple_of(op: Operation) -> int:
    """What divides every extent that is read from the launch, as the caller promises."""
    return module_int(op, EXTENT_MULTIPLE, DEFAULT_EXTENT_MULTIPLE)


def extent_multiples_of(op: Operation) -> dict[str, int]:
    """Dims with a promise of their own, in place of `extent_multiple_of`, in the module around."""
    current: Operation | None = op
    while current is not None:
        if EXTENT_MULTIPLES in current.attributes:
            return _integers(current.attributes[EXTENT_MULTIPLES])
        current = current.parent_op()
    return {}


def argument_attributes(kernel: gpu.FuncOp, position: int) -> dict[str, Attribute]:
    """The attributes of one kernel argument; none where the producer gave none."""
    listed = kernel.attributes.get("arg_attrs")
    if not isinstance(listed, ArrayAttr) or position >= len(listed.data):
        return {}
    entry = listed.data[position]
    return dict(entry.data) if isinstance(entry, DictionaryAttr) else {}


def argument_name(kernel: gpu.FuncOp, position: int) -> str:
    """The parameter's name in the source, else its hint in the IR, else `arg<position>`."""
    given = argument_attributes(kernel, position).get("phobos.name")
    if isinstance(given, StringAttr):
        return given.data
    return kernel.body.blocks[0].args[position].name_hint or f"arg{position}"


def dim_names(kernel: gpu.FuncOp, position: int) -> tuple[str | int | None, ...]:
    """Per axis of a tensor parameter: its name, its literal extent, or None if unnamed."""
    type_ = kernel.body.blocks[0].args[position].type
    if not isinstance(type_, MemRefType):
        return ()
    given = argument_attributes(kernel, position).get("phobos.dims")
    if isinstance(given, ArrayAttr) and len(given.data) == len(type_.get_shape()):
        return tuple(_dim(entry) for entry in given.data)
    return tuple(None if extent == DYNAMIC_INDEX else extent for extent in type_.get_shape())


def _dim(entry: Attribute) -> str | int | None:
    if isinstance(entry, StringAttr):
        return entry.data
    return entry.value.data if isinstance(entry, IntegerAttr) else None


def dim_name_of(value: SSAValue, axis: int) -> str | None:
    """The name of a tensor parameter's axis, or None if it has none."""
    if not isinstance(value, BlockArgument):
        return None
    kernel = value.block.parent_op()
    if not isinstance(kernel, gpu.FuncOp):
        return None
    names = dim_names(kernel, value.index)
    name = names[axis] if axis < len(names) else None
    return name if isinstance(name, str) else None


def int_dict(kernel: gpu.FuncOp, name: str) -> dict[str, int]:
    """A dictionary attribute of integers, such as `phobos.aligned`; empty if absent."""
    return _integers(kernel.attributes.get(name))


def _integers(found: Attribute | None) -> dict[str, int]:
    if not isinstance(found, DictionaryAttr):
        return {}
    return {
        key: entry.value.data for key, entry in found.data.items() if isinstance(entry, IntegerAttr)
    }
