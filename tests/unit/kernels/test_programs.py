"""The shipped programs as files: how they are found, and what their texts have in common."""

from __future__ import annotations

import re

import pytest

import phobos
from phobos.targets.ptx.contract import GridSource

TYPES = re.compile(r"\b(f16|bf16|f8e4m3|f8e5m2)\b")


def test_a_name_leads_to_a_file_and_a_module() -> None:
    assert "gemm_fp32" in phobos.kernels.names()
    assert phobos.kernels.path("gemm_fp32").is_file()
    constants = {"TILE_M": 64, "TILE_N": 64, "TILE_K": 16}
    module = phobos.kernels.load("gemm_fp32", "sm_90", constants)
    assert module.contract.chip == "sm_90"
    assert constants.items() <= module.contract.kernel("gemm").constants.items()


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    with pytest.raises(phobos.PhobosError, match=r"(?s)called `gemm_f32`.*did you mean `gemm_"):
        phobos.kernels.load("gemm_f32")


def code(name: str) -> str:
    """A program without its comments, and with T for the type of its operands."""
    lines = phobos.kernels.path(name).read_text().splitlines()
    return TYPES.sub("T", "\n".join(line.split("//")[0].rstrip() for line in lines))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gemm_fp16tc_fp32acc", "gemm_bf16"),
        ("gemm_fp8e4m3", "gemm_fp8e5m2"),
        ("attention_fp16", "attention_bf16"),
    ],
)
def test_programs_that_differ_in_a_type_differ_in_nothing_else(one: str, other: str) -> None:
    assert code(one) == code(other)


def test_a_launch_needs_no_grid() -> None:
    """It is inferred from what is stored, declared, or up to the launcher (@persistent)."""
    for name in ("gemm_fp32", "gemm_batched_fp16", "attention_fp32"):
        (kernel,) = phobos.kernels.load(name, "sm_80").contract.kernels
        assert kernel.grid_from is GridSource.INFERRED
    (kernel,) = phobos.kernels.load("attention_fp16", "sm_80").contract.kernels
    assert kernel.grid_from is GridSource.ATTRIBUTE
    for name in ("gemm_grouped_fp16", "gemm_splitk_fp16", "gemm_streamk_fp16"):
        (kernel,) = phobos.kernels.load(name, "sm_80").contract.kernels
        assert kernel.persistent


@pytest.mark.parametrize("name", phobos.kernels.names())
def test_a_program_begins_by_saying_what_it_computes(name: str) -> None:
    assert phobos.kernels.path(name).read_text().startswith("// ")
