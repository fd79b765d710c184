"""The shared layouts of `mma` operands: free of bank conflicts however an operand lies."""

from collections.abc import Iterator
from itertools import product

import pytest

from phobos.layout.build import OFFSET, elementwise_layout, log2
from phobos.layout.contraction import instruction_order, mma_contraction, wgmma_contraction
from phobos.layout.exchange import best_access
from phobos.layout.linear import LinearLayout
from phobos.layout.matrix_access import plan_matrix_access
from phobos.layout.operands import operand_buffer
from phobos.layout.queries import contiguous_vector, register_coordinates
from phobos.layout.warpgroup import warpgroup_buffer

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


@pytest.mark.parametrize(
    ("sizes", "shape", "warps"),
    [
        ((256, 128, 32), (64, 256, 8), (8, 1)),
        ((128, 128, 32), (64, 128, 8), (4, 1)),
        ((128, 64, 8), (64, 64, 8), (4, 2)),
        ((8, 512, 64), (64, 8, 8), (16, 1)),
    ],
)
def test_turned_products_load_and_store_eight_bytes(
    sizes: tuple[int, int, int], shape: tuple[int, int, int], warps: tuple[int, int]
) -> None:
    """Fragments of B come from rows along N without a conflict, sums go in pairs of a row.

    Left operand and sum agree on the column that a row of the instruction is.
    """
    layouts = wgmma_contraction(sizes, shape, 1, warps, turned=True)
    width, cost = best_access(layouts.b, warpgroup_buffer((sizes[2], sizes[1]), 1, 64, 4), 4)
    assert (width, cost.factor) == (2, 1)
    assert contiguous_vector(layouts.c, 1) == 2
    straight = wgmma_contraction((sizes[1], sizes[0], sizes[2]), shape, 1, warps)
    column_of = dict(zip(_rows(straight.a), _columns(layouts.b), strict=True))
    assert sorted(column_of.values()) == sorted(column_of) == list(range(sizes[1]))
    of_sum = register_coordinates(layouts.c)
    held = [of_sum[register] for register in instruction_order(layouts.c)]
    assert [(column_of[row], column) for row, column in register_coordinates(straight.c)] == [
        (column, row) for row, column in held
    ]
    for name in ("lane", "warp"):
        for fragment, held_by in zip(straight.c.bases(name), layouts.c.bases(name), strict=True):
            assert held_by == (fragment[1], column_of[fragment[0]])


def _rows(layout: LinearLayout) -> list[int]:
    """The row of each register of each thread."""
    return [layout.apply(**at)[0] for at in _threads(layout)]


def _columns(layout: LinearLayout) -> list[int]:
    return [layout.apply(**at)[1] for at in _threads(layout)]


def _threads(layout: LinearLayout) -> Iterator[dict[str, int]]:
    names = layout.in_names
    for numbers in product(*(range(layout.in_size(name)) for name in names)):
        yield dict(zip(names, numbers, strict=True))
