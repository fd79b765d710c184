"""Tensor maps and clusters as attributes of a kernel, and what is made of them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from phobos.diagnostics import PhobosError
from phobos.dialects import ptx
from phobos.driver.compilation import compile_text
from phobos.driver.options import CompileOptions
from phobos.explain.text import explanation_text
from phobos.pipeline import default_pipeline
from phobos.runtime.abi import entry_arguments
from phobos.targets.ptx.contract import TensorMap, loads
from phobos.targets.ptx.tensor_maps import (
    CLUSTER,
    TENSOR_MAPS,
    add_tensor_map,
    cluster_of,
    map_parameters,
    set_cluster,
    set_tensor_maps,
    tensor_maps_of,
)

A = TensorMap("A", "f16", (64, 32), 64)
B = TensorMap("B", "tf32", (1, 64, 32), 128)


def entry() -> ptx.EntryOp:
    return ptx.EntryOp.make("k", map_parameters((A, B)))


def test_attributes_give_back_what_was_put() -> None:
    kernel = entry()
    assert (tensor_maps_of(kernel), cluster_of(kernel)) == ((), (1, 1, 1))
    set_tensor_maps(kernel, (A, B))
    set_cluster(kernel, (2, 1, 1))
    assert (tensor_maps_of(kernel), cluster_of(kernel)) == ((A, B), (2, 1, 1))
    assert add_tensor_map(kernel, B) == 1
    assert add_tensor_map(kernel, TensorMap("C", "f16", (64, 8), 0)) == 2
    assert len(tensor_maps_of(kernel)) == 3
    set_tensor_maps(kernel, ())
    set_cluster(kernel, (1, 1, 1))
    assert not kernel.attributes


@pytest.mark.parametrize("attribute", [TENSOR_MAPS, CLUSTER])
def test_attributes_of_another_form_are_named(attribute: str) -> None:
    kernel = entry()
    kernel.attributes[attribute] = StringAttr("A")
    with pytest.raises(PhobosError, match=f'`{attribute}` is "A", which is no'):
        _ = tensor_maps_of(kernel), cluster_of(kernel)


@dataclass(frozen=True)
class TakesMaps(ModulePass):
    """Gives the entries of a module a tensor map and a cluster."""

    name = "takes-maps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, ptx.EntryOp):
                parameters = (*kernel.parameters, *map_parameters((A,)))
                kernel.properties["parameters"] = ptx.ParametersAttr(parameters)
                set_tensor_maps(kernel, (A,))
                set_cluster(kernel, (1, 2, 1))


COPY = """
kernel copy(A: tensor<f16>[M, N], B: tensor<f16>[M, N]) {
  let row = ctx.block.x * 64
  B[row :+ 64, 0 :+ 32] = A[row :+ 64, 0 :+ 32]
}
"""


def test_contract_and_explanation_have_what_the_entry_says() -> None:
    options = CompileOptions("sm_90")
    passes = (*default_pipeline(options), TakesMaps())
    made = compile_text(COPY, "k.ph", options, passes=passes, explain=True)
    assert ".param .align 64 .b8 A_map_0[128]" in made.ptx
    assert ".reqnctapercluster 1, 2, 1" in made.ptx
    assert made.contract is not None
    assert made.explanation is not None
    kernel = made.contract.kernel("copy")
    assert (kernel.tensor_maps, kernel.cluster) == ((A,), (1, 2, 1))
    assert loads(made.contract.dumps()) == made.contract
    header = made.ptx[: made.ptx.index("{")]
    names = [line.split()[-1].rstrip(",)") for line in header.splitlines() if ".param" in line]
    arguments = entry_arguments(kernel, made.contract.index_bits)
    assert [name.partition("[")[0] for name in names] == [one.name for one in arguments]
    text = explanation_text(made.explanation)
    assert "behind the parameters, of A: boxes of 64 x 32 f16, swizzled by 64 bytes" in text
    assert "clusters of 1 x 2 x 1 CTAs, of which the grid must be a multiple" in text
