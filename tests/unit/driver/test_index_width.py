"""The launch ABI's table of what needs 64-bit indices."""

from __future__ import annotations

from pathlib import Path

import pytest

import phobos

EXAMPLES = Path(__file__).parents[3] / "examples"
SOURCE = (EXAMPLES / "gemm_fp16tc_fp32acc.ph").read_text()


@pytest.mark.parametrize(("chip", "bits"), [("sm_75", 32), ("sm_80", 64), ("sm_120", 64)])
def test_tensor_cores_with_asynchronous_copies_widen_the_module(chip: str, bits: int) -> None:
    module = phobos.compile(SOURCE, chip=chip)
    assert module.contract.index_bits == bits
    assert f".param .u{bits} A_offset" in module.ptx


def test_asking_for_32_bits_does_not_narrow() -> None:
    assert phobos.compile(SOURCE, chip="sm_80", index_bits=32).contract.index_bits == 64


def test_without_the_attribute_32_bits_stay() -> None:
    source = SOURCE.replace("@tensorcore\n", "")
    assert phobos.compile(source, chip="sm_80").contract.index_bits == 32
