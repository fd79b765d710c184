"""Which shared layouts boxes of tensor copies fill."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.layout.boxes import swizzle_of_boxes
from phobos.layout.build import OFFSET
from phobos.layout.contraction import add_units
from phobos.layout.linear import LinearLayout
from phobos.layout.shared import HARDWARE_PHASES, hardware_swizzle, row_major, swizzled
from phobos.layout.warpgroup import ATOM_ROWS, warpgroup_buffer
from phobos.transforms.assign_layouts import turned


def add_stack(layout: LinearLayout) -> LinearLayout:
    """Two matrices of a layout, one behind the other."""
    bases = [*((0, *base) for base in layout.bases(OFFSET)), (1, 0, 0)]
    return LinearLayout.from_bases({OFFSET: bases}, (2, *layout.shape))


SWIZZLES = tuple(HARDWARE_PHASES)


@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8])
@pytest.mark.parametrize("rows", [8, 64, 512])
@pytest.mark.parametrize("panels", [1, 2, 4])
def test_panels_of_each_swizzle(swizzle: int, element_bytes: int, rows: int, panels: int) -> None:
    shape = rows, panels * swizzle // element_bytes
    layout = hardware_swizzle(shape, element_bytes, swizzle)
    assert swizzle_of_boxes(layout, shape, element_bytes) == swizzle
    # The same in a stack of one.
    assert swizzle_of_boxes(add_units(layout, 2), (1, 1, *shape), element_bytes) == swizzle


@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_elements_lie_where_the_hardware_puts_them(swizzle: int) -> None:
    """Two boxes of 16 rows, one behind the other."""
    rows, width = 16, swizzle // 2
    source = np.arange(rows * 2 * width, dtype=np.uint16).reshape(rows, 2 * width)
    layout = hardware_swizzle((rows, 2 * width), 2, swizzle)
    place = np.arange(rows * width, dtype=np.int64) * 2
    for panel in range(2):
        box = source[:, panel * width : (panel + 1) * width].ravel()
        # Which of 128 bytes it is says which chunks of 16 bytes of it are exchanged.
        swizzled = place ^ ((place >> 7 & swizzle // 16 - 1) << 4)
        stored = np.empty_like(box)
        stored[swizzled // 2] = box
        for offset in range(rows * width):
            at = layout.apply(offset=panel * rows * width + offset)
            assert source[at] == stored[offset]


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_what_products_read_turned_is_filled_as_the_tensor_has_it(element_bytes: int) -> None:
    """A product's buffer of K x N whose rows run along K: the tensor has N x K."""
    buffer = warpgroup_buffer((32, 64), 0, 32, element_bytes)
    row_bytes = min(128, 32 * element_bytes)
    assert swizzle_of_boxes(turned(buffer), (64, 32), element_bytes) == row_bytes
    assert swizzle_of_boxes(buffer, (32, 64), element_bytes) is None


@pytest.mark.parametrize(
    ("layout", "extents"),
    [
        # Plain rows, and rows that are swizzled for something else.
        (row_major((64, 64)), (64, 64)),
        (swizzled((64, 64), 8, 2, 8), (64, 64)),
        (swizzled((64, 64), 4, 1, 8), (64, 64)),
        # A pattern of which a part is there.
        (hardware_swizzle((4, 64), 2, 128), (4, 64)),
        # A tile that is padded to powers of two.
        (hardware_swizzle((128, 64), 2, 128), (96, 64)),
        (hardware_swizzle((64, 64), 2, 128), (64, 48)),
        # Rows of 16 bytes.
        (row_major((64, 8)), (64, 8)),
        # Two matrices.
        (add_stack(hardware_swizzle((64, 64), 2, 128)), (2, 64, 64)),
    ],
)
def test_what_no_boxes_fill(layout: LinearLayout, extents: tuple[int, ...]) -> None:
    assert swizzle_of_boxes(layout, extents, 2) is None


def test_a_swizzle_is_of_address_bits() -> None:
    """Whatever its row, so that each panel begins where the pattern does."""
    for swizzle, (per_phase, phases) in HARDWARE_PHASES.items():
        assert per_phase * phases == ATOM_ROWS
        assert per_phase * swizzle == 128
