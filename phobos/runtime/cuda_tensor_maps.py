"""Tensor maps for NVIDIA GPUs: the driver encodes them, and what it made is kept.

Encoding takes the driver and its Python bindings several microseconds, more than all else of a
launch, and arrays mostly come again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from phobos.runtime.tensor_maps import byte_strides
from phobos.targets.ptx.contract import MAP_BYTES, MAP_UNIT, TensorMap

MAP_WORDS = MAP_BYTES // 8

MAX_ADDRESSES = 1024
"""Encoded maps kept for arrays of one shape; beyond that they are all forgotten."""

MAX_ENCODERS = 64
"""Shapes and kinds of maps kept; beyond that they are all forgotten."""

_DATA_TYPES: dict[str, str] = {
    **dict.fromkeys(("bool", "i8", "u8", "f8e4m3", "f8e5m2"), "UINT8"),
    **dict.fromkeys(("i16", "u16"), "UINT16"),
    "i32": "INT32",
    "u32": "UINT32",
    "i64": "INT64",
    "u64": "UINT64",
    "f16": "FLOAT16",
    "bf16": "BFLOAT16",
    "f32": "FLOAT32",
    "tf32": "TFLOAT32",
    "f64": "FLOAT64",
}
"""What the driver calls the types; it copies types of 8 bits as bytes."""

_SWIZZLES = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}

Call = Callable[..., Any]
"""Calls a function of the driver, and raises what it fails with."""


class MapEncoder:
    """Encodes one tensor map for arrays of one shape, wherever they are."""

    __slots__ = ("_before", "_behind", "_call", "_encode", "_known")

    def __init__(self, driver: Any, call: Call, one: TensorMap, shape: tuple[int, ...]) -> None:
        """All that the driver takes besides the address; it takes the innermost axis first."""
        # The driver refuses an empty list, which is what one axis has, and does not read this one.
        strides = byte_strides(one, shape)[:-1] or (MAP_UNIT,)
        data_type = getattr(
            driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_DATA_TYPES[one.type]}"
        )
        swizzle = getattr(
            driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{_SWIZZLES[one.swizzle]}"
        )
        self._call = call
        self._encode = driver.cuTensorMapEncodeTiled
        self._before = (data_type, len(shape))
        self._behind = (
            [driver.cuuint64_t(extent) for extent in reversed(shape)],
            [driver.cuuint64_t(stride) for stride in reversed(strides)],
            [driver.cuuint32_t(extent) for extent in reversed(one.box)],
            [driver.cuuint32_t(1)] * len(shape),
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        self._known: dict[int, array[int]] = {}

    def words(self, address: int) -> array[int]:
        """The 16 words of the map of an array at an address; CudaError if the driver refuses."""
        try:
            return self._known[address]
        except KeyError:
            pass
        encoded = self._call(self._encode, *self._before, address, *self._behind)
        words = array("Q", map(int, encoded.opaque))
        if len(self._known) >= MAX_ADDRESSES:
            self._known.clear()
        self._known[address] = words
        return words


class MapEncoders:
    """The encoders in use, by what they encode."""

    def __init__(self, driver: Any, call: Call) -> None:
        self._driver = driver
        self._call = call
        self._known: dict[tuple[TensorMap, tuple[int, ...]], MapEncoder] = {}

    def of(self, one: TensorMap, shape: tuple[int, ...]) -> MapEncoder:
        """The encoder of a map for arrays of a shape."""
        key = one, shape
        encoder = self._known.get(key)
        if encoder is None:
            if len(self._known) >= MAX_ENCODERS:
                self._known.clear()
            encoder = self._known[key] = MapEncoder(self._driver, self._call, one, shape)
        return encoder
