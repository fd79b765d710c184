"""Shared-memory layouts, bank conflicts and matrix accesses against simulation by address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phobos.layout import gf2, shared
from phobos.layout.build import blocked, cover, elementwise_layout
from phobos.layout.fragments import mma_a, mma_b, mma_c
from phobos.layout.linear import LinearLayout
from phobos.layout.matrix_access import MatrixAccess, plan_matrix_access
from phobos.layout.queries import vector_bits
from phobos.layout.text import LayoutError
from tests.unit.layout.strategies import surjective_layouts


@pytest.mark.parametrize(("vector", "per_phase", "max_phase"), [(1, 1, 1), (4, 2, 4), (2, 1, 8)])
@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
def test_swizzle_formula(vector, per_phase, max_phase, order):
    shape = (16, 32)
    layout = shared.swizzled(shape, vector, per_phase, max_phase, order)
    assert layout.is_invertible
    width = shape[order[0]]
    for offset in range(16 * 32):
        at = layout.apply(offset=offset)
        column, row = at[order[0]], at[order[1]]
        group = (column // vector) ^ (row // per_phase % max_phase) % (width // vector)
        assert offset == row * width + group * vector + column % vector


@pytest.mark.parametrize(("row_bytes", "mask"), [(128, 7), (64, 3), (32, 1)])
@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_hardware_swizzle_is_the_xor_of_address_bits(row_bytes, mask, element_bytes):
    rows, panels = 16, 2
    width = row_bytes // element_bytes
    layout = shared.hardware_swizzle((rows, width * panels), element_bytes, row_bytes)
    transposed = shared.hardware_swizzle(
        (width * panels, rows), element_bytes, row_bytes, transposed=True
    )
    for offset in range(rows * width * panels):
        row, column = layout.apply(offset=offset)
        assert transposed.apply(offset=offset) == (column, row)
        panel, within = divmod(column, width)
        plain = (panel * rows + row) * row_bytes + within * element_bytes
        assert offset * element_bytes == plain ^ (((plain >> 7) & mask) << 4)


@given(st.data())
def test_bank_conflicts_against_counting(data):
    shape = (16, 32)
    layout = data.draw(surjective_layouts(shape=shape, lane_bits=5, warp_bits=0))
    other = data.draw(surjective_layouts(shape=shape, lane_bits=0, warp_bits=0, copies=0))
    memory = LinearLayout((("offset", other.packed("register")),), other.outputs)
    element_bytes = data.draw(st.sampled_from([1, 2, 4, 8]))
    widest = shared.shared_vector(layout, memory, element_bytes)
    vector = data.draw(st.sampled_from([w for w in (1, 2, 4, 8, 16) if w <= widest]))
    at = shared.offsets(layout, memory)
    inside = vector_bits(at, 0)[: vector.bit_length() - 1]
    answer = shared.bank_conflicts(layout, memory, element_bytes, vector)
    register = data.draw(st.integers(0, layout.in_size("register") - 1))
    addresses = []
    for lane in range(32):
        start = at.apply(register=register, lane=lane)[0]
        mine = {
            start ^ gf2.multiply([at.apply(register=m)[0] for m in inside], i)
            for i in range(vector)
        }
        assert mine == set(range(min(mine), min(mine) + vector))
        addresses.append(min(mine) * element_bytes)
    assert answer.wavefronts == shared.count_wavefronts(addresses, vector * element_bytes)
    assert answer.wavefronts % answer.ideal == 0


def test_known_conflicts():
    column = LinearLayout.parse(
        "register=[[0, 1]] lane=[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]] -> [32, 32]"
    )
    assert shared.bank_conflicts(column, shared.row_major((32, 32)), 4).factor == 32
    assert shared.bank_conflicts(column, shared.swizzled((32, 32), 1, 1, 32), 4).factor == 1
    rows = elementwise_layout((32, 32), 32, 4)
    assert shared.bank_conflicts(rows, shared.row_major((32, 32)), 4, 4).wavefronts == 4


def test_padding_by_counting():
    pitch = 33
    assert shared.count_wavefronts([lane * pitch * 4 for lane in range(32)], 4) == 1
    assert shared.count_wavefronts([lane * 32 * 4 for lane in range(32)], 4) == 32
    assert shared.count_wavefronts([0] * 32, 4) == 1
    assert shared.count_wavefronts([lane * 16 for lane in range(32)], 16) == 4


def test_nonsense_is_refused():
    with pytest.raises(LayoutError, match="rows of 128, 64 or 32 bytes, got 256"):
        shared.hardware_swizzle((8, 8), 2, 256)
    with pytest.raises(LayoutError, match="a row of 8 x 2 bytes is shorter"):
        shared.hardware_swizzle((8, 8), 2, 128)
    tile = elementwise_layout((64,), 32)
    with pytest.raises(LayoutError, match="at most 16 bytes a lane, got 32"):
        shared.bank_conflicts(tile, shared.row_major((64,)), 4, 8)


# ---- ldmatrix


def run_ldmatrix(plan: MatrixAccess, memory: LinearLayout, warp: int) -> dict[tuple[int, int], int]:
    """Which element (packed) each (lane, register element) gets, from addresses alone."""
    got: dict[tuple[int, int], int] = {}
    row_length = 4 * plan.packed
    for instruction in range(plan.instructions):
        for matrix in range(plan.count):
            rows = []
            for row in range(8):
                start = plan.rows.apply(lane=8 * matrix + row, warp=warp, instruction=instruction)[
                    0
                ]
                assert start % row_length == 0
                cells = [memory.apply(offset=start + i) for i in range(row_length)]
                rows.append([memory.pack(cell) for cell in cells])
            first = plan.first_element(instruction, matrix)
            for lane in range(32):
                g, q = lane >> 2, lane & 3
                for i in range(plan.packed):
                    at = (plan.packed * q + i, g) if plan.transposed else (g, plan.packed * q + i)
                    got[lane, first + i] = rows[at[0]][at[1]]
    return got


def check_ldmatrix(
    layout: LinearLayout, memory: LinearLayout, element_bytes: int, *, transposed: bool = False
) -> MatrixAccess:
    plan = plan_matrix_access(layout, memory, element_bytes, transposed=transposed)
    assert plan is not None
    for warp in range(layout.in_size("warp")):
        got = run_ldmatrix(plan, memory, warp)
        assert len(got) == 32 * layout.in_size("register")
        for (lane, register), element in got.items():
            assert element == layout.pack(layout.apply(register=register, lane=lane, warp=warp))
    return plan


@pytest.mark.parametrize(("element_bytes", "k"), [(1, 32), (2, 16), (4, 8)])
def test_ldmatrix_loads_operand_a_from_swizzled_rows(element_bytes, k):
    tile = (64, 128 // element_bytes)
    layout = cover(mma_a(16, k, 4 // element_bytes), tile, [(0, 2)])
    plan = check_ldmatrix(layout, shared.hardware_swizzle(tile, element_bytes, 128), element_bytes)
    assert plan.count == 4
    assert plan.conflicts.factor == 1
    plain = check_ldmatrix(layout, shared.row_major(tile), element_bytes)
    assert plain.conflicts.factor == 8


def test_ldmatrix_transposed_loads_operand_b_from_rows_of_k():
    tile = (32, 64)
    layout = cover(mma_b(16, 2), tile, [(None, 2), (1, 2)])
    memory = shared.hardware_swizzle(tile, 2, 128)
    assert plan_matrix_access(layout, memory, 2) is None
    plan = check_ldmatrix(layout, memory, 2, transposed=True)
    assert plan.conflicts.factor == 1


def test_ldmatrix_loads_operand_b_from_columns_of_k():
    tile = (64, 32)
    layout = cover(mma_b(16, 2), tile, [(1, 4)])
    memory = shared.hardware_swizzle(tile, 2, 128, transposed=True)
    plan = check_ldmatrix(layout, memory, 2)
    assert plan.conflicts.factor == 1
    assert plan_matrix_access(layout, memory, 2, transposed=True) is None


def test_small_loads_use_fewer_matrices():
    assert check_ldmatrix(mma_b(8, 2), shared.row_major((8, 8), (0, 1)), 2).count == 1
    assert check_ldmatrix(mma_b(16, 2), shared.row_major((16, 8), (0, 1)), 2).count == 2


def test_what_ldmatrix_cannot_load():
    tile = (16, 16)
    memory = shared.row_major(tile)
    assert plan_matrix_access(elementwise_layout(tile, 32, 8), memory, 2) is None
    assert plan_matrix_access(mma_a(16, 16, 2), memory, 8) is None
    assert plan_matrix_access(mma_a(16, 16, 2), memory, 1, transposed=True) is None
    assert plan_matrix_access(elementwise_layout(tile, 16, 2), memory, 2) is None
    # Rows of 8 bytes: not every row of a matrix starts at a multiple of 16.
    assert plan_matrix_access(mma_c(16), shared.row_major((16, 8)), 1) is None
    # Chunks of 4 elements are exchanged, so a row is not contiguous.
    assert plan_matrix_access(mma_a(16, 16, 2), shared.swizzled(tile, 4, 1, 4), 2) is None


def test_accumulators_can_be_stored_by_stmatrix():
    layout = cover(mma_c(16), (32, 64), [(0, 2), (1, 2)])
    plan = check_ldmatrix(layout, shared.hardware_swizzle((32, 64), 2, 128), 2)
    assert plan.conflicts.factor == 1


def test_blocked_layout_reads_its_vectors():
    layout = blocked((32, 64), (1, 8), (4, 8), (2, 1))
    memory = shared.hardware_swizzle((32, 64), 2, 128)
    assert shared.shared_vector(layout, memory, 2) == 8
    assert shared.bank_conflicts(layout, memory, 2, 8).factor == 1
