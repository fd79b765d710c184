"""What explanations say of tensor copies: against PTX, contract and the emulator's counts."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import phobos
from phobos.driver.compilation import Compilation, compile_text
from phobos.driver.options import make_options
from phobos.emulator import Profile
from phobos.explain.data import explanation_json
from phobos.explain.records import Explanation, Kernel
from phobos.explain.text import explanation_text
from phobos.runtime.emulator_device import EmulatorDevice

INSTRUCTION = re.compile(r"^\s+(cp\.async\.bulk\.tensor\.\S+)", re.M)
pytestmark = pytest.mark.filterwarnings("ignore:.*keeps \\d+ registers:phobos.PhobosWarning")


def explained(
    text: str,
    *,
    chip: str = "sm_90a",
    extent_multiple: int = 16,
    tensor_maps: bool = True,
    constants: dict[str, int] | None = None,
) -> tuple[Compilation, Explanation]:
    options = make_options(
        chip=chip,
        extent_multiple=extent_multiple,
        tensor_maps=tensor_maps,
        constants=constants,
    )
    compilation = compile_text(text, "program.ph", options, explain=True)
    assert compilation.explanation is not None
    return compilation, compilation.explanation


def kernel_of(explanation: Explanation) -> Kernel:
    (kernel,) = explanation.kernels
    return kernel


@pytest.mark.parametrize("name", ["gemm_fp16tc_fp32acc", "gemm_tf32", "attention_fp16"])
def test_copies_are_told_as_the_code_has_them(name: str) -> None:
    compilation, explanation = explained(phobos.kernels.path(name).read_text())
    kernel = kernel_of(explanation)
    copies = [one for one in kernel.accesses if one.boxes is not None]
    found = INSTRUCTION.findall(compilation.ptx)
    assert sum(one.count for one in copies) == len(found)
    assert {one.instruction for one in copies} == set(found)
    told = {(one.boxes.tensor, one.boxes.element, one.boxes.shape) for one in copies if one.boxes}
    assert told == {(one.tensor, one.type, one.box) for one in kernel.tensor_maps}
    # Each stage of a buffer has the bytes that its copies are said to bring.
    stages = {one.place: one.bytes // one.stages for one in kernel.shared.tiles}
    assert all(stages[one.place] == one.boxes.bytes for one in copies if one.boxes)
    assert kernel.waits == compilation.ptx.count("mbarrier.try_wait")
    assert kernel.barriers == compilation.ptx.count("bar.sync")
    # What copies bring is compared with nothing.
    assert not {one.place for one in kernel.masks} & {one.place for one in copies}
    assert {one.tensor for one in kernel.masks} <= {"C", "Q", "O"}


def test_a_ring_is_told_in_barriers() -> None:
    text = phobos.kernels.path("gemm_fp16tc_fp32acc").read_text()
    _, explanation = explained(text)
    ring = kernel_of(explanation).shared.tiles[-1]
    assert (ring.element, ring.shape, ring.stages, ring.bytes) == ("mbarrier", (2,), 5, 80)
    said = " ".join(explanation_text(explanation).split())
    assert "tells which stages are full and which empty; 2 mbarriers for each of 5 stages" in said


KERNEL = """\
@launch(128)
@dynshared
{attributes}kernel k(
  A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N], F: tensor<i32>[X]
) {{
  var acc: tile<f32>[64, 64] = 0.0
  {before}
  for k in range(0, K, 32) {{
    acc += dot({a}, {b})
  }}
  C[0 :+ 64, 0 :+ 64] = acc
}}
"""
A, B = "A[0 :+ 64, k :+ 32]", "B[k :+ 32, 0 :+ 64]"


def program(*, a: str = A, b: str = B, before: str = "", attributes: str = "") -> str:
    return KERNEL.format(a=a, b=b, before=before, attributes=attributes)


def test_the_emulator_counts_what_is_told() -> None:
    """Four steps, in three stages; the box of B is as wide as its tile."""
    text = program(attributes="@pipeline(3)\n")
    (one, other) = (
        access.boxes
        for access in kernel_of(explained(text)[1]).accesses
        if access.boxes is not None
    )
    a, b = np.ones((64, 128), np.float16), np.ones((128, 64), np.float16)
    c, unused = np.zeros((64, 64), np.float32), np.zeros(16, np.int32)
    module = phobos.compile(
        text, chip="sm_90a", extent_multiple=16, tensor_maps=True, name="program.ph", cache=False
    )
    profile = Profile()
    module["k"](a, b, c, unused, grid=1, device=EmulatorDevice(profile=profile))
    counts = [one for one in profile.lines if one.location.line == 10 and one.global_requests]
    assert sum(line.global_requests for line in counts) == 4 * (one.count + other.count)
    assert sum(line.sectors for line in counts) * 32 == 4 * (one.bytes + other.bytes)
    assert (one.count * 64 * 32, other.count * 32 * 64) == (one.bytes // 2, other.bytes // 2)


OBSTACLES = {
    "rows": (program(), "begin at multiples of 8, since K is only known to be a multiple of 4"),
    "written": (program(before="A[0 :+ 64, 0 :+ 32] = 1.0"), "the kernel writes A"),
    "computed": (program(a=f"{A} + 1"), "what is loaded of A does not go straight to a product"),
    "mma": (program(attributes="@tensorcore(sync)\n"), "made for products by wgmma alone"),
    "acquire": (program(before="let n = load_acquire(F, 0)"), "`load_acquire`"),
    "pad": (program(b=f"pad({B}, 1)"), "zeros past the end of B, where `pad` asks for others"),
    "extent": (
        program(a="A[0 :+ 64, k :+ 48]", b="B[k :+ 48, 0 :+ 64]").replace("K, 32", "K, 48"),
        "a tile of 64 x 48 of A has an extent that is no power of two",
    ),
    "room": (
        program(attributes="@pipeline(3)\n", a="A[0 :+ 64, k :+ 64]", b="B[k :+ 64, 0 :+ 64]")
        .replace("K, 32", "K, 64").replace("@dynshared", ""),
        "the stages and their barriers do not fit the shared memory",
    ),
}  # fmt: skip
"""Programs that tensor copies cannot feed, and what is said of it."""


@pytest.mark.parametrize("name", OBSTACLES)
def test_what_keeps_tensor_copies_away(name: str) -> None:
    text, said = OBSTACLES[name]
    compilation, explanation = explained(text, extent_multiple=4 if name == "rows" else 16)
    assert not INSTRUCTION.search(compilation.ptx)
    (product,) = kernel_of(explanation).contractions
    assert product.pipelining is not None
    assert product.pipelining.no_tensor_copies is not None
    assert said in product.pipelining.no_tensor_copies
    assert f"no tensor copies: {product.pipelining.no_tensor_copies}" in " ".join(
        explanation_text(explanation).split()
    )
    found = json.loads(explanation_json(explanation))["kernels"][0]["contractions"][0]
    assert found["pipelining"]["no_tensor_copies"] == product.pipelining.no_tensor_copies


@pytest.mark.parametrize(
    ("chip", "tensor_maps", "multiple", "said"),
    [
        ("sm_90a", True, 8, None),
        ("sm_90a", False, 8, "the launch brings no tensor maps, without `--tensor-maps`"),
        ("sm_90a", False, 4, "`--tensor-maps`; and they want rows of whole 16 bytes"),
        ("sm_90", True, 8, "they are made for products by wgmma alone"),
        ("sm_90", False, 8, None),
        ("sm_80", True, 8, None),
    ],
)
def test_what_would_bring_tensor_copies(
    chip: str, tensor_maps: bool, multiple: int, said: str | None
) -> None:
    """Options help where nothing else is in the way."""
    compilation, explanation = explained(
        program(), chip=chip, tensor_maps=tensor_maps, extent_multiple=multiple
    )
    (product,) = kernel_of(explanation).contractions
    assert product.pipelining is not None
    words = product.pipelining.no_tensor_copies
    assert words == said or (said is not None and words is not None and said in words)
    copied = chip == "sm_90a" and tensor_maps
    assert (INSTRUCTION.search(compilation.ptx) is not None) == copied


def test_the_extent_multiple_that_is_named_is_enough() -> None:
    """Bytes want 16 of them, and a promise for K alone suffices for B."""
    text = program().replace("f16", "f8e5m2").replace("K, N", "N, K")
    text = text.replace(B, "B[0 :+ 64, k :+ 32]").replace("dot(", "dot_t(")
    (product,) = kernel_of(explained(text, extent_multiple=4)[1]).contractions
    assert product.pipelining is not None
    assert "`--extent-multiple K=16`" in (product.pipelining.no_tensor_copies or "")
    options = make_options(
        chip="sm_90a", extent_multiple=4, extent_multiples={"K": 16}, tensor_maps=True
    )
    assert INSTRUCTION.search(compile_text(text, "program.ph", options).ptx)
