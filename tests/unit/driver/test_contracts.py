"""Launch contracts as they are read off programs, and off IR that says less."""

from __future__ import annotations

import re

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, gpu, memref, vector
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

from phobos.diagnostics import PhobosError
from phobos.driver.compilation import compile_text
from phobos.driver.contracts import kernel_contracts
from phobos.driver.options import CompileOptions
from phobos.frontend import to_ir
from phobos.runtime.abi import entry_arguments
from phobos.targets.ptx.contract import (
    Access,
    Dimension,
    GridSource,
    KernelContract,
    LaunchBounds,
    ScalarParameter,
    TensorParameter,
)
from tests.support.example_cases import EXAMPLES
from tests.support.programs import SAXPY, TWO_KERNELS


def described(text: str) -> KernelContract:
    (contract,) = kernel_contracts(to_ir(text, "k.ph"))
    return contract


def accesses(text: str) -> dict[str, Access]:
    return {tensor.name: tensor.access for tensor in described(text).tensors}


def test_saxpy() -> None:
    n = (Dimension("N", None),)
    assert described(SAXPY) == KernelContract(
        name="saxpy",
        threads=256,
        parameters=(
            TensorParameter("x", "f32", n, Access.READ),
            TensorParameter("y", "f32", n, Access.READ),
            TensorParameter("out", "f32", n, Access.WRITE),
            ScalarParameter("alpha", "f32"),
        ),
        constants={"BLOCK": 16},
        autotune={"BLOCK": (16, 8192)},
        grid=("ceildiv(N, 16)", "1", "1"),
        grid_from=GridSource.INFERRED,
    )


def test_attributes_and_compiled_in_extents() -> None:
    contract = described(
        """
        @autotune(T in [8, 64])
        @launch(128, 2, 96)
        @aligned(M = T)
        @grid(x = M / T, y = 3)
        kernel k(a: tensor<bf16>[M, T], bar: tensor<i32>[2], flag: u8, n: u16) {
          a[ctx.block.x * T :+ T, :] = 0.0
        }
        """
    )
    a, bar = contract.tensors
    assert a.dims == (Dimension("M", None), Dimension("T", 8))
    assert (a.type, a.access) == ("bf16", Access.WRITE)
    assert bar.dims == (Dimension(None, 2),)
    assert bar.access is Access.NONE
    assert [(scalar.name, scalar.type) for scalar in contract.scalars] == [
        ("flag", "u8"),
        ("n", "u16"),
    ]
    assert contract.threads == 128
    assert contract.launch_bounds == LaunchBounds(128, 2, 96)
    assert contract.aligned == {"M": 8}
    assert contract.grid == ("M / 8", "3", "1")
    assert contract.grid_from is GridSource.ATTRIBUTE


def test_what_is_read_and_what_is_written() -> None:
    assert accesses(
        """
        kernel k(a: tensor<f32>[N], b: tensor<f32>[N], c: tensor<f32>[N], d: tensor<f32>[N]) {
          let i = ctx.block.x * ctx.threads + ctx.thread
          if i < N {
            b[i] = a[i]
            c[i] += 1.0
          }
        }
        """
    ) == {"a": Access.READ, "b": Access.WRITE, "c": Access.READWRITE, "d": Access.NONE}


def test_runs_count_as_accesses() -> None:
    assert accesses(
        """
        kernel k(a: tensor<i8>[N], b: tensor<i8>[N]) {
          store(b[ctx.thread * 16 :+ 16], elem(a[ctx.thread * 16 :+ 16]))
        }
        """
    ) == {"a": Access.READ, "b": Access.WRITE}


def test_the_whole_contract_of_a_compilation() -> None:
    result = compile_text(TWO_KERNELS, "two.ph", CompileOptions(extent_multiple=8))
    contract = result.contract
    assert contract is not None
    assert [kernel.name for kernel in contract.kernels] == ["first", "second"]
    assert (contract.source, contract.extent_multiple, contract.chip) == ("two.ph", 8, "sm_80")
    assert f".version {contract.ptx_version}\n" in result.ptx
    assert contract.index_bits == 32


def test_static_shared_memory_is_that_of_the_kernel() -> None:
    text = (EXAMPLES / "row_sum.ph").read_text() + TWO_KERNELS
    contract = compile_text(text, "k.ph", CompileOptions()).contract
    assert contract is not None
    assert contract.kernel("row_sum").static_shared_bytes >= 8 * 4
    assert contract.kernel("first").static_shared_bytes == 0


ALL_TYPES = """
kernel k(a: tensor<i8>[M, N], p: f16, q: bf16, r: i8, s: u16, b: tensor<f64>[N], t: i32, u: i64,
         v: f32, w: f64) {
  b[ctx.block.x * 32 :+ 32] = 1.0
}
"""
_PARAMETER = re.compile(r"\.param (?:\.align \d+ )?\.(\w+) (\w+)(\[\d+\])?")


@pytest.mark.parametrize("index_bits", [32, 64])
def test_the_entry_takes_the_arguments_that_the_abi_says(index_bits: int) -> None:
    result = compile_text(ALL_TYPES, "k.ph", CompileOptions(index_bits=index_bits))
    contract = result.contract
    assert contract is not None
    assert contract.index_bits == index_bits
    header = result.ptx[result.ptx.index(".entry") : result.ptx.index("{")]
    printed = [(name, f"{type_}{count}") for type_, name, count in _PARAMETER.findall(header)]
    expected = entry_arguments(contract.kernel("k"), index_bits)
    assert printed == [(argument.name, argument.type) for argument in expected]


# IR of other producers ---------------------------------------------------------------------------


def parsed(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, gpu.GPU, memref.MemRef, arith.Arith, vector.Vector):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


FOREIGN = """
"gpu.module"() <{{sym_name = "m"}}> ({{
  "gpu.func"() <{{function_type = ({types}) -> (), kernel}}> ({{
  ^bb0({arguments}):
    {body}
    "gpu.return"() : () -> ()
  }}) {{sym_name = "k"}} : () -> ()
}}) : () -> ()
"""


def foreign(arguments: str, body: str = "") -> KernelContract:
    types = ", ".join(part.split(": ")[1] for part in arguments.split(", "))
    (contract,) = kernel_contracts(
        parsed(FOREIGN.format(types=types, arguments=arguments, body=body))
    )
    return contract


def test_ir_without_attributes_gets_the_defaults() -> None:
    contract = foreign("%a: memref<?x8xf16>, %n: i64")
    assert contract.threads == 256
    (tensor,), (scalar,) = contract.tensors, contract.scalars
    assert tensor.dims == (Dimension("a_size_0", None), Dimension(None, 8))
    assert (tensor.type, scalar.type) == ("f16", "i64")
    assert contract.constants == {}
    assert contract.launch_bounds is None


def test_an_access_through_a_view_counts_for_the_tensor() -> None:
    body = """
    %v = "memref.cast"(%b) : (memref<4xf32>) -> memref<?xf32>
    %i = arith.constant 0 : index
    %x = memref.load %a[%i] : memref<4xf32>
    memref.store %x, %v[%i] : memref<?xf32>
    """
    contract = foreign("%a: memref<4xf32>, %b: memref<4xf32>", body)
    assert [tensor.access for tensor in contract.tensors] == [Access.READ, Access.WRITE]


def test_an_op_with_unknown_effects_may_do_both() -> None:
    body = '"memref.copy"(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()'
    contract = foreign("%a: memref<4xf32>, %b: memref<4xf32>", body)
    assert {tensor.access for tensor in contract.tensors} == {Access.READWRITE}


def test_a_type_that_cannot_be_passed_is_an_error() -> None:
    with pytest.raises(PhobosError, match="parameter `n` of kernel `k` has type i7"):
        foreign("%n: i7")
