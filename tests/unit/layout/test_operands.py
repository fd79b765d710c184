"""The shared layouts of `mma` operands: free of bank conflicts however an operand lies."""

import pytest

from phobos.layout.build import OFFSET, elementwise_layout, log2
from phobos.layout.contraction import mma_contraction
from phobos.layout.exchange import best_access
from phobos.layout.matrix_access import plan_matrix_access
from phobos.layout.operands import operand_buffer

THREADS = 128
SHAPES = [
    (1, (8, 8, 16)),
    (1, (16, 8, 32)),
    (2, (16, 8, 8)),
    (2, (16, 8, 16)),
    (4, (16, 8, 4)),
    (4, (16, 8, 8)),
    (8, (8, 8, 4)),
    (8, (16, 8, 16)),
]
"""The size of an element, and an `mma` of such."""


@pytest.mark.parametrize(("element_bytes", "shape"), SHAPES)
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize("sizes", [(64, 64, 32), (128, 64, 64), (128, 256, 128)])
def test_no_access_of_an_operand_waits_for_a_bank(
    sizes: tuple[int, int, int],
    operand: str,
    turned: bool,
    element_bytes: int,
    shape: tuple[int, int, int],
) -> None:
    layouts = mma_contraction(sizes, shape, max(1, 4 // element_bytes), (2, 2))
    target = getattr(layouts, operand)
    order = (0, 1) if turned else (1, 0)
    vector = 16 // element_bytes
    source = elementwise_layout(target.shape, THREADS, vector, order)
    shared = operand_buffer(source, target, element_bytes, transposed=turned)
    assert shared.is_invertible
    width, store = best_access(source, shared, element_bytes)
    assert (width, store.factor) == (vector, 1)
    along_k = turned == (operand == "b")
    if element_bytes == 2 or (element_bytes < 8 and along_k):
        plan = plan_matrix_access(target, shared, element_bytes, transposed=not along_k)
        assert plan is not None
        assert plan.conflicts.factor == 1
    else:
        assert best_access(target, shared, element_bytes)[1].factor == 1


@pytest.mark.parametrize(("element_bytes", "shape"), SHAPES)
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
def test_sixteen_bytes_stay_together(
    turned: bool, element_bytes: int, shape: tuple[int, int, int]
) -> None:
    """What an asynchronous copy moves at a time."""
    target = mma_contraction((64, 64, 32), shape, max(1, 4 // element_bytes), (2, 2)).b
    order = (0, 1) if turned else (1, 0)
    source = elementwise_layout(target.shape, THREADS, 1, order)
    shared = operand_buffer(source, target, element_bytes, transposed=turned)
    neighbour = target.shape[1] if turned else 1
    inside = log2(16 // element_bytes)
    assert shared.packed(OFFSET)[:inside] == tuple(neighbour << bit for bit in range(inside))
