"""`wgmma` that the emulator refuses or reports: forms, descriptors, warpgroups; what it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.emulator import EmulatorError, Profile, emulate
from phobos.emulator.profiling.classes import InstructionClass
from phobos.layout.shared import hardware_swizzle
from tests.support.warpgroup_kernels import PARTS, THREADS, Placement, ProductKernel

KERNEL = ProductKernel(16, steps=2)


def arguments(kernel: ProductKernel) -> list[np.ndarray]:
    """Arguments of a kernel, zeros."""
    a = kernel.a_fragments if kernel.a == "r" else kernel.a_place.image
    zeros = np.zeros((64, kernel.depth), np.float16)
    out = np.zeros((kernel.registers, THREADS), np.uint32)
    return [a(zeros), kernel.b_place.image(zeros[: kernel.columns]), out, out.copy()]


def launch(kernel: ProductKernel, text: str | None = None, block: int = THREADS, seed: int = 0):
    """Run a kernel on zeros."""
    emulate(
        text or kernel.text,
        "k",
        1,
        block,
        arguments(kernel),
        kernel.shared,
        seed=seed,
        name="k.ptx",
    )


# Forms -------------------------------------------------------------------------------------------

FORM = "m64n16k16.f32.f16.f16"
REGISTERS = "{%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}"
REFUSED = {
    "shape": (FORM, "m64n12k16.f32.f16.f16", "there is no shape with 12 columns for .f16"),
    "too_wide": (FORM, "m64n264k16.f32.f16.f16", "there is no shape with 264 columns"),
    "integer_shape": (FORM, "m64n40k32.s32.s8.s8", "there is no shape with 40 columns for .s8"),
    "depth": (FORM, "m64n16k8.f32.f16.f16", "has k16 on .f16, got k8"),
    "result": (FORM, "m64n16k16.f16.bf16.bf16", "cannot accumulate .bf16 in .f16"),
    "mix": (FORM, "m64n16k16.f32.f16.bf16", "cannot multiply .f16 by .bf16"),
    "bits": (FORM, "m64n16k256.s32.b1.b1.and.popc", "takes the form .sync.aligned.m64nNkK.D.A.B"),
    "saturation": (FORM, FORM + ".satfinite", "`.satfinite` is for integers"),
    "sparse": ("mma_async.sync", "mma_async.sp.sync", "sparse products are not supported"),
    "registers": (FORM, "m64n24k16.f32.f16.f16", "D takes 12 registers, got 8"),
    "sign": ("1, 1, 1, 0, 0;", "1, 2, 1, 0, 0;", "can be scaled by 1 and -1 only"),
    "transposition": ("1, 1, 1, 0, 0;", "1, 1, 1, 0, 2;", "a transposition is 0 or 1"),
    "operands": ("1, 1, 1, 0, 0;", "1, 1, 1, 0;", "takes 8 operands, got 7"),
    "factor": ("%da, %db, 1", "{%c0,%c1}, %db, 1", "takes 7 operands, got 8"),
    "wait": ("wait_group.sync.aligned 0", "wait_group.sync.aligned %t", "must be an integer"),
    "other": ("wgmma.fence.sync", "wgmma.frobnicate.sync", "is not supported in the emulator"),
    "fence": ("shared::cta;", "shared::all;", "takes .global, .shared::cta or .shared::cluster"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_forms_that_do_not_exist(name: str):
    old, new, message = REFUSED[name]
    assert old in KERNEL.text
    with pytest.raises(PhobosError) as caught:
        launch(KERNEL, KERNEL.text.replace(old, new))
    assert not isinstance(caught.value, EmulatorError)
    assert message in str(caught.value)
    assert str(caught.value).startswith("k.ptx:")


@pytest.mark.parametrize(
    ("target", "version", "types", "message"),
    [
        ("sm_90", "8.4", ("f32", "f16", "f16"), "it needs sm_90a"),
        ("sm_100a", "8.8", ("f32", "f16", "f16"), "it needs sm_90a"),
        ("sm_90a", "8.3", ("s32", "s8", "u8"), "needs .version 8.4"),
    ],
)
def test_chips_and_versions(target: str, version: str, types: tuple, message: str):
    text = replace(KERNEL, types=types).text.replace("sm_90a", target)
    with pytest.raises(PhobosError, match=message):
        launch(KERNEL, text.replace(".version 8.4", f".version {version}"))


def test_mixed_integers_are_newer():
    kernel = replace(KERNEL, types=("s32", "s8", "s8"))
    text = kernel.text.replace(".version 8.4", ".version 8.0")
    arrays = [np.zeros(kernel.shared, np.uint8) for _ in range(2)]
    out = np.zeros((kernel.registers, THREADS), np.uint32)
    emulate(text, "k", 1, THREADS, [*arrays, out, out.copy()], kernel.shared)


# Descriptors -------------------------------------------------------------------------------------

DESCRIPTORS = {
    "outside": ("add.u64 %db,%db,0x3000;", "out of bounds: ", "outside `tiles` of 10240 bytes"),
    "reserved": ("or.b64 %da,%da,0x4000;", "out of bounds: ", "sets bits that have no meaning"),
    "base": ("or.b64 %da,%da,0x2000000000000;", "out of bounds: ", "has the base offset 1"),
    "row": ("add.u64 %da,%da,8;", "misaligned: ", "starts at 0x80, in row 1 of a swizzle pattern"),
    "end": (
        "add.u64 %db,%db,7;",
        "misaligned: ",
        "starts at 0x2070, 112 bytes into a swizzled row",
    ),
}


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_wrong_descriptors(name: str):
    change, kind, message = DESCRIPTORS[name]
    kernel = replace(KERNEL, steps=1, texts=(("descriptors", change),))
    with pytest.raises(EmulatorError) as caught:
        launch(kernel)
    first = str(caught.value).splitlines()[0]
    assert f"error: {kind}kernel `k`, CTA (0, 0, 0), thread (0, 0, 0) " in first
    assert message in first


def test_rows_of_other_orders_start_at_their_beginning():
    kernel = ProductKernel(64, b="mn", texts=(("descriptors", "add.u64 %db,%db,1;"),))
    with pytest.raises(EmulatorError, match="16 bytes into a swizzled row of 128, too far for the"):
        launch(kernel)


def test_bytes_that_nothing_wrote():
    text = KERNEL.text.replace("st.shared.v4.b32 [%s+0]", "st.shared.v4.b32 [%s+2048]", 1)
    with pytest.raises(EmulatorError, match=r"uninitialised: .* reads 16 bytes at 0x0"):
        launch(KERNEL, text)


# Warpgroups --------------------------------------------------------------------------------------


def test_part_of_a_warpgroup():
    text = KERNEL.text.replace(".reqntid 128", ".reqntid 96")
    with pytest.raises(EmulatorError) as caught:
        launch(KERNEL, text, 96)
    assert "divergent: " in str(caught.value)
    assert "without warp 3 of its warpgroup" in str(caught.value)
    assert "help: a warpgroup is four whole warps of a CTA" in str(caught.value)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("first", "who"), [(64, "warp 2"), (5, "lane 5 of warp 0")])
def test_threads_that_exit_early(first: int, who: str, seed: int):
    line = f"setp.ge.u32 %p2,%t,{first}; @%p2 exit; {PARTS['fence']}"
    kernel = replace(KERNEL, texts=(("fence", line),))
    with pytest.raises(EmulatorError, match="divergent") as caught:
        launch(kernel, seed=seed)
    assert who in str(caught.value) or "lane 5" in str(caught.value)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_warp_that_goes_elsewhere(seed: int):
    line = f"setp.ge.u32 %p2,%t,96; @%p2 bra APART; {PARTS['fence']}"
    text = replace(KERNEL, texts=(("fence", line),)).text
    with pytest.raises(EmulatorError) as caught:
        launch(KERNEL, text.replace("ret; }", "ret;\nAPART: bar.sync 0; ret; }"), seed=seed)
    message = str(caught.value)
    assert "divergent" in message
    assert (
        "waits at `wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16` for threads of its"
        in message
    )
    assert "lane 0 of warp 3 is elsewhere" in message
    assert "other threads wait at this barrier" in message


def test_warps_that_come_by_different_ways():
    line = "setp.ge.u32 %p2,%t,96; @%p2 bra LONG; bra SHORT;\nLONG: add.u32 %x0,%t,1;\nSHORT: "
    line += PARTS["fence"]
    for seed in range(4):
        launch(replace(KERNEL, texts=(("fence", line),)), seed=seed)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("setp.lt.u32 %p2,%t,32; @%p2 add.u64 %da,%da,2;", "another descriptor of A"),
        ("setp.eq.u32 %p2,%t,7; @%p2 add.u64 %db,%db,2;", "another descriptor of B"),
        ("setp.eq.u32 %p0,%t,7;", "another scale-d"),
    ],
)
def test_operands_that_differ_within_a_warpgroup(line: str, what: str):
    kernel = replace(KERNEL, steps=1, scale_d="%p0", texts=(("descriptors", line),))
    with pytest.raises(EmulatorError, match="divergent") as caught:
        launch(kernel)
    assert f"{what} than the first thread of its warpgroup" in str(caught.value)


# Many at once ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_warpgroups_of_several_ctas(seed: int):
    kernel = ProductKernel(24, steps=2, a="mn", groups=3)
    generator = np.random.default_rng(5)
    a, b = kernel.operands(generator)
    c = kernel.addend(generator)

    def run(*arguments: Any) -> None:
        emulate(*arguments, checks="all", seed=seed)

    for found in kernel.run_many(run, a, b, c, 5):
        np.testing.assert_array_equal(found, kernel.expected(a, b, c))


def test_a_profile_counts_operands_once_a_warpgroup():
    profile = Profile()
    kernel = replace(KERNEL, steps=1)
    emulate(kernel.text, "k", 1, THREADS, arguments(kernel), kernel.shared, profile=profile)
    line = next(line for line in profile.lines if line.classes[InstructionClass.TENSOR])
    assert line.classes[InstructionClass.TENSOR] == 4
    assert line.shared_requests == 2
    assert line.passes == line.ideal_passes == (64 + 16) * 32 // 128


# The layout algebra ------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [128, 64, 32])
@pytest.mark.parametrize("is_k_major", [True, False])
def test_placements_are_the_hardware_swizzles(width: int, is_k_major: bool):
    """What the kernels of these tests use is what the compiler lays out."""
    placement = Placement(64, 128, 2, width, is_k_major)
    layout = hardware_swizzle((64, 128), 2, width, transposed=not is_k_major)
    row, k = np.arange(64)[:, None], np.arange(128)
    offset = placement.offset(row, k) // 2
    for r, c in ((0, 0), (1, 5), (17, 64), (63, 127), (9, 33)):
        assert layout.apply(offset=int(offset[r, c])) == (r, c)
