"""Bulk copies and the mbarriers that count them: boxes, swizzles, borders, stages, stores."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.emulator import EmulatorError, Profile, TensorMapArgument, emulate
from phobos.targets.ptx.assembler import assemble
from tests.support.ptxas import needs_ptxas
from tests.support.tensor_copy_kernels import LOAD_BOX, STORE_BOX, module

SEEDS = pytest.mark.parametrize("seed", range(4))


MAP = "mov.b64 %d0,x_map_0; cvta.param.u64 %d0,%d0;"
WAIT = "W: mbarrier.try_wait.parity.shared::cta.b64 %p1,[%r2],0; @!%p1 bra W;"


def copied_out(size: int) -> str:
    """Every thread stores 16 bytes in turn of the first `size` of shared memory to `out`."""
    return f"""ld.param.u64 %d1,[out]; mov.u32 %r4,%r0;
OUT: shl.b32 %r5,%r4,4; setp.ge.u32 %p2,%r5,{size}; @%p2 bra DONE;
add.u32 %r6,%r1,%r5; ld.shared.v4.b32 {{%r7,%r8,%r9,%r10}},[%r6];
mul.wide.u32 %d2,%r4,16; add.u64 %d2,%d1,%d2; st.global.v4.b32 [%d2],{{%r7,%r8,%r9,%r10}};
add.u32 %r4,%r4,64; bra OUT;"""


def load_kernel(box: tuple[int, ...], item: int) -> str:
    """Loads one box at coordinates `c` and stores it as it lies in shared memory."""
    rank, size = len(box), int(np.prod(box)) * item
    names = [f"%r{20 + axis}" for axis in range(rank)]
    loads = " ".join(f"ld.param.s32 {name},[c+{4 * i}];" for i, name in enumerate(names))
    parameters = ".param .align 64 .b8 x_map_0[128],.param .u64 out,.param .align 4 .b8 c[20]"
    return module(
        parameters,
        f"""{MAP} {loads}
@%p0 bra W;
mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r2],{size};
{LOAD_BOX.format(rank=rank)} [%r1],[%d0,{{{",".join(names)}}}],[%r2];
{WAIT}
{copied_out(size)}""",
    )


def loaded(
    x: np.ndarray, kind: str, box: tuple[int, ...], start: tuple[int, ...], swizzle: int, seed: int
) -> np.ndarray:
    """What lies in shared memory after the load of a box, outermost axis first."""
    out = np.zeros(int(np.prod(box)) * x.itemsize, np.uint8)
    coordinates = np.zeros(5, np.int32)
    coordinates[: len(box)] = start[::-1]
    argument = TensorMapArgument(x, kind, box, swizzle)
    arguments: list[Any] = [argument, out, coordinates.tobytes()]
    text = load_kernel(box, x.itemsize)
    emulate(text, "k", 1, 64, arguments, 32768, "all", seed, name="k.ptx")
    return out


def box_of(x: np.ndarray, box: tuple[int, ...], start: tuple[int, ...]) -> np.ndarray:
    """A box of a tensor, zero outside."""
    found = np.zeros(box, x.dtype)
    for place in np.ndindex(*box):
        at = tuple(s + p for s, p in zip(start, place, strict=True))
        if all(0 <= a < extent for a, extent in zip(at, x.shape, strict=True)):
            found[place] = x[at]
    return found


def swizzled(box: np.ndarray, swizzle: int) -> np.ndarray:
    """The bytes of a box as they lie from address 0."""
    flat = np.ascontiguousarray(box).reshape(-1).view(np.uint8)
    found = np.empty_like(flat)
    for at in range(0, len(flat), 16):
        to = at ^ (((at >> 7) & {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]) << 4)
        found[to : to + 16] = flat[at : at + 16]
    return found


BOXES = {
    "1d": ("f32", (100,), (40,), (12,), 0),
    "2d": ("f16", (50, 64), (16, 64), (3, 0), 128),
    "2d_64": ("bf16", (50, 96), (16, 32), (8, 24), 64),
    "2d_32": ("u8", (50, 96), (24, 32), (8, 16), 32),
    "2d_plain": ("i32", (50, 24), (5, 12), (8, 8), 0),
    "2d_before": ("f16", (50, 64), (16, 64), (-3, -8), 128),
    "2d_behind": ("f16", (50, 72), (16, 64), (40, 40), 128),
    "2d_outside": ("f16", (50, 72), (16, 64), (50, 0), 128),
    "3d": ("f32", (5, 6, 40), (2, 3, 32), (1, 2, 4), 128),
    "3d_around": ("f64", (3, 2, 8), (4, 4, 16), (-1, -1, -4), 128),
    "4d": ("f16", (3, 2, 4, 16), (2, 2, 2, 16), (1, 1, 3, 0), 32),
    "5d": ("i16", (2, 3, 2, 4, 16), (2, 1, 2, 2, 16), (0, 1, 1, 3, 8), 0),
}
DTYPES: dict[str, Any] = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16,
    "u8": np.uint8, "i16": np.int16, "i32": np.int32,
}  # fmt: skip


@pytest.mark.parametrize("name", BOXES)
def test_a_box_arrives(name: str):
    kind, shape, box, start, swizzle = BOXES[name]
    x = np.random.default_rng(2).integers(0, 200, shape).astype(DTYPES[kind])
    wanted = swizzled(box_of(x, box, start), swizzle)
    for seed in (0, 1, 2):
        found = loaded(x, kind, box, start, swizzle, seed)
        np.testing.assert_array_equal(found, wanted)


def test_tf32_is_rounded_on_the_way():
    x = np.linspace(1, 2, 64, dtype=np.float32).reshape(4, 16)
    found = loaded(x, "tf32", (4, 16), (0, 0), 0, 0).view(np.float32).reshape(4, 16)
    assert (found != x).any()
    assert (found.view(np.uint32) & 0x1FFF == 0).all()
    assert np.abs(found - x).max() <= 2.0**-11


LOADING = load_kernel((32, 32), 4)
ISSUE = next(line for line in LOADING.splitlines() if line.startswith("cp.async.bulk.tensor"))


@needs_ptxas
@pytest.mark.parametrize("rank", range(1, 6))
def test_loads_assemble(rank: int):
    assert assemble(
        load_kernel((16,) * rank if rank == 1 else (2,) * (rank - 1) + (16,), 2), "sm_90"
    )


# Blocks and stores -------------------------------------------------------------------------------

BLOCK = module(
    ".param .u64 x,.param .u64 out",
    f"""ld.param.u64 %d0,[x]; cvta.to.global.u64 %d0,%d0;
@%p0 bra W;
mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r2],1024;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1],[%d0+16],512,[%r2];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+512],[%d0],512,[%r2];
{WAIT}
{copied_out(1024)}""",
)


@SEEDS
def test_blocks(seed: int):
    x, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    emulate(BLOCK, "k", 1, 64, [x, out], 32768, "all", seed)
    np.testing.assert_array_equal(out, np.concatenate((x[4:132], x[:128])))


COMMIT = "cp.async.bulk.commit_group;"
STORING = module(
    ".param .align 64 .b8 x_map_0[128]",
    f"""{MAP} shl.b32 %r3,%r0,4; add.u32 %r3,%r1,%r3; mov.u32 %r4,0;
FILL: mad.lo.u32 %r5,%r4,1024,%r3; mad.lo.u32 %r6,%r4,64,%r0; shl.b32 %r6,%r6,2;
add.u32 %r7,%r6,1; add.u32 %r8,%r6,2; add.u32 %r9,%r6,3;
st.shared.v4.b32 [%r5],{{%r6,%r7,%r8,%r9}};
add.u32 %r4,%r4,1; setp.lt.u32 %p1,%r4,2; @%p1 bra FILL;
fence.proxy.async.shared::cta; bar.sync 0;
@%p0 bra DONE;
mov.u32 %r10,4; mov.u32 %r11,6;
{STORE_BOX.format(rank=2)} [%d0,{{%r10,%r11}}],[%r1];
{COMMIT} cp.async.bulk.wait_group 0;""",
)


@SEEDS
@pytest.mark.parametrize("swizzle", [0, 128])
def test_stores_are_clipped(swizzle: int, seed: int):
    x = np.full((12, 20), 7, np.uint32)
    argument = TensorMapArgument(x, "u32", (16, 32), swizzle)
    emulate(STORING, "k", 1, 64, [argument], 32768, "all", seed)
    raw = np.arange(512, dtype=np.uint32)
    box = swizzled(raw, swizzle).view(np.uint32).reshape(16, 32)
    wanted = np.full((12, 20), 7, np.uint32)
    wanted[6:12, 4:] = box[:6, :16]
    np.testing.assert_array_equal(x, wanted)


@pytest.mark.parametrize(("row", "column"), [(6, -4), (-2, 0)])
def test_stores_do_not_start_in_front(row: int, column: int):
    text = STORING.replace("%r10,4; mov.u32 %r11,6", f"%r10,{column}; mov.u32 %r11,{row}")
    argument = TensorMapArgument(np.zeros((12, 20), np.uint32), "u32", (16, 32), 0)
    with pytest.raises(EmulatorError) as caught:
        emulate(text, "k", 1, 64, [argument], 32768)
    message = f"stores a box that starts in front of the tensor, at ({row}, {column})"
    assert message in str(caught.value)


@needs_ptxas
@pytest.mark.parametrize("text", [BLOCK, STORING])
def test_kernels_assemble(text: str):
    assert assemble(text, "sm_90").warnings == ()


HINTS = """prefetch.tensormap [%d0]; cp.async.bulk.prefetch.tensor.2d.L2.global [%d0,{%r0,%r0}];
cp.async.bulk.prefetch.L2.global [%d0],64; fence.proxy.async; fence.proxy.async.global;"""


def test_hints_change_nothing():
    x, out = np.ones((32, 32), np.float32), np.zeros(1024, np.float32)
    arguments: list[Any] = [TensorMapArgument(x, "f32", (32, 32)), out, bytes(20)]
    text = LOADING.replace("@%p0 bra W;", f"{HINTS} @%p0 bra W;")
    emulate(text, "k", 1, 64, arguments, 32768, "all")
    assert (out == 1).all()


# Faults ------------------------------------------------------------------------------------------

FAULTS = {
    "read_too_early": (
        LOADING.replace(WAIT, "W:"),
        "race|uninitialised",
        "reads 16 bytes at 0x[0-9a-f]+, in shared memory, (while an asynchronous copy|which noth)",
        "the copy was issued by thread (0, 0, 0) here",
    ),
    "written_in_flight": (
        LOADING.replace("W: mb", "st.shared.u32 [%r1+8],%r0;\nW: mb"),
        "race",
        "writes 4 bytes at 0x8, in shared memory, while an asynchronous copy to it was not",
        "the copy was issued by thread (0, 0, 0) here",
    ),
    "loaded_in_flight": (
        LOADING.replace("W: mb", "W0: @%p0 bra W;\n{ISSUE}\nW: mb").replace("{ISSUE}", ISSUE),
        "race",
        "(copies to|reads) 16 bytes at 0x.*, in shared memory, while an asynchronous copy to it",
        "issued",
    ),
    "never_waited_for": (
        LOADING.replace(WAIT, "W: bra DONE;"),
        "race",
        "copies to shared memory, and its CTA ended without waiting for the copy",
        "cp.async.bulk",
    ),
    "target_misaligned": (
        LOADING.replace("[%r1],[%d0", "[%r1+64],[%d0"),
        "misaligned",
        "copies to shared memory at 0x40, which is no multiple of 128",
        "cp.async.bulk",
    ),
    "target_too_small": (
        LOADING.replace("[%r1],[%d0", "[%r1+30720],[%d0"),
        "out of bounds",
        "copies to 4096 bytes at 0x7800, outside `s` of 32768 bytes in shared memory",
        "cp.async.bulk",
    ),
    "over_an_mbarrier": (
        LOADING.replace("[%r1],[%d0", "[%r1+27648],[%d0"),
        "mbarrier",
        "copies to 16 bytes at 0x7800, in shared memory, where an mbarrier is in use until",
        "cp.async.bulk",
    ),
    "no_mbarrier": (
        LOADING.replace("],[%r2];\n", "],[%r2+16];\n"),
        "uninitialised",
        "counts bytes at the mbarrier at 0x7810, which nothing initialised",
        "cp.async.bulk",
    ),
    "no_map": (
        LOADING.replace("cvta.param.u64 %d0,%d0;", "ld.param.u64 %d0,[out];"),
        "out of bounds",
        "copies a box of 2 axes, but what lies at 0x[0-9a-f]+ is no tensor map",
        "pass a `TensorMapArgument` for the parameter",
    ),
    "stored_over": (
        STORING.replace(COMMIT, f"{COMMIT} st.shared.u32 [%r1+8],%r0;"),
        "race",
        "writes 4 bytes at 0x8, in shared memory, which a bulk copy still reads",
        "the copy was issued here",
    ),
    "store_not_waited_for": (
        STORING.replace("cp.async.bulk.wait_group 0;", ""),
        "race",
        "copies from shared memory, and its CTA ended without waiting for the copy",
        "cp.async.bulk",
    ),
    "store_of_nothing": (
        STORING.replace("st.shared.v4.b32 [%r5]", "st.shared.v4.b32 [%r5+2048]"),
        "uninitialised",
        "copies from 16 bytes at 0x0, in shared memory, which nothing wrote before",
        "cp.async.bulk",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
@SEEDS
def test_faults(name: str, seed: int):
    text, kinds, message, elsewhere = FAULTS[name]
    x, out = np.zeros((32, 64), np.uint32), np.zeros(1024, np.uint32)
    arguments: list[Any] = [TensorMapArgument(x, "u32", (32, 32), 128), out, bytes(20)]
    if text.count(".param") < 4:
        arguments = [TensorMapArgument(x, "u32", (16, 32), 128)]
    with pytest.raises(EmulatorError) as caught:
        emulate(text, "k", 1, 64, arguments, 32768, ("async", "init"), seed, name="k.ptx")
    first, *rest = str(caught.value).splitlines()
    found = rf"k\.ptx:\d+:\d+: error: ({kinds}): kernel `k`, CTA \(0, 0, 0\), thread \(.*{message}"
    assert re.match(found, first), first
    assert elsewhere in "\n".join(rest) or ("uninitialised" in kinds and "which nothing" in first)


SECOND = f"mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r2],4096;\n{ISSUE}"
AGAIN = LOADING.replace(
    "ld.param.u64 %d1,[out];",
    f"""ld.shared.u32 %r30,[%r1+512]; <<>> @%p0 bra W1; fence.proxy.async.shared::cta;
{SECOND} W1: mbarrier.try_wait.parity.shared::cta.b64 %p1,[%r2],1; @!%p1 bra W1;
ld.param.u64 %d1,[out];""",
)
"""Loads twice into the same place; every thread reads in between."""

BEFORE = LOADING.replace(
    "mbarrier.arrive.expect",
    "mov.u32 %r30,1; st.shared.u32 [%r1+512],%r30; <<>>\nmbarrier.arrive.expect",
    1,
)
"""Thread 0 stores where it loads then."""

RACES = {
    "not_all_wait": (
        LOADING.replace("W: mb", "W0: setp.ge.u32 %p3,%r0,32; @%p3 bra GO; W: mb")
        .replace("@%p0 bra W;", "@%p0 bra W0;")
        .replace("ld.param.u64 %d1,[out];", "GO: <<>> ld.param.u64 %d1,[out];"),
        "bar.sync 0;",
        "(reads|copies to) 0x[0-9a-f]+ in shared memory, which thread .* with nothing to order",
    ),
    "loaded_over_what_is_read": (
        AGAIN,
        "bar.sync 0;",
        "copies to 0x200 in shared memory, which thread .* reads with nothing to order the two",
    ),
    "loaded_over_what_was_stored": (
        BEFORE,
        "fence.proxy.async.shared::cta;",
        "copies to 0x200 in shared memory through the asynchronous proxy, which thread (0, 0, 0) "
        "wrote without a `fence.proxy.async` behind it",
    ),
    "stored_without_a_fence": (
        STORING.replace("fence.proxy.async.shared::cta;", "<<>>"),
        "fence.proxy.async.shared::cta;",
        "copies from 0x[0-9a-f]+ in shared memory through the asynchronous proxy, which thread",
    ),
    "stored_without_a_barrier": (
        STORING.replace("bar.sync 0;\n@%p0 bra DONE", "<<>> @%p0 bra DONE"),
        "bar.sync 0;",
        "copies from 0x[0-9a-f]+ in shared memory, which thread .* writes with nothing to order",
    ),
    "written_after_a_store": (
        STORING.replace("@%p0 bra DONE;\nmov", "@%p0 bra OVER;\nmov").replace(
            "cp.async.bulk.wait_group 0;",
            "cp.async.bulk.wait_group 0; OVER: <<>> st.shared.u32 [%r3],%r0;",
        ),
        "bar.sync 0;",
        "(writes|copies from) 0x[0-9a-f]+ in shared memory, which thread .* with nothing to order",
    ),
    "mbarrier_without_a_fence": (
        LOADING.replace("fence.mbarrier_init.release.cluster;", "<<>>"),
        "fence.mbarrier_init.release.cluster;",
        "copies with an mbarrier that thread (0, 0, 0) initialised without a fence behind it",
    ),
    "global_memory_without_a_barrier": (
        BLOCK.replace(
            "@%p0 bra W;\nmb",
            "mul.wide.u32 %d3,%r0,4; add.u64 %d3,%d3,%d0; st.global.u32 [%d3],%r0;\n<<>>"
            "@%p0 bra W;\nmb",
        ),
        "bar.sync 0;",
        "copies from byte .* of `x`, which thread .* writes with nothing to order the two",
    ),
}


@pytest.mark.parametrize("name", RACES)
@SEEDS
def test_races(name: str, seed: int):
    text, order, message = RACES[name]
    assert "<<>>" in text
    x, out = np.zeros((32, 64), np.uint32), np.zeros(1024, np.uint32)
    arguments: list[Any] = [TensorMapArgument(x, "u32", (32, 32), 128), out, bytes(20)]
    if "c[20]" not in text:
        arguments = [TensorMapArgument(x, "u32", (16, 32), 128)]
    if text.startswith(BLOCK[:200]):
        arguments = [x, out]

    def launch(between: str) -> None:
        whole = text.replace("<<>>", between)
        emulate(whole, "k", 1, 64, arguments, 32768, "race", seed, name="k.ptx")

    with pytest.raises(EmulatorError) as caught:
        launch("")
    first = str(caught.value).splitlines()[0]
    wanted = re.sub(r"\(0, 0, 0\)", r"\\(0, 0, 0\\)", message)
    assert re.search(rf"error: race: kernel `k`, CTA \(0, 0, 0\), thread \(.*{wanted}", first), (
        first
    )
    launch(order)


@pytest.mark.parametrize(("kind", "column"), [("u8", 24), ("f16", -4), ("f32", 1)])
def test_boxes_start_at_whole_16_bytes(kind: str, column: int):
    x = np.zeros((50, 64), DTYPES[kind])
    with pytest.raises(EmulatorError) as caught:
        loaded(x, kind, (16, 32), (0, column), 0, 0)
    assert caught.value.finding.kind == "misaligned"
    assert f"copies a box whose rows start at element {column}, byte " in str(caught.value)


def test_the_source_of_a_block_must_be_inside():
    x, out = np.arange(120, dtype=np.uint32), np.zeros(256, np.uint32)
    with pytest.raises(EmulatorError) as caught:
        emulate(BLOCK, "k", 1, 64, [x, out], 32768)
    assert "copies from 512 bytes at" in str(caught.value)
    assert "48 bytes past the end of `x` of 480 bytes" in str(caught.value)


def test_sizes_are_multiples_of_16():
    x, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    with pytest.raises(EmulatorError) as caught:
        emulate(BLOCK.replace("],512,", "],520,"), "k", 1, 64, [x, out], 32768)
    assert "copies with the size 0x208, which is no multiple of 16" in str(caught.value)


def test_arrays_that_nothing_wrote_are_not_copied():
    x, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    with pytest.raises(EmulatorError) as caught:
        emulate(BLOCK, "k", 1, 64, [x, out], 32768, uninitialised=[0])
    assert "in global memory, part of which nothing wrote before" in str(caught.value)


def test_chips_without_bulk_copies_refuse_them():
    text = BLOCK.replace("sm_90", "sm_89").replace("fence.mbarrier_init.release.cluster;", "")
    x, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    with pytest.raises(PhobosError, match="does not exist on sm_89; it needs sm_90 or newer"):
        emulate(text, "k", 1, 64, [x, out], 32768)


# Stages ------------------------------------------------------------------------------------------

STAGES = 4


def ring_kernel(turns: int) -> str:
    """Warp 0 loads boxes of 8 x 64 f16 into four stages, both warps add them up in f32."""
    return module(
        ".param .align 64 .b8 x_map_0[128],.param .u64 out",
        f"""{MAP} mov.u32 %r3,%r2;
@%p0 bra MADE;
mov.u32 %r4,0;
MAKE: shl.b32 %r5,%r4,3; add.u32 %r5,%r5,%r2;
mbarrier.init.shared::cta.b64 [%r5+64],1; mbarrier.init.shared::cta.b64 [%r5+96],2;
add.u32 %r4,%r4,1; setp.lt.u32 %p1,%r4,{STAGES}; @%p1 bra MAKE;
fence.mbarrier_init.release.cluster;
MADE: bar.sync 0;
mov.b32 %r20,0; mov.u32 %r6,0; mov.u32 %r7,0; mov.u32 %r8,0; mov.u32 %r9,1;
shl.b32 %r10,%r0,1; setp.ge.u32 %p3,%r0,32;
// r6: next load, r7: turn, r8: its parity, r9: parity of the empty stage
TURN: @%p3 bra USE;
FILL: setp.ge.u32 %p1,%r6,{turns}; @%p1 bra USE;
add.u32 %r11,%r7,{STAGES}; setp.ge.u32 %p1,%r6,%r11; @%p1 bra USE;
and.b32 %r12,%r6,{STAGES - 1}; shl.b32 %r13,%r12,3; add.u32 %r13,%r13,%r2;
shr.u32 %r14,%r6,2; and.b32 %r14,%r14,1; xor.b32 %r14,%r14,1;
EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %p1,[%r13+96],%r14; @!%p1 bra EMPTY;
elect.sync _|%p2,-1; @!%p2 bra ISSUED;
mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r13+64],1024;
shl.b32 %r15,%r12,10; add.u32 %r15,%r15,%r1; shl.b32 %r16,%r6,3;
mov.u32 %r17,0; add.u32 %r18,%r13,64;
{LOAD_BOX.format(rank=2)} [%r15],[%d0,{{%r17,%r16}}],[%r18];
ISSUED: add.u32 %r6,%r6,1; bra FILL;
USE: and.b32 %r12,%r7,{STAGES - 1}; shl.b32 %r13,%r12,3; add.u32 %r13,%r13,%r2;
shr.u32 %r14,%r7,2; and.b32 %r14,%r14,1;
FULL: mbarrier.try_wait.parity.shared::cta.b64 %p1,[%r13+64],%r14; @!%p1 bra FULL;
shl.b32 %r15,%r12,10; add.u32 %r15,%r15,%r1; add.u32 %r15,%r15,%r10; mov.u32 %r16,0;
ADD: shl.b32 %r17,%r16,7; add.u32 %r17,%r17,%r15; ld.shared.b16 %h0,[%r17]; cvt.f32.f16 %r18,%h0;
add.f32 %r20,%r20,%r18; add.u32 %r16,%r16,1; setp.lt.u32 %p1,%r16,8; @%p1 bra ADD;
bar.warp.sync -1;
elect.sync _|%p2,-1; @%p2 mbarrier.arrive.shared::cta.b64 _,[%r13+96];
add.u32 %r7,%r7,1; setp.lt.u32 %p1,%r7,{turns}; @%p1 bra TURN;
ld.param.u64 %d1,[out]; mov.u32 %r4,%ctaid.x; mad.lo.u32 %r4,%r4,64,%r0; mul.wide.u32 %d2,%r4,4;
add.u64 %d1,%d1,%d2; st.global.b32 [%d1],%r20;""",
    )


@pytest.mark.parametrize("seed", range(8))
def test_a_ring_of_stages(seed: int):
    x = np.random.default_rng(5).integers(-9, 9, (88, 64)).astype(np.float16)
    out = np.zeros((3, 64), np.float32)
    arguments = [TensorMapArgument(x, "f16", (8, 64)), out]
    emulate(ring_kernel(11), "k", 3, 64, arguments, 32768, "all", seed, name="k.ptx")
    np.testing.assert_array_equal(out, np.tile(x.astype(np.float32).sum(axis=0), (3, 1)))


@needs_ptxas
def test_the_ring_assembles():
    assert assemble(ring_kernel(11), "sm_90").warnings == ()


# Profile -----------------------------------------------------------------------------------------


def test_copies_count_with_full_efficiency():
    x, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    profile = Profile()
    emulate(BLOCK, "k", 1, 64, [x, out], 32768, profile=profile)
    copies = [line for line in profile.lines if line.global_requests and line.shared_requests]
    found = [(line.sectors, line.global_efficiency, line.passes) for line in copies[:2]]
    assert found == [(16, 1.0, 4), (16, 1.0, 4)]
