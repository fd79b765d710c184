"""The launch contract as JSON: it comes back as it was, and what is wrong is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phobos.diagnostics import PhobosError
from phobos.targets.ptx.contract import (
    Access,
    ChipSource,
    Dimension,
    GridSource,
    KernelContract,
    LaunchBounds,
    ScalarParameter,
    TensorParameter,
    from_json,
    load,
    loads,
)
from tests.support.launching import SAXPY, contract_of

GEMM = KernelContract(
    name="gemm",
    threads=128,
    parameters=(
        TensorParameter("A", "bf16", (Dimension("M", None), Dimension("K", 64)), Access.READ),
        TensorParameter("bar", "i32", (Dimension(None, 2),), Access.READWRITE),
        ScalarParameter("beta", "f64"),
    ),
    launch_bounds=LaunchBounds(128, 2, 128),
    static_shared_bytes=1024,
    dynamic_shared_bytes=65536,
    persistent=True,
    constants={"K": 64, "SCALE": 0.5},
    aligned={"M": 64},
    grid=None,
    grid_from=GridSource.NONE,
)


def test_json_gives_back_the_contract() -> None:
    contract = replace(contract_of(SAXPY, GEMM), chip_from=ChipSource.ENVIRONMENT)
    assert loads(contract.dumps()) == contract


def test_the_json_of_saxpy_has_the_documented_form() -> None:
    data = contract_of(SAXPY).to_json()
    assert data["format"] == 1
    assert data["compiler"] == {"name": "phobos", "version": "0.0", "fingerprint": "0" * 16}
    assert data["chip_from"] == "option"
    (kernel,) = data["kernels"]
    assert kernel["parameters"][0] == {
        "kind": "tensor",
        "name": "x",
        "type": "f32",
        "dims": [{"name": "N", "extent": None}],
        "access": "read",
    }
    assert kernel["parameters"][3] == {"kind": "scalar", "name": "alpha", "type": "f32"}
    assert kernel["autotune"] == {"BLOCK": [16, 8192]}
    assert kernel["grid"] == ["ceildiv(N, BLOCK)", "1", "1"]
    assert kernel["grid_from"] == "inferred"
    assert kernel["launch_bounds"] is None


def test_launch_dims_are_those_that_nothing_compiled_in() -> None:
    assert SAXPY.launch_dims == ("N",)
    assert GEMM.launch_dims == ("M",)


def test_a_kernel_prints_as_its_signature() -> None:
    assert str(GEMM) == "gemm(A: tensor<bf16>[M, K], bar: tensor<i32>[2], beta: f64)"


def test_choosing_a_kernel() -> None:
    assert contract_of(SAXPY).kernel() is SAXPY
    assert contract_of(SAXPY, GEMM).kernel("gemm") is GEMM
    with pytest.raises(PhobosError, match="2 kernels and none was chosen"):
        contract_of(SAXPY, GEMM).kernel()
    with pytest.raises(PhobosError, match="did you mean `saxpy`"):
        contract_of(SAXPY, GEMM).kernel("saxpi")
    with pytest.raises(PhobosError, match="has no kernel"):
        contract_of().kernel()


def mutated(*path: str | int, value: Any) -> dict[str, Any]:
    data = json.loads(contract_of(SAXPY).dumps())
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("data", "part"),
    [
        ([], "no launch contract: no object"),
        ({}, "`format` must be an integer, and is nothing"),
        (mutated("format", value=2), "of format 2; this release reads format 1"),
        (mutated("chip", value=80), "`chip` must be a string, and is 80"),
        (mutated("index_bits", value=16), "`index_bits` must be one of 32, 64"),
        (mutated("index_bits", value=True), "`index_bits` must be one of 32, 64"),
        (mutated("extent_multiple", value=0), "an integer of at least 1, and is 0"),
        (mutated("compiler", value=None), "`compiler` must be an object"),
        (mutated("kernels", value={}), "`kernels` must be a list"),
        (mutated("kernels", 0, value=3), "no object at kernels[0]"),
        (mutated("kernels", 0, "threads", value="256"), "`kernels[0].threads` must be an"),
        (mutated("kernels", 0, "grid", value=["1"]), "`kernels[0].grid` must be three expressions"),
        (mutated("kernels", 0, "grid_from", value="x"), "`kernels[0].grid_from` must be a known"),
        (
            mutated("kernels", 0, "constants", "BLOCK", value="16"),
            "`kernels[0].constants.BLOCK` must be a number",
        ),
        (
            mutated("kernels", 0, "parameters", 1, "type", value="f33"),
            "`kernels[0].parameters[1].type` must be one of bool, i8",
        ),
        (
            mutated("kernels", 0, "parameters", 0, "dims", 0, "name", value=None),
            "`kernels[0].parameters[0].dims[0].extent` must be an integer",
        ),
    ],
)
def test_a_wrong_field_is_named(data: Any, part: str) -> None:
    with pytest.raises(PhobosError) as caught:
        from_json(data, "k.json")
    assert part in str(caught.value)
    assert "k.json" in str(caught.value)


def test_text_that_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "k.json"
    path.write_text("{")
    with pytest.raises(PhobosError, match="is not JSON"):
        load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(PhobosError, match="not UTF-8"):
        load(path)
    with pytest.raises(PhobosError, match="No such file"):
        load(tmp_path / "missing.json")
