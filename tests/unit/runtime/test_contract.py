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
    TensorMap,
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
    tensor_maps=(TensorMap("A", "bf16", (128, 64), 128),),
    cluster=(2, 1, 1),
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
    assert (kernel["tensor_maps"], kernel["cluster"]) == ([], [1, 1, 1])
    (gemm,) = contract_of(GEMM).to_json()["kernels"]
    assert gemm["tensor_maps"] == [
        {"tensor": "A", "type": "bf16", "box": [128, 64], "swizzle": 128}
    ]
    assert gemm["cluster"] == [2, 1, 1]


def test_contracts_may_say_nothing_of_tensor_maps_and_clusters() -> None:
    data = contract_of(SAXPY).to_json()
    del data["kernels"][0]["tensor_maps"], data["kernels"][0]["cluster"]
    assert from_json(data) == contract_of(SAXPY)


@pytest.mark.parametrize(
    ("field", "value", "part"),
    [
        ("tensor", "B", '`kernels[0].tensor_maps[0].tensor` must be one of A, bar, and is "B"'),
        ("type", "tf32", "`kernels[0].tensor_maps[0].type` must be one of bf16"),
        ("swizzle", 48, "`kernels[0].tensor_maps[0].swizzle` must be one of 0, 32, 64, 128"),
        ("box", "64", "`kernels[0].tensor_maps[0].box` must be a list of integers"),
        ("box", [64], "box` must be 2 integers from 1 to 256, and is [64]"),
        ("box", [64, 512], "box` must be 2 integers from 1 to 256"),
        ("box", [64, 4], "box` must be of rows that are a multiple of 16 bytes, at most 128"),
        ("box", [64, 128], "box` must be of rows that are a multiple of 16 bytes, at most 128"),
    ],
)
def test_a_wrong_tensor_map_is_named(field: str, value: Any, part: str) -> None:
    data = contract_of(GEMM).to_json()
    data["kernels"][0]["tensor_maps"][0][field] = value
    with pytest.raises(PhobosError) as caught:
        from_json(data)
    assert part in str(caught.value)


@pytest.mark.parametrize("cluster", [[2, 1], [0, 1, 1], [8, 4, 1]])
def test_a_wrong_cluster_is_named(cluster: list[int]) -> None:
    data = contract_of(GEMM).to_json()
    data["kernels"][0]["cluster"] = cluster
    with pytest.raises(PhobosError, match="must be three positive integers"):
        from_json(data)


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
