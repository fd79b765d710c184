"""The IR of each construct."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.frontend.emission import emitted, kernel_text, module, operations


def lines_of(body: str, **options: Any) -> list[str]:
    """The operations of a kernel without constants."""
    return [line for line in emitted(body, **options).splitlines() if "arith.constant" not in line]


# Scalars -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "operation"),
    [
        ("count + 1", "arith.addi"),
        ("count - count", "arith.subi"),
        ("count * 3", "arith.muli"),
        ("count / 3", "arith.divsi"),
        ("count % 3", "arith.remsi"),
        ("mask / 3", "arith.divui"),
        ("mask % 3", "arith.remui"),
        ("count & 3", "arith.andi"),
        ("count | 3", "arith.ori"),
        ("count ^ 3", "arith.xori"),
        ("count << 3", "arith.shli"),
        ("count >> 3", "arith.shrsi"),
        ("mask >> 3", "arith.shrui"),
        ("~count", "arith.xori"),
        ("-count", "arith.subi"),
        ("alpha + 1.0", "arith.addf"),
        ("alpha - 1", "arith.subf"),
        ("alpha * 2.0", "arith.mulf"),
        ("alpha / 2", "arith.divf"),
        ("-alpha", "arith.negf"),
        ("min(count, 3)", "arith.minsi"),
        ("max(mask, 3)", "arith.maxui"),
        ("min(alpha, 3)", "arith.minnumf"),
        ("maxnan(alpha, 3)", "arith.maximumf"),
        ("abs(alpha)", "math.absf"),
        ("abs(count)", "math.absi"),
        ("floor(alpha)", "math.floor"),
        ("ceil(alpha)", "math.ceil"),
        ("round(alpha)", "math.roundeven"),
        ("trunc(alpha)", "math.trunc"),
        ("sqrt(alpha)", "math.sqrt"),
        ("rsqrt(alpha)", "math.rsqrt"),
        ("exp(alpha)", "math.exp"),
        ("exp2(alpha)", "math.exp2"),
        ("log(alpha)", "math.log"),
        ("log2(alpha)", "math.log2"),
        ("sin(alpha)", "math.sin"),
        ("cos(alpha)", "math.cos"),
        ("tanh(alpha)", "math.tanh"),
        ("fma(alpha, 2, 1.0)", "math.fma"),
        ("where(count > 0, alpha, 0)", "arith.select"),
        ("clamp(alpha, 0, 1)", "arith.minnumf"),
        ("popcount(mask)", "math.ctpop"),
        ("clz(count)", "math.ctlz"),
        ("bitcast<i32>(alpha)", "arith.bitcast"),
    ],
)
def test_scalar_operations(expression: str, operation: str) -> None:
    assert operations(f"let r = {expression}")[-1] == operation


@pytest.mark.parametrize(
    ("comparison", "line"),
    [
        ("count < 3", "arith.cmpi slt"),
        ("mask < 3", "arith.cmpi ult"),
        ("mask >= 3", "arith.cmpi uge"),
        ("count == 3", "arith.cmpi eq"),
        ("N != 3", "arith.cmpi ne"),
        ("alpha < 3", "arith.cmpf olt"),
        ("alpha == 3", "arith.cmpf oeq"),
        ("alpha != 3", "arith.cmpf une"),
        ("isnan(alpha)", "arith.cmpf une"),
        ("(count > 1) == (count < 5)", "arith.cmpi eq"),
    ],
)
def test_comparisons(comparison: str, line: str) -> None:
    assert line in lines_of(f"let p = {comparison}")[-1]


@pytest.mark.parametrize(
    ("conversion", "steps"),
    [
        ("f32(count)", ["arith.sitofp"]),
        ("f32(mask)", ["arith.uitofp"]),
        ("i32(alpha)", ["arith.fptosi"]),
        ("u32(alpha)", ["arith.fptoui"]),
        ("i64(small)", ["arith.extsi"]),
        ("i64(mask)", ["arith.extui"]),
        ("i8(count)", ["arith.trunci"]),
        ("u32(count)", []),
        ("f16(alpha)", ["arith.truncf"]),
        ("f64(alpha)", ["arith.extf"]),
        ("bf16(f16(alpha))", ["arith.truncf", "arith.extf", "arith.truncf"]),
        ("bool(count)", ["arith.cmpi"]),
        ("bool(alpha)", ["arith.cmpf"]),
        ("i32(count > 0)", ["arith.cmpi", "arith.extui"]),
        ("f32(count > 0)", ["arith.cmpi", "arith.uitofp"]),
        ("index(count)", ["arith.index_cast"]),
        ("index(small)", ["arith.extsi", "arith.index_cast"]),
        ("index(mask)", ["arith.extui", "arith.index_cast"]),
        ("i32(N)", ["memref.dim", "arith.index_cast"]),
        ("i8(N)", ["memref.dim", "arith.index_cast", "arith.trunci"]),
        ("i64(N)", ["memref.dim", "arith.index_cast"]),
        ("f32(N)", ["memref.dim", "arith.index_cast", "arith.sitofp"]),
        ("index(alpha)", ["arith.fptosi", "arith.index_cast"]),
    ],
)
def test_conversions(conversion: str, steps: list[str]) -> None:
    assert operations(f"let r = {conversion}") == steps


def test_index_goes_to_floats_by_its_own_width() -> None:
    assert "index to i64" in emitted("let r = f32(N)")
    assert "index to i32" in emitted("let r = f32(N)", index_bits=32)
    assert "index to i64" in emitted("let r = f32(N)", index_bits=64)


def test_mixed_operands_are_converted() -> None:
    assert operations("let r = count * alpha") == ["arith.sitofp", "arith.mulf"]
    assert operations("let r = small + count") == ["arith.extsi", "arith.addi"]
    assert operations("let r = N + count") == ["memref.dim", "arith.index_cast", "arith.addi"]


def test_literals_take_the_type_of_what_they_meet() -> None:
    assert "arith.constant 5.000000e-01 : f16" in emitted("let r = h[0] * 0.5")
    assert "arith.constant 2.000000e+00 : bf16" in emitted("let r = b[0] * 2")
    assert "arith.constant 3 : i8" in emitted("let r = small + 3")
    assert "arith.constant 4 : index" in emitted("let r = N + 4")


@pytest.mark.parametrize(
    ("call", "operation"),
    [("sqrt(2)", "math.sqrt"), ("pow(2, -3)", "math.powf"), ("fma(1, 2, 3)", "math.fma")],
)
def test_functions_of_floats_take_integer_literals(call: str, operation: str) -> None:
    assert operations(f"let y = {call}") == [operation]


def test_constants_are_folded_and_stand_once_at_the_entry() -> None:
    text = emitted("let a = 2 * 3 + 1\nx[a] = 0.5\nx[7] = -0.5 + 1.0\nif count > 0 { x[7] = 0.5 }")
    assert text.count("arith.constant 7 : index") == 1
    assert text.count("arith.constant 5.000000e-01") == 1
    assert "arith.addi" not in text
    first = text.splitlines()[0]
    assert "arith.constant" in first


def test_unsigned_constants_keep_their_bits() -> None:
    assert "arith.constant -1 : i32" in emitted("let r = mask & 0xffffffff")


def test_negative_zero_is_not_zero() -> None:
    text = emitted("x[0] = -0.0\nx[1] = 0.0")
    assert "-0.000000e+00" in text
    assert text.count("arith.constant") == 4


# ctx ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("ctx.block.x", "ctx.block x"),
        ("ctx.block.z", "ctx.block z"),
        ("ctx.blocks.y", "ctx.blocks y"),
        ("ctx.thread", "ctx.thread"),
        ("ctx.warp", "ctx.warp"),
        ("ctx.lane", "ctx.lane"),
    ],
)
def test_context_fields(field: str, line: str) -> None:
    assert lines_of(f"x[{field}] = 0.0")[0].endswith(f"= {line}")


def test_sizes_of_the_cta_are_constants() -> None:
    header = "@launch(100)"
    text = emitted("n[0] = ctx.threads\nn[1] = ctx.warps\nn[2] = ctx.lanes", header=header)
    assert "arith.constant 100 : i32" in text
    assert "arith.constant 4 : i32" in text
    assert "arith.constant 32 : i32" in text
    assert "ctx." not in text


# Extents -----------------------------------------------------------------------------------------


def test_a_dim_is_the_size_of_the_first_tensor_that_names_it() -> None:
    text = emitted("n[0] = i32(K)", "A: tensor<f32>[M, K], B: tensor<f32>[K, N], n: tensor<i32>[K]")
    assert "memref.dim %A, %0" in text
    assert "%0 = arith.constant 1 : index" in text


def test_extent_of_a_tensor_is_its_own() -> None:
    parameters = "A: tensor<f32>[K], B: tensor<f32>[K, 4], n: tensor<i32>[2]"
    assert "memref.dim %B" in emitted("n[0] = i32(extent(B, 0))", parameters)
    assert "memref.dim" not in emitted("n[0] = extent(B, 1)", parameters)


def test_autotuned_dims_are_static() -> None:
    text = str(
        module(
            kernel_text("x[0 :+ K, :] = 0.0", "x: tensor<f32>[M, K]", "@autotune(K in [32, 64])"),
            constants={"K": 48},
        )
    )
    assert "memref<?x48xf32>" in text
    assert "tensor<48x48xf32>" in text


# Points, tiles, runs -----------------------------------------------------------------------------


def test_points() -> None:
    assert operations("x[count] = A[0, 1] + x[2]") == [
        "memref.load",
        "memref.load",
        "arith.addf",
        "arith.index_cast",
        "memref.store",
    ]


def test_compound_assignment_evaluates_its_subscripts_once() -> None:
    names = operations("A[count * 2, N - 1] += 1.0")
    assert names.count("arith.muli") == 1
    assert names.count("arith.subi") == 1
    assert names[-3:] == ["memref.load", "arith.addf", "memref.store"]


@pytest.mark.parametrize(
    ("slice_", "tile"),
    [
        ("x[N :+ 16]", "memref<?xf32> -> tensor<16xf32>"),
        ("A[0, N :+ 16]", "memref<?x?xf32> -> tensor<1x16xf32>"),
        ("A[N :+ 8, 3]", "memref<?x?xf32> -> tensor<8x1xf32>"),
        ("A[N :+ 8, : 100]", "memref<?x?xf32> -> tensor<8x100xf32>"),
        ("A[N : N + 8, 4 : 7]", "memref<?x?xf32> -> tensor<8x3xf32>"),
        ("x[2 * N + 8 : 8 + N * 2 + 24]", "memref<?xf32> -> tensor<24xf32>"),
        ("x[count : count + 5]", "memref<?xf32> -> tensor<5xf32>"),
        ("x[N - 4 : N]", "memref<?xf32> -> tensor<4xf32>"),
        ("x[(ctx.block.x + 1) * 32 : (ctx.block.x + 2) * 32]", "tensor<32xf32>"),
    ],
)
def test_slices(slice_: str, tile: str) -> None:
    assert lines_of(f"let t = {slice_}")[-1].endswith(tile)


def test_slices_of_rank_3() -> None:
    text = emitted(
        "O[ctx.block.z, 0 :+ 4, :] = -B[ctx.block.z, 0 :+ 4, :]",
        "B: tensor<f32>[Z, M, 64], O: tensor<f32>[Z, M, 64]",
    )
    assert "tile.load" in text
    assert "tensor<1x4x64xf32>, memref<?x?x64xf32>" in text


def test_tiles_broadcast() -> None:
    body = "let t = A[0 :+ 4, 0 :+ 8]\nlet r = t * A[0, 0 :+ 8] + A[0 :+ 4, 0] - alpha"
    lines = lines_of(body)
    assert sum("tile.broadcast" in line for line in lines) == 2
    assert any("tensor<1x8xf32> -> tensor<4x8xf32>" in line for line in lines)
    assert any("tensor<4x1xf32> -> tensor<4x8xf32>" in line for line in lines)
    assert any("tile.splat %alpha : f32 -> tensor<4x8xf32>" in line for line in lines)


def test_tiles_convert() -> None:
    lines = lines_of("let r = f32(q[0 :+ 4, 0 :+ 8]) * h[0]")
    assert "tile.sitofp" in lines[1]
    assert lines_of("let r = i8(x[0 :+ 4])")[-1].split()[2] == "tile.fptosi"
    assert operations("let r = bf16(h[0 :+ 4])")[-2:] == ["arith.extf", "arith.truncf"]


def test_tiles_compare_and_select() -> None:
    lines = lines_of("let t = x[0 :+ 4]\nlet r = where(t > 0.0 && !isnan(t), t, 0.0)")
    assert any("tile.cmpf ogt" in line for line in lines)
    assert any("arith.andi" in line and "tensor<4xi1>" in line for line in lines)
    assert "tile.select" in lines[-1]
    assert "scf.if" not in "".join(lines)


def test_where_spreads_to_the_shape_of_all_three() -> None:
    lines = lines_of("let r = where(A[0 :+ 4, 0] > 0.0, A[0, 0 :+ 8], 1.0)")
    assert "tensor<4x8xi1>, tensor<4x8xf32>" in lines[-1]


def test_a_scalar_condition_selects_whole_tiles() -> None:
    lines = lines_of("let r = where(count > 0, x[0 :+ 4], 0.0)")
    assert "arith.select" in lines[-1]
    assert "tensor<4xf32>" in lines[-1]


def test_scalars_and_smaller_tiles_spread_when_stored() -> None:
    assert "tile.splat" in lines_of("A[0 :+ 4, 0 :+ 8] = 1.0")[0]
    assert operations("A[0 :+ 4, 0 :+ 8] = A[0, 0 :+ 8]") == [
        "tile.load",
        "tile.broadcast",
        "tile.store",
    ]


def test_tiles_are_carried_through_loops() -> None:
    text = emitted("var t = x[0 :+ 16]\nfor i in range(3) { t += x[i :+ 16] }\nx[0 :+ 16] = t")
    assert "-> (tensor<16xf32>)" in text


def test_tiles_without_a_value_are_empty() -> None:
    text = emitted(
        "var t: tile<f32>[4, 8]\nif count > 0 { t = A[0 :+ 4, 0 :+ 8] }\nA[0 :+ 4, 0 :+ 8] = t"
    )
    assert "tensor.empty() : tensor<4x8xf32>" in text
    text = emitted("var t: tile<f32>[4, 8]\nt = A[0 :+ 4, 0 :+ 8]\nA[0 :+ 4, 0 :+ 8] = t")
    assert "tensor.empty" not in text


def test_index_constants_take_the_type_of_an_integer_tile() -> None:
    text = emitted("let c = 4\nn[0 :+ 8] = n[0 :+ 8] * c")
    assert "arith.constant 4 : i32" in text


def test_runs() -> None:
    lines = lines_of("let s = sum(i32(q[0, count :+ 16]) * i32(q[1, N :+ 16]))")
    assert sum("vector.load" in line for line in lines) == 2
    assert sum("tile.extsi" in line for line in lines) == 2
    assert "vector.reduction <add>" in lines[-1]
    assert lines[-1].endswith("vector<16xi32> into i32")


def test_run_store_and_arithmetic() -> None:
    lines = lines_of("let r = elem(x[0 :+ 4])\nstore(x[4 :+ 4], r * alpha + 1.0)")
    assert any("vector.broadcast %alpha" in line for line in lines)
    assert "vector.store" in lines[-1]


def test_words() -> None:
    assert operations("let w = word(q[0, 0 :+ 4])") == [
        "vector.load",
        "vector.bitcast",
        "vector.extract",
    ]
    assert "vector<2xf16> to vector<1xi32>" in emitted("let w = word(h[0 :+ 2])")


def test_dp4a() -> None:
    text = emitted("let w = word(q[0, 0 :+ 4])\nn[0] = dp4a(w, mask, count)")
    assert "tile.dp4a %w, %mask unsigned, %count" in text


# Threads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("sum<over ctx.lane>(alpha)", "collective.reduce add over lane %alpha : f32 -> f32"),
        ("prod<over ctx.warp>(count)", "collective.reduce mul over warp %count : i32 -> i32"),
        ("max<over ctx.thread>(mask)", "collective.reduce umax over thread %mask : i32 -> i32"),
        ("min<over ctx.lane>(alpha)", "collective.reduce min over lane %alpha : f32 -> f32"),
        ("shuffle_xor(alpha, 16)", "collective.shuffle xor %alpha, %0 : f32"),
        ("shuffle_up(wide, count)", "collective.shuffle up %wide, %count : i64"),
        ("shuffle_down(alpha, 1)", "collective.shuffle down %alpha, %0 : f32"),
    ],
)
def test_collectives(call: str, line: str) -> None:
    assert lines_of(f"let r = {call}")[-1].endswith(line)


def test_bool_collectives() -> None:
    for name, kind in (("any", "any"), ("all", "all"), ("count", "count"), ("sum", "count")):
        result = "i32" if kind == "count" else "i1"
        lines = lines_of(f"let r = {name}<over ctx.lane>(small > 0)", parameters="small: i8")
        assert lines[-1].endswith(f"i1 -> {result}")
        assert f"reduce {kind} over lane" in lines[-1]


def test_ballot_and_barrier() -> None:
    assert operations("let m = ballot(count > 0)\nbarrier()")[-2:] == [
        "collective.ballot",
        "collective.barrier",
    ]


def test_shuffles_read_lanes_given_as_index() -> None:
    assert operations("let r = shuffle(alpha, ctx.lane)") == [
        "ctx.lane",
        "arith.index_cast",
        "collective.shuffle",
    ]


# Functions ---------------------------------------------------------------------------------------


def test_functions_are_expanded() -> None:
    header = "fn twice(a: f32) -> f32 { return a + a }\n"
    text = emitted("x[0] = twice(twice(alpha))", header=header)
    assert text.count("arith.addf") == 2
    assert "call" not in text


def test_functions_take_tensors_and_tiles_of_any_extent() -> None:
    header = """
    fn shifted(T: tensor<f32>[L], t: tile<f32>[S], by: index) -> tile<f32>[S] {
      return T[by + L :+ S] + t
    }
    """
    text = emitted("x[0 :+ 8] = shifted(x, x[0 :+ 8], 4)", header=header)
    assert "memref.dim %x" in text
    assert "tensor<8xf32>" in text


def test_constant_arguments_stay_constants() -> None:
    header = "fn clear(T: tensor<f32>[L], n: index) { T[0 :+ n] = 0.0 }\n"
    assert "tensor<24xf32>" in emitted("clear(x, 24)", header=header)


def test_functions_without_a_result_are_statements() -> None:
    header = "fn put(T: tensor<f32>[L], v: f32) { if v > 0.0 { return }\nT[0] = v }\n"
    text = emitted("put(x, alpha)", header=header)
    assert "memref.store %alpha, %x" in text


# Names -------------------------------------------------------------------------------------------


def test_built_in_names_may_be_shadowed() -> None:
    text = emitted("let max = 3.0 + alpha\nlet ctx = count\nx[0] = max\nx[ctx] = max")
    assert "%max = arith.addf" in text


def test_inner_names_hide_outer_ones() -> None:
    text = emitted("let a = alpha\nif count > 0 { let a = 2.0\nx[0] = a }\nx[1] = a")
    assert "memref.store %alpha" in text


def test_values_carry_the_names_of_variables() -> None:
    assert "%total = arith.addf" in emitted("let total = alpha + 1.0\nx[0] = total")
