"""The IR types and attributes of the language's types, each made once."""

from __future__ import annotations

import math
from functools import cache
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute

from phobos.dialects.tile import SHARED
from phobos.frontend.constants import Constant
from phobos.frontend.types import (
    BF16,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    F64,
    INDEX,
    RunType,
    ScalarType,
    TileType,
    ValueType,
    element_of,
)
from phobos.frontend.types import TensorType as TensorParameterType

_INTEGERS = {bits: IntegerType(bits) for bits in (1, 8, 16, 32, 64)}
_OTHERS: dict[ScalarType, Attribute] = {
    INDEX: IndexType(),
    F8E4M3: Float8E4M3FNType(),
    F8E5M2: Float8E5M2Type(),
    F16: Float16Type(),
    BF16: BFloat16Type(),
    F32: Float32Type(),
    F64: Float64Type(),
}
BOOL_ATTR_TYPE = _INTEGERS[1]


def scalar_attr(scalar: ScalarType) -> Attribute:
    """The IR type of a scalar; integers lose their sign, which the operations carry."""
    other = _OTHERS.get(scalar)
    return _INTEGERS[scalar.bits] if other is None else other


def type_attr(type_: ValueType) -> Attribute:
    """The IR type of a value: a scalar, a tensor for a tile, a vector for a run."""
    if isinstance(type_, ScalarType):
        return scalar_attr(type_)
    return _shaped_attr(type_)


@cache
def _shaped_attr(type_: TileType | RunType) -> Attribute:
    element = scalar_attr(element_of(type_))
    if isinstance(type_, TileType):
        return TensorType(element, type_.shape)
    return VectorType(element, [type_.length])


def memref_attr(type_: TensorParameterType) -> MemRefType:
    """The IR type of a tensor parameter; extents that the launch gives are dynamic."""
    shape = [DYNAMIC_INDEX if dim.extent is None else dim.extent for dim in type_.dims]
    return MemRefType(scalar_attr(type_.element), shape)


@cache
def buffer_attr(type_: TileType) -> MemRefType:
    """The IR type of the shared memory that holds a tile."""
    return MemRefType(scalar_attr(type_.element), type_.shape, NoneAttr(), SHARED)


@cache
def number_attr(value: Constant, scalar: ScalarType, is_negative_zero: bool) -> Attribute:
    """The attribute of a constant.

    The last argument keeps -0.0 apart from 0.0, which are equal as keys of the cache.
    """
    type_ = scalar_attr(scalar)
    if isinstance(type_, IntegerType):
        number = int(value)
        if type_.width.data > 1 and number >= 1 << (type_.width.data - 1):
            number -= 1 << type_.width.data  # the same bits, as IR prints signless integers
        return IntegerAttr(number, type_)
    if isinstance(type_, IndexType):
        return IntegerAttr(int(value), type_)
    return FloatAttr(-0.0 if is_negative_zero else float(value), cast(AnyFloat, type_))


def fill_attr(value: Constant, scalar: ScalarType) -> Attribute:
    """The attribute of what a masked read gives outside its tensor."""
    return number_attr(value, scalar, value == 0 and math.copysign(1.0, value) < 0)
