"""Tensor maps and clusters in the IR: how a kernel says what its launch must bring.

A pass that makes a kernel read tensor maps names them on the kernel, and one that makes CTAs work
together says how many form a cluster; both the `gpu.func` and the `ptx.entry` that it becomes take
the attributes.

    attributes {
      "phobos.tensor_maps" = [{tensor = "A", type = "f16", box = array<i64: 64, 64>,
                               swizzle = 128 : i64}],
      "phobos.cluster" = array<i64: 2, 1, 1>}

The launch contract is made of them. An entry has a parameter for each map, in their order, and is
printed with `.reqnctapercluster` if it has a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Operation

from phobos.dialects.ptx.attributes import Parameter
from phobos.ir.kernel import CLUSTER
from phobos.ir.locations import error_at
from phobos.targets.ptx.contract import (
    MAP_ALIGNMENT,
    MAP_BYTES,
    NO_CLUSTER,
    Cluster,
    TensorMap,
    map_parameter_name,
)

TENSOR_MAPS = "phobos.tensor_maps"


def set_tensor_maps(kernel: Operation, maps: Sequence[TensorMap]) -> None:
    """Say which tensor maps a kernel reads; without any it says nothing."""
    kernel.attributes.pop(TENSOR_MAPS, None)
    if maps:
        kernel.attributes[TENSOR_MAPS] = ArrayAttr(map(_attribute, maps))


def add_tensor_map(kernel: Operation, one: TensorMap) -> int:
    """The position of a map among those that a kernel reads; it is added if it is new."""
    maps = tensor_maps_of(kernel)
    if one not in maps:
        maps = (*maps, one)
        set_tensor_maps(kernel, maps)
    return maps.index(one)


def tensor_maps_of(kernel: Operation) -> tuple[TensorMap, ...]:
    """The tensor maps that a kernel reads, in the order of its parameters.

    Raises PhobosError at the kernel if the attribute is not of the form above.
    """
    found = kernel.attributes.get(TENSOR_MAPS)
    if found is None:
        return ()
    if not isinstance(found, ArrayAttr):
        raise _malformed(kernel)
    return tuple(_tensor_map(kernel, one) for one in found.data)


def set_cluster(kernel: Operation, cluster: Cluster) -> None:
    """Say how many CTAs along x, y and z form a cluster, without which the kernel cannot run."""
    kernel.attributes.pop(CLUSTER, None)
    if cluster != NO_CLUSTER:
        kernel.attributes[CLUSTER] = DenseArrayBase.from_list(i64, cluster)


def cluster_of(kernel: Operation) -> Cluster:
    """How many CTAs along x, y and z form a cluster; (1, 1, 1) if the kernel does not say.

    Raises PhobosError at the kernel if the attribute is not of the form above.
    """
    found = kernel.attributes.get(CLUSTER)
    if found is None:
        return NO_CLUSTER
    extents = _integers(found)
    if extents is None or len(extents) != 3 or min(extents) < 1:
        raise error_at(kernel, f"`{CLUSTER}` is {found}, which is no array of three extents")
    x, y, z = extents
    return x, y, z


def map_parameters(maps: Sequence[TensorMap]) -> list[Parameter]:
    """The entry's parameters for its tensor maps: `.param .align 64 .b8 A_map_0[128]`."""
    return [
        Parameter(
            map_parameter_name(one.tensor, position), "b8", align=MAP_ALIGNMENT, count=MAP_BYTES
        )
        for position, one in enumerate(maps)
    ]


def _attribute(one: TensorMap) -> DictionaryAttr:
    return DictionaryAttr(
        {
            "tensor": StringAttr(one.tensor),
            "type": StringAttr(one.type),
            "box": DenseArrayBase.from_list(i64, one.box),
            "swizzle": IntegerAttr(one.swizzle, i64),
        }
    )


def _tensor_map(kernel: Operation, attribute: Attribute) -> TensorMap:
    if not isinstance(attribute, DictionaryAttr):
        raise _malformed(kernel)
    match [attribute.data.get(key) for key in ("tensor", "type", "box", "swizzle")]:
        case [
            StringAttr(data=tensor),
            StringAttr(data=type_),
            DenseArrayBase() as box,
            IntegerAttr() as swizzle,
        ]:
            return TensorMap(tensor, type_, _integers(box) or (), swizzle.value.data)
        case _:
            raise _malformed(kernel)


def _integers(attribute: Attribute) -> tuple[int, ...] | None:
    if not isinstance(attribute, DenseArrayBase) or not isinstance(attribute.elt_type, IntegerType):
        return None
    return tuple(int(value) for value in attribute.get_values())


def _malformed(kernel: Operation) -> Exception:
    return error_at(
        kernel,
        f"`{TENSOR_MAPS}` is {kernel.attributes[TENSOR_MAPS]}, which is no list of tensor maps",
        help="each is {tensor = STRING, type = STRING, box = array<i64: ...>, swizzle = NUMBER}",
    )
