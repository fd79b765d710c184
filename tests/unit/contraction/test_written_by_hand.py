"""Products of IR that no pass makes: refused, since they would give wrong numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from phobos import PhobosError
from phobos.dialects.contraction import DotOp, InstructionAttr
from phobos.dialects.staging import AwaitProductsOp
from phobos.driver.options import CompileOptions
from phobos.frontend import FrontendOptions, to_ir
from phobos.pipeline import default_pipeline

SOURCE = """\
@launch(128)
@pipeline
kernel product(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
"""


def lowered(spoil: Callable[[ModuleOp], None]) -> None:
    """Compiles the program, whose tiles and buffers are spoilt just before they are lowered."""
    module = to_ir(SOURCE, "product.ph", FrontendOptions())
    for one in default_pipeline(CompileOptions(chip="sm_90a")):
        if one.name == "ph-lower-to-ptx":
            spoil(module)
        one.apply(Context(), module)


def without_waits(module: ModuleOp) -> None:
    """Takes out the waits for products in flight."""
    for op in list(module.walk()):
        if isinstance(op, AwaitProductsOp):
            op.result.replace_all_uses_with(op.value)
            op.detach()
            op.erase()


def by_mma(module: ModuleOp) -> None:
    """Makes the product by `mma`, whose sums lie elsewhere."""
    for op in module.walk():
        if isinstance(op, DotOp) and op.instruction is not None:
            op.in_flight = None
            made_of = replace(op.instruction.data, name="mma", shape=(16, 8, 16), warps=(2, 2))
            op.instruction = InstructionAttr(made_of)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without_waits, "this reads the sum of a product in flight"),
        (by_mma, "a sum of `mma m16n8k16 f16 f32 warps 2x2` lies in registers as"),
    ],
)
def test_wrong_products_are_refused(spoil: Callable[[ModuleOp], None], message: str) -> None:
    lowered(lambda _: None)
    with pytest.raises(PhobosError, match=message):
        lowered(spoil)
