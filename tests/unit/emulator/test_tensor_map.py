"""Tensor maps: what the 128 bytes hold, the limits of the encoder, boxes and their swizzles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.emulator import (
    TensorMap,
    TensorMapArgument,
    decode_tensor_map,
    emulate,
    encode_tensor_map,
)
from phobos.emulator.tensor_map import BoxPlace

MAP = TensorMap(0x1000, "f16", (5, 7, 40), (7 * 80, 80, 2), (2, 3, 16), swizzle=32)


def test_a_map_comes_back_from_its_bytes():
    content = encode_tensor_map(MAP)
    assert len(content) == 128
    assert decode_tensor_map(content) == MAP
    assert decode_tensor_map(bytes(128)) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "f61"}, "no elements of type `f61`; there are bool, i8, u8"),
        ({"address": 0x1008}, "starts at a multiple of 16 bytes, got address 0x1008"),
        ({"box": (2, 3)}, "has 3 axes, but its box has 2"),
        ({"extents": (), "strides": (), "box": ()}, "has one to 5 axes, got 0"),
        ({"extents": (5, 0, 40)}, "has extents from 1 to 2**31, got 0 on axis 1"),
        ({"strides": (568, 80, 2)}, "multiples of 16 bytes below 2**40, got 568 on axis 0"),
        ({"strides": (560, 80, 4)}, "side by side, 2 bytes apart, got a stride of 4 bytes"),
        ({"box": (2, 257, 16)}, "boxes of 1 to 256 elements an axis, got 257 on axis 1"),
        ({"box": (2, 3, 12)}, "multiples of 16 bytes, got 12 elements of 2 bytes"),
        ({"swizzle": 48}, "a swizzle of 0, 32, 64 or 128 bytes, got 48"),
        ({"box": (2, 3, 32)}, "rows fit the swizzle of 32 bytes, got 64 bytes"),
        ({"swizzle": 64}, "rows fill the swizzle of 64 bytes in the emulator, got 32 bytes"),
    ],
)
def test_limits(change: dict[str, Any], message: str):
    with pytest.raises(PhobosError) as caught:
        encode_tensor_map(replace(MAP, **change))
    assert message in str(caught.value)


def test_rank_six_is_refused():
    with pytest.raises(PhobosError, match="has one to 5 axes, got 6"):
        encode_tensor_map(TensorMap(0, "u8", (1,) * 6, (16,) * 5 + (1,), (1,) * 5 + (16,)))


@pytest.mark.parametrize("start", [(0, 0, 0), (-1, -2, -8), (4, 5, 32), (9, 0, 0), (0, -3, 0)])
def test_boxes_outside_are_zero(start: tuple[int, ...]):
    tensor = np.arange(5 * 7 * 40, dtype=np.uint16).reshape(5, 7, 40)
    place = BoxPlace(replace(MAP, address=64), start)
    memory = np.concatenate([np.full(64, 9, np.uint8), tensor.reshape(-1).view(np.uint8)])
    padded = np.pad(tensor, 20)
    low = [20 + s for s in start]
    wanted = padded[low[0] : low[0] + 2, low[1] : low[1] + 3, low[2] : low[2] + 16]
    box = place.gather(place.view(memory, 0))
    np.testing.assert_array_equal(box.view(np.uint16).reshape(2, 3, 16), wanted)
    place.scatter(box + np.uint8(1), place.view(memory, 0))
    changed = memory[64:].view(np.uint16).reshape(tensor.shape) != tensor
    rows, length = place.rows(0)
    assert changed.sum() == len(rows) * length // 2


@pytest.mark.parametrize(("swizzle", "pieces"), [(32, 1), (64, 3), (128, 7)])
def test_swizzles_count_from_address_zero(swizzle: int, pieces: int):
    found = TensorMap(0, "u8", (32, 128), (128, 1), (16, swizzle), swizzle)
    for address in (0, 128, 1024 + 256):
        order = found.order_of_pieces(address)
        assert order is not None
        for place, piece in enumerate(order):
            at = address + 16 * place
            assert piece == (at ^ ((at >> 7) & pieces) << 4) - address >> 4
    assert replace(found, swizzle=0).order_of_pieces(0) is None


TF32 = [
    (0x3F801000, 0x3F800000),  # a tie, to even
    (0x3F803000, 0x3F804000),
    (0x3F801001, 0x3F802000),
    (0xBF800FFF, 0xBF800000),
    (0x00001001, 0x00002000),  # subnormal
    (0x7F7FFFFF, 0x7F800000),
    (0x7F800000, 0x7F800000),
    (0xFF800001, 0x7FFFE000),
]


def test_tf32_is_rounded_to_nearest_even():
    values, wanted = (np.array(column, np.uint32) for column in zip(*TF32, strict=True))
    place = BoxPlace(TensorMap(0, "tf32", (8,), (4,), (8,)), (0,))
    box = place.gather(place.view(values.view(np.uint8), 0)).view(np.uint32)
    np.testing.assert_array_equal(box, wanted)


# As arguments ------------------------------------------------------------------------------------

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
READ_MAP = f"""{HEADER}
.visible .entry k(.param .align 64 .b8 x_map_0[128], .param .u64 out)
{{ .reg .b64 %d<4>; mov.b64 %d0,x_map_0; cvta.param.u64 %d1,%d0; ld.param.u64 %d2,[out];
ld.u64 %d3,[%d1+8]; st.global.u64 [%d2],%d3; ld.param.u64 %d3,[x_map_0]; st.global.u64 [%d2+8],%d3;
ret; }}
"""


def test_a_map_names_the_memory_of_an_argument():
    x, out = np.zeros((4, 16), np.float32), np.zeros(2, np.uint64)
    text = READ_MAP.replace("out)", "out, .param .u64 x)")
    emulate(text, "k", 1, 1, [TensorMapArgument(x[1:], "f32", (2, 4)), out, x])
    assert out[0] % 256 == 64
    assert out[1:].tobytes() == b"phobosTM"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (TensorMapArgument(np.zeros((4, 16)), "f32", (2, 4)), "elements of 4 bytes, got an array"),
        (TensorMapArgument(np.zeros((4, 9)), "f64", (2, 4)), "multiples of 16 bytes below 2**40"),
    ],
)
def test_arguments_are_checked(argument: TensorMapArgument, message: str):
    with pytest.raises(PhobosError) as caught:
        emulate(READ_MAP, "k", 1, 1, [argument, np.zeros(2, np.uint64)])
    assert "argument 0 (`x_map_0`) of kernel `k`: a tensor map " in str(caught.value)
    assert message in str(caught.value)


def test_a_map_needs_a_parameter_of_128_bytes():
    map_argument = TensorMapArgument(np.zeros((4, 16)), "f64", (2, 4))
    with pytest.raises(PhobosError) as caught:
        emulate(READ_MAP, "k", 1, 1, [np.zeros(128, np.uint8).tobytes(), map_argument])
    assert "takes a tensor map, which has 128 bytes and an alignment of 64" in str(caught.value)
