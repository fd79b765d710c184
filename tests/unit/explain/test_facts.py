"""What explanations say is so: against the PTX, the emulator's counts, and changed programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

import phobos
from phobos.driver.compilation import Compilation, compile_text
from phobos.driver.levels import Level
from phobos.driver.options import make_options
from phobos.emulator import Profile
from phobos.explain.data import explanation_json
from phobos.explain.records import Explanation, Kernel
from phobos.explain.text import explanation_text
from phobos.runtime.emulator_device import EmulatorDevice
from phobos.runtime.inputs import make_inputs
from phobos.transforms.infer_uniformity import InferUniformityPass
from tests.support.cases import run_case
from tests.support.chips import PLAIN_CHIPS
from tests.support.example_cases import ALL, EXAMPLES, Example

PROGRAMS = sorted([*EXAMPLES.glob("*.ph"), *(EXAMPLES.parent / "phobos/kernels").glob("*.ph")])


def explained(
    text: str,
    *,
    chip: str = "sm_80",
    constants: Mapping[str, int] | None = None,
    tensor_maps: bool = False,
) -> tuple[Compilation, Explanation]:
    options = make_options(chip=chip, constants=constants, tensor_maps=tensor_maps)
    compilation = compile_text(text, "program.ph", options, explain=True)
    assert compilation.explanation is not None
    return compilation, compilation.explanation


def kernel_of(text: str) -> Kernel:
    (kernel,) = explained(text)[1].kernels
    return kernel


def _name(value: Path | str) -> str:
    return value.name if isinstance(value, Path) else value


ACCESS = re.compile(
    r"^\s+(?:@!?%\w+ )?((?:ld|st|cp\.async\.c[ag]|ldmatrix|atom|red|wmma\.(?:load|store))\.\S+)",
    re.M,
)


@pytest.mark.parametrize(
    ("program", "chip"), list(zip(PROGRAMS, cycle(PLAIN_CHIPS), strict=False)), ids=_name
)
def test_every_access_of_the_ptx_is_told_at_its_line(program: Path, chip: str) -> None:
    text = program.read_text()
    chip = "sm_90" if "@cluster" in text else chip
    compilation, explanation = explained(text, chip=chip)
    told: Counter[str] = Counter()
    lines = len(text.splitlines())
    for kernel in explanation.kernels:
        for one in kernel.accesses:
            told[one.instruction] += one.count
            assert one.place is not None
            assert 1 <= one.place.line <= lines
            assert one.place.text
    found = Counter(name for name in ACCESS.findall(compilation.ptx) if ".param" not in name)
    assert told == found
    text = explanation_text(explanation)
    assert all(f"kernel {kernel.name} " in text for kernel in explanation.kernels)
    assert json.loads(explanation_json(explanation))["kernels"][0]["accesses"]


DIMS: dict[str, dict[str, int]] = {
    "gemm_fp16tc_fp32acc.ph": {"M": 32, "N": 32, "K": 64},
    "linear_attention.ph": {"H": 1, "T": 32},
    "copy2d.ph": {"M": 32, "N": 64},
    "matvec.ph": {"N": 8, "K": 256},
    "transpose.ph": {"M": 32, "N": 32},
    "cumsum.ph": {"R": 1, "K": 1024},
    "top1.ph": {"M": 1, "N": 1024},
}
"""Extents of whole tiles, for which what is told of one access is true of all."""


@pytest.mark.parametrize(
    "example", [one for one in ALL if one.file in DIMS], ids=lambda one: one.file
)
def test_the_emulator_counts_what_is_told(example: Example) -> None:
    text = example.path.read_text()
    module = phobos.compile(text, chip="sm_80", name="program.ph", cache=False)
    profile = Profile()
    run_case(
        module, example.kernel, example.case(DIMS[example.file]), EmulatorDevice(profile=profile)
    )
    counted = {one.location.line: one for one in profile.lines if "program.ph" in one.location.file}
    kernel = kernel_of(text)
    for line, counts in counted.items():
        here = [one for one in kernel.accesses if one.place is not None and one.place.line == line]
        touched = [one.coalesced for one in here if one.coalesced is not None]
        if counts.sectors and touched:
            told = {one.sectors == one.ideal for one in touched}
            assert (counts.sectors == counts.ideal_sectors) in told
            if len({(one.sectors, one.ideal) for one in touched}) == 1:
                # A warp whose lanes are all masked touches nothing.
                requests, rest = divmod(counts.sectors, touched[0].sectors or 0)
                assert rest == 0
                assert 0 < requests <= counts.global_requests
        banks = [one.banks for one in here if one.banks is not None]
        if banks and all(one.banks is not None or one.space != "shared" for one in here):
            free = all(one.passes == one.ideal for one in banks)
            assert free == (counts.passes == counts.ideal_passes)


@pytest.mark.parametrize("name", ["gemm_fp64", "gemm_tf32", "gemm_fp16"])
def test_the_banks_of_products_are_as_told(name: str) -> None:
    text = (EXAMPLES.parent / f"phobos/kernels/{name}.ph").read_text()
    module = phobos.compile(text, chip="sm_80", name="program.ph", cache=False)
    (kernel,) = module.contract.kernels
    given = make_inputs(
        kernel, dims={"M": 64, "N": 64, "K": 32}, scalars={"alpha": 1, "beta": 0}, files={}, seed=0
    )
    profile = Profile()
    values = {name: value.value for name, value in given.values.items()}
    module[kernel.name](**values, device=EmulatorDevice(profile=profile))
    reads = [one for one in kernel_of(text).accesses if one.space == "shared"]
    banks = [one.banks for one in reads if one.banks is not None]
    assert len(banks) == len(reads)
    assert all(one.passes == one.ideal for one in banks)
    assert profile.total.passes == profile.total.ideal_passes


LANES = """\
kernel lanes(X: tensor<f32>[N], Y: tensor<f32>[N, 16]) {
  var own: tile<f32>[1024] = 0.0
  let t = ctx.thread
  let a = X[t / 4]
  let b = X[t % 8 * 4 + t / 8 % 4]
  let c = X[3 * t]
  own[2 * t] = a
  barrier()
  let d = own[t * 32 % 1024]
  let e = own[t % 32]
  let f = sum(X[4 * t :+ 4])
  Y[t, 3] = a + b + c
  Y[t / 16, t % 16] = d
  Y[t >> 5, 0] = e
  Y[256 - t, 1] = f
}
"""
"""One access a line; the first line with one is 2."""


def test_lanes_touch_what_is_told() -> None:
    profile = Profile()
    x, y = np.ones(1024, np.float32), np.zeros((1024, 16), np.float32)
    module = phobos.compile(LANES, chip="sm_80", name="program.ph", cache=False)
    module["lanes"](x, y, grid=1, device=EmulatorDevice(profile=profile))
    counted = {one.location.line: one for one in profile.lines}
    told = {one.place.line: one for one in kernel_of(LANES).accesses if one.place is not None}
    assert sorted(told) == [2, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15]
    for line, one in told.items():
        counts, places, banks = counted[line], one.coalesced, one.banks
        if places is not None:
            assert counts.sectors == counts.global_requests * (places.sectors or 0)
            assert counts.ideal_sectors == counts.global_requests * (places.ideal or 0)
        else:
            assert banks is not None
            assert counts.passes == counts.shared_requests * banks.passes


@pytest.mark.parametrize("name", ["saxpy_fp32", "softmax", "copy2d", "transpose", "layernorm"])
def test_what_spares_a_mask_spares_it(name: str) -> None:
    text = (EXAMPLES / f"{name}.ph").read_text()
    before = kernel_of(text)
    assert before.masks
    remedies = dict.fromkeys(mask.remedy for mask in before.masks)
    assert None not in remedies
    after = kernel_of("\n".join([*map(str, remedies), text]))
    assert after.masks == ()
    slices = [one for one in after.accesses if one.space == "global"]
    assert slices
    assert all(not one.guarded or one.verb == "store" for one in slices)


def test_extent_multiple_widens_as_told() -> None:
    text = "kernel k(X: tensor<f16>[M, N]) {\n  X[ctx.block.x * 16 :+ 16, 0 :+ 512] = 1.0\n}\n"
    (access,) = kernel_of(text).accesses
    assert access.bytes == 8
    assert access.narrow is not None
    assert "`--extent-multiple N=8`" in access.narrow
    compilation = compile_text(
        text, "program.ph", make_options(chip="sm_80", extent_multiples={"N": 8}), explain=True
    )
    assert compilation.explanation is not None
    (access,) = compilation.explanation.kernels[0].accesses
    assert (access.bytes, access.narrow) == (16, None)


DOT = """\
@launch(128)
{attributes}
kernel k(A: tensor<{type}>[M, K], B: tensor<{type}>[K, N], C: tensor<{sum}>[M, N]) {{
  var acc: tile<{sum}>[64, 64] = 0
  for k in range(0, K, 32) {{
    acc += dot(A[ctx.block.x * 64 :+ 64, k :+ 32], B[k :+ 32, ctx.block.y * 64 :+ 64])
  }}
  C[ctx.block.x * 64 :+ 64, ctx.block.y * 64 :+ 64] = acc
}}
"""


@pytest.mark.parametrize(
    ("depth", "stages", "said"),
    [
        (32, 2, "then in one of 2 stages of shared memory (sm_75 has no cp.async)"),
        (64, 1, "(sm_75 has no cp.async; two stages do not fit the shared memory)"),
    ],
)
def test_where_loads_are_held_that_no_copy_does(depth: int, stages: int, said: str) -> None:
    """Of f32, a stage is 16 or 32 KB of 48."""
    text = DOT.format(type="f32", sum="f32", attributes="@pipeline(4)")
    text = text.replace("32)", f"{depth})").replace(":+ 32", f":+ {depth}").replace("128", "256")
    compilation, explanation = explained(text, chip="sm_75")
    (product,) = explanation.kernels[0].contractions
    assert product.pipelining is not None
    assert (product.pipelining.form, product.pipelining.stages) == ("registers", stages)
    assert said in " ".join(explanation_text(explanation).split())
    assert compilation.ptx.count("bar.sync") == 3 - stages


@pytest.mark.parametrize(
    ("chip", "type_", "attributes", "instruction", "reason", "form"),
    [
        ("sm_80", "f16", "", "mma.sync m16n8k16", "f16 operands on sm_80", "copies"),
        ("sm_75", "f16", "", "mma.sync m16n8k8", "f16 operands on sm_75", "registers"),
        ("sm_80", "f32", "", "multiply-adds", "`@tensorcore(tf32)` rounds", "copies"),
        ("sm_80", "f32", "@tensorcore(tf32)", "mma.sync m16n8k8", "rounds f32", "copies"),
        ("sm_90", "f32", "@tensorcore(tf32x3)", "mma.sync m16n8k8", "2 parts of tf32", "copies"),
        (
            "sm_75",
            "f32",
            "@tensorcore(tf32)",
            "multiply-adds",
            "sm_75 has no mma of tf32",
            "registers",
        ),
        ("sm_75", "f16", "@tensorcore(wmma)", "wmma.mma m16n16k16", "asks for it", "registers"),
        ("sm_80", "f16", "@pipeline(1)", "mma.sync m16n8k16", "f16 operands", "none"),
    ],
)
def test_products_and_their_reasons(
    chip: str, type_: str, attributes: str, instruction: str, reason: str, form: str
) -> None:
    text = DOT.format(type=type_, sum="f32", attributes=attributes)
    compilation, explanation = explained(text, chip=chip)
    (product,) = explanation.kernels[0].contractions
    assert product.instruction == instruction
    assert reason in product.reason
    assert product.pipelining is not None
    assert product.pipelining.form == form
    assert ("cp.async" in compilation.ptx) == (form == "copies")
    if instruction != "multiply-adds":
        # A pipelined loop may have copies of its body, and its last step behind it.
        made = len(re.findall(r"^\s+(?:mma\.sync|wmma\.mma)", compilation.ptx, re.M))
        step = product.count * int(instruction.rsplit("k", 1)[1]) // 32
        assert made % product.count in (0, step if form == "registers" else 0)


def test_a_turned_product_and_why_there_is_none() -> None:
    """One piece of 64 columns and rows, in four steps along K."""
    text = DOT.format(type="f32", sum="f32", attributes="@tensorcore(tf32)")
    (product,) = explained(text, chip="sm_90a", tensor_maps=True)[1].kernels[0].contractions
    assert product.instruction == "wgmma.mma_async m64n64k8"
    assert (product.warps, product.count) == ((1, 4), 4)
    assert "rounds f32 operands to tf32, and wgmma makes C^T = B^T A^T" in product.reason
    (product,) = explained(text, chip="sm_90a")[1].kernels[0].contractions
    assert product.instruction == "mma.sync m16n8k8"
    assert product.reason.endswith("wgmma takes tf32 with `--tensor-maps` alone")


def test_a_pipeline_without_most_passes_explains_what_is_there() -> None:
    text = (EXAMPLES / "saxpy_fp32.ph").read_text()
    compilation = compile_text(
        text,
        "program.ph",
        make_options(chip="sm_80"),
        levels={Level.DIST},
        passes=(InferUniformityPass(),),
        explain=True,
    )
    assert compilation.explanation is not None
    (kernel,) = compilation.explanation.kernels
    assert (kernel.name, kernel.accesses, kernel.registers) == ("saxpy", (), None)


def test_a_compilation_without_explanation_does_not_load_it() -> None:
    code = (
        "import sys; from phobos.cli.compile import main; "
        f"main([{str(EXAMPLES / 'saxpy_fp32.ph')!r}, '-o', '-', '--timing']); "
        "assert not [name for name in sys.modules if name.startswith('phobos.explain')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
