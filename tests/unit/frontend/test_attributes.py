"""What the attributes of a kernel become in IR."""

from __future__ import annotations

import pytest
from xdsl.dialects import gpu
from xdsl.dialects.builtin import DictionaryAttr

from phobos.diagnostics import PhobosError
from phobos.frontend import FrontendOptions, to_ir
from phobos.ir.kernel import (
    argument_name,
    dim_names,
    int_dict,
    kernel_name,
    kernels,
    module_int,
    threads_of,
)
from phobos.runtime.expressions import evaluate
from tests.unit.frontend.emission import module

PARAMETERS = "x: tensor<f32>[N, 4], y: tensor<u8>[K, N], alpha: f32, n: u64"


def kernel(header: str, **options: object) -> gpu.FuncOp:
    text = f"{header}\nkernel k({PARAMETERS}) {{ x[0, 0] = alpha }}"
    return next(kernels(module(text, **options)))


def attribute(header: str, name: str, **options: object) -> str:
    return str(kernel(header, **options).attributes[name])


def test_defaults() -> None:
    found = kernel("")
    assert kernel_name(found) == "k"
    assert threads_of(found) == 256
    assert set(found.attributes) == {"sym_name", "gpu.known_block_size", "arg_attrs"}


def test_arguments_keep_their_names_dims_and_types() -> None:
    found = kernel("@autotune(K in [8])")
    assert [argument_name(found, i) for i in range(4)] == ["x", "y", "alpha", "n"]
    assert dim_names(found, 0) == ("N", 4)
    assert dim_names(found, 1) == ("K", "N")
    types = [str(argument.type) for argument in found.body.blocks[0].args]
    assert types == ["memref<?x4xf32>", "memref<8x?xi8>", "f32", "i64"]
    text = str(found.attributes["arg_attrs"])
    assert 'phobos.type = "u8", phobos.unsigned' in text
    assert 'phobos.type = "u64", phobos.unsigned' in text
    assert text.count("phobos.unsigned") == 2


@pytest.mark.parametrize(
    ("header", "threads", "bounds"),
    [
        ("@launch(96)", 96, "{threads = 96 : i32}"),
        ("@launch(128, 2)", 128, "{threads = 128 : i32, min_ctas = 2 : i32}"),
        (
            "@launch(1024, 1, 64)",
            1024,
            "{threads = 1024 : i32, min_ctas = 1 : i32, max_regs = 64 : i32}",
        ),
        ("@autotune(T in [64, 256])\n@launch(T * 2)", 128, "{threads = 128 : i32}"),
    ],
)
def test_launch(header: str, threads: int, bounds: str) -> None:
    assert threads_of(kernel(header)) == threads
    assert attribute(header, "phobos.launch_bounds") == bounds


def test_autotune_takes_the_first_value_unless_another_is_chosen() -> None:
    header = "@autotune(A in [16, 64], B in [1, 2, 3])\n@autotune(C in [7])"
    assert int_dict(kernel(header), "phobos.constants") == {"A": 16, "B": 1, "C": 7}
    chosen = kernel(header, constants={"A": 5, "C": 0})
    assert int_dict(chosen, "phobos.constants") == {"A": 5, "B": 1, "C": 0}
    assert attribute(header, "phobos.autotune") == (
        "{A = [16 : index, 64 : index], B = [1 : index, 2 : index, 3 : index], C = [7 : index]}"
    )


def test_aligned_records_launch_extents_only() -> None:
    header = "@autotune(T in [32], K in [64])\n@aligned(N = T, K = T)\n"
    assert int_dict(kernel(header), "phobos.aligned") == {"N": 32}


@pytest.mark.parametrize(
    ("header", "name", "text"),
    [
        ("@persistent", "phobos.persistent", "unit"),
        ("@dynshared", "phobos.dynshared", "unit"),
        ("@fast_math", "phobos.fast_math", "unit"),
        ("@registers", "phobos.registers", "unit"),
        ("@swizzle", "phobos.swizzle", "unit"),
        ("@pipeline", "phobos.pipeline", "-1 : i32"),
        ("@pipeline(3)", "phobos.pipeline", "3 : i32"),
        ("@tensorcore", "phobos.tensorcore", '""'),
        ("@tensorcore(tf32)", "phobos.tensorcore", '"tf32"'),
    ],
)
def test_marks(header: str, name: str, text: str) -> None:
    assert attribute(header, name) == text


def test_grid_expressions_have_their_constants_filled_in() -> None:
    header = (
        "@autotune(T in [16, 32])\n@grid(x = ceildiv(N, T), y = (N + T) / 2 - -T, z = min(K, 3))"
    )
    assert attribute(header, "phobos.grid") == (
        '{x = "ceildiv(N, 16)", y = "(N + 16) / 2 - -16", z = "min(K, 3)"}'
    )


def test_the_launcher_reads_what_a_grid_became() -> None:
    grid = kernel("@grid(x = ceildiv(N, 16) * (K - 2) / max(3, K % 4), y = -(2 - N))")
    entries = grid.attributes["phobos.grid"]
    assert isinstance(entries, DictionaryAttr)
    values = {
        axis: evaluate(str(text).strip('"'), {"N": 100, "K": 9})
        for axis, text in entries.data.items()
    }
    assert values == {"x": 7 * 7 // 3, "y": 98}


def test_requirements_are_kept_for_the_tuner() -> None:
    header = "@autotune(T in [16, 32])\n@require(T % 16 == 0)\n@require(T > 3 || T == 1)"
    assert attribute(header, "phobos.require") == '["T % 16 == 0", "T > 3 || T == 1"]'


def test_a_requirement_holds_for_the_chosen_constants() -> None:
    with pytest.raises(PhobosError, match="do not meet this requirement"):
        kernel("@autotune(T in [16, 32])\n@require(T % 16 == 0)", constants={"T": 24})


def test_index_bits_are_set_where_they_are_asked_for() -> None:
    text = f"kernel k({PARAMETERS}) {{ }}"
    assert module_int(next(kernels(module(text, index_bits=64))), "phobos.index_bits", 0) == 64
    assert module_int(next(kernels(module(text))), "phobos.index_bits", 0) == 0


def test_one_kernel_of_a_file() -> None:
    text = "kernel a(x: tensor<f32>[N]) { }\nkernel b(x: tensor<f32>[N]) { }"
    assert [kernel_name(k) for k in kernels(module(text))] == ["a", "b"]
    assert [kernel_name(k) for k in kernels(module(text, kernel="b"))] == ["b"]


def test_an_override_belongs_to_the_kernel_that_is_taken() -> None:
    text = "@autotune(A in [1])\nkernel a() { }\n@autotune(B in [1])\nkernel b() { }"
    module(text, constants={"A": 3})
    with pytest.raises(PhobosError, match="no `@autotune` constant `A`"):
        module(text, constants={"A": 3}, kernel="b")


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("examples/saxpy_fp32.ph", "saxpy_fp32"),
        ("-", "kernels"),
        ("my kernel-2.ph", "my_kernel_2"),
        ("2d.ph", "_2d"),
        ("<stdin>", "stdin"),
    ],
)
def test_the_module_is_named_after_the_file(name: str, symbol: str) -> None:
    top = to_ir("kernel k() { }", name, FrontendOptions())
    inner = top.body.block.first_op
    assert isinstance(inner, gpu.ModuleOp)
    assert str(inner.sym_name) == f'"{symbol}"'
