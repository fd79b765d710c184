"""What a launch lets the compiler assume of extents, dim by dim."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.diagnostics import PhobosError
from phobos.runtime.module import Module
from phobos.runtime.multiples import Multiples, multiples_of
from phobos.targets.ptx.contract import Dimension, KernelContract, TensorParameter, loads
from tests.support.launching import SAXPY, NotingDevice, contract_of

PRODUCT = KernelContract(
    name="product",
    threads=32,
    parameters=tuple(
        TensorParameter(name, "f32", tuple(Dimension(dim, None) for dim in dims))
        for name, dims in (("A", "MK"), ("B", "KN"), ("C", "MN"))
    ),
)


@pytest.mark.parametrize(
    ("extent", "multiple"), [(1, 1), (6, 2), (100, 4), (1000, 8), (48, 16), (32, 16), (0, 16)]
)
def test_one_dim_has_one_number(extent: int, multiple: int) -> None:
    assert multiples_of(SAXPY, {"N": extent}) == Multiples(multiple)


@pytest.mark.parametrize(
    ("extents", "multiples"),
    [
        ((64, 64, 64), Multiples(16)),
        ((7, 64, 64), Multiples(1, (("K", 16), ("N", 16)))),
        # Rows that are no multiple of 16 are as good as an odd number of them.
        ((8, 64, 64), Multiples(1, (("K", 16), ("N", 16)))),
        ((64, 12, 64), Multiples(16, (("K", 4),))),
        ((7, 9, 6), Multiples(1, (("N", 2),))),
    ],
)
def test_last_axes_have_numbers_of_their_own(
    extents: tuple[int, int, int], multiples: Multiples
) -> None:
    assert multiples_of(PRODUCT, dict(zip("MKN", extents, strict=True))) == multiples


SCALE = """\
@launch(32)
kernel scale(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  let r = ctx.block.x
  Y[r, 0 :+ 256] = X[r, 0 :+ 256] * 2
}
"""


def test_an_odd_number_of_rows_keeps_wide_accesses() -> None:
    device = NotingDevice()
    x = np.zeros((7, 256), np.float32)
    phobos.compile(SCALE, chip="sm_80")["scale"](x, x.copy(), device=device)
    assert "ld.global.v4" in device.launches[0].program.ptx
    odd = np.zeros((16, 255), np.float32)
    phobos.compile(SCALE, chip="sm_80")["scale"](odd, odd.copy(), device=device)
    assert "ld.global.v4" not in device.launches[1].program.ptx


@pytest.mark.parametrize("shape", [(7, 256), (3, 252), (4, 250), (5, 201), (16, 16)])
def test_every_variant_computes_the_same(shape: tuple[int, int]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    y = np.zeros_like(x)
    phobos.compile(SCALE, chip="sm_80")["scale"](x, y, device="emulator")
    np.testing.assert_array_equal(y, 2 * x)


def test_a_promise_for_one_dim() -> None:
    module = phobos.compile(
        SCALE, chip="sm_80", extent_multiple=1, extent_multiples={"N": 16}, name="scale.ph"
    )
    assert "ld.global.v4" in module.ptx
    assert loads(module.contract.dumps()).extent_multiples == {"N": 16}
    assert loads(module.contract.dumps()).extent_multiple_of("M") == 1


def test_a_dim_that_is_none_is_an_error() -> None:
    with pytest.raises(PhobosError, match="`n`, which is no dim of a tensor") as caught:
        phobos.compile(SCALE, extent_multiples={"n": 16})
    assert "`N`" in str(caught.value)


def test_a_fixed_module_checks_every_dim() -> None:
    contract = contract_of(PRODUCT, extent_multiple=1)
    contract = loads(
        contract.dumps().replace('"extent_multiples": {}', '"extent_multiples": {"N": 8}')
    )
    kernel = Module("ptx", contract)["product"]
    device = NotingDevice()
    a, b = np.zeros((3, 5), np.float32), np.zeros((5, 8), np.float32)
    kernel(a, b, np.zeros((3, 8), np.float32), device=device, grid=1)
    with pytest.raises(PhobosError, match="a `N` that is a multiple of 8"):
        kernel(a, b[:, :4].copy(), np.zeros((3, 4), np.float32), device=device, grid=1)
    assert len(device.launches) == 1
