"""What the emulator reports about `wgmma`: registers in flight, fences, races, wrong operands."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from phobos.emulator import EmulatorError, emulate
from tests.support.warpgroup_kernels import THREADS, ProductKernel

KERNEL = ProductKernel(16, steps=2)
A_REGISTERS = ProductKernel(16, steps=2, a="r")
ZERO = "mov.b32 %x0,0;"
CLEAR = f"{ZERO} st.shared.v4.b32 [%s],{{%x0,%x0,%x0,%x0}};"
WAIT = "wgmma.wait_group.sync.aligned 0;"


def with_parts(kernel: ProductKernel, **parts: str) -> ProductKernel:
    """The kernel with parts of its text replaced; underscores in names stand for blanks."""
    return replace(
        kernel, texts=tuple((name.replace("_", " "), text) for name, text in parts.items())
    )


def run(kernel: ProductKernel, checks: str = "all", seed: int = 0) -> bool:
    """Run a kernel; whether its result is right."""
    generator = np.random.default_rng(3)
    a, b = kernel.operands(generator)
    c = kernel.addend(generator)

    def launch(text: str, name: str, grid: int, block: int, arrays: list, shared: int) -> None:
        emulate(text, name, grid, block, arrays, shared, checks, seed, name="k.ptx")

    return bool((kernel.run(launch, a, b, c) == kernel.expected(a, b, c)).all())


def finding(kernel: ProductKernel, checks: str = "all", seed: int = 0) -> str:
    """The report about a kernel that is wrong."""
    with pytest.raises(EmulatorError) as caught:
        run(kernel, checks, seed)
    return str(caught.value)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kernel", [KERNEL, A_REGISTERS, replace(KERNEL, width=0, a="mn")])
def test_right_kernels_are_clean(kernel: ProductKernel, seed: int):
    assert run(kernel, seed=seed)


# Registers ---------------------------------------------------------------------------------------

IN_FLIGHT = {
    "read": (KERNEL, "mov.b32 %x0,%c5;", "uses register %c5 by `mov.b32` while", "writes it"),
    "written": (KERNEL, "mov.b32 %c7,0;", "uses register %c7 by `mov.b32` while", "writes it"),
    "stored": (KERNEL, "st.shared.b32 [%s],%c1;", "uses register %c1 by `st.shared.b32`", ""),
    "a_written": (A_REGISTERS, "mov.b32 %a6,0;", "uses register %a6 by `mov.b32`", "reads it"),
    "guarded": (KERNEL, "@%p0 add.u32 %c0,%c0,1;", "uses register %c0 by `add.u32`", "writes it"),
}


@pytest.mark.parametrize("name", IN_FLIGHT)
@pytest.mark.parametrize("seed", [0, 1])
def test_registers_in_flight(name: str, seed: int):
    kernel, line, *wanted = IN_FLIGHT[name]
    text = finding(with_parts(kernel, in_flight=line), "async", seed)
    assert text.splitlines()[0].startswith("k.ptx:")
    assert "error: race: kernel `k`, CTA (0, 0, 0), thread (" in text.splitlines()[0]
    assert all(part in text for part in wanted), text
    assert "`wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16` was issued here" in text
    assert "help: `wgmma.commit_group`, then `wgmma.wait_group`" in text


def test_a_guard_that_is_false_uses_nothing():
    assert run(with_parts(KERNEL, in_flight="@!%p0 add.u32 %c0,%c0,1;"))


def test_what_was_not_committed_is_not_waited_for():
    assert "still writes it" in finding(with_parts(KERNEL, commit=""), "async")


def test_the_last_groups_stay_in_flight():
    wait = "wgmma.wait_group.sync.aligned 1;"
    assert "still writes it" in finding(with_parts(KERNEL, wait=wait), "async")
    two = "wgmma.commit_group.sync.aligned;\nwgmma.commit_group.sync.aligned;"
    assert run(with_parts(KERNEL, commit=two, wait=wait))


def product(registers: str, columns: int = 16, k: str = "", a: str = "%da") -> str:
    """One more product, on registers that are named by their numbers."""
    shape = f"m64n{columns}k16.f32.f16.f16"
    tail = "1,1,1,0,0" if a == "%da" else "1,1,1,0"
    return f"wgmma.mma_async.sync.aligned.{shape} {{{registers}}},{a},%db,{tail};{k}"


C = ",".join(f"%c{i}" for i in range(8))
SHIFTED = ",".join(f"%c{i}" for i in (4, 5, 6, 7, 0, 1, 2, 3))


def test_products_of_another_shape_or_order_must_wait():
    text = finding(with_parts(KERNEL, in_flight=product("%c0,%c1,%c2,%c3", 8)), "async")
    assert "uses register %c0 by `wgmma.mma_async.sync.aligned.m64n8k16" in text
    text = finding(with_parts(KERNEL, in_flight=product(SHIFTED)), "async")
    assert "uses register %c4 by `wgmma" in text


def test_an_accumulator_in_flight_is_no_factor():
    line = product("%x0,%x1,%x2,%x3", 8, a="{%c0,%c1,%c2,%c3}")
    line = "wgmma.fence.sync.aligned;" + line
    text = finding(with_parts(KERNEL, in_flight=line), "async")
    assert "uses register %c0 by `wgmma" in text


def test_factors_in_registers_are_shared():
    line = product("%x0,%x1,%x2,%x3", 8, a="{%a0,%a1,%a2,%a3}")
    line = "wgmma.fence.sync.aligned;" + line.replace("%db,1,", "%db,0,")
    assert run(with_parts(A_REGISTERS, in_flight=line, wait=WAIT))


# Fences ------------------------------------------------------------------------------------------


def test_the_first_product_needs_a_fence():
    text = finding(with_parts(KERNEL, fence=""), "async")
    assert (
        "executes `wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16` with no `wgmma.fence`"
        in text
    )
    assert "help: put `wgmma.fence.sync.aligned` before the first product" in text


@pytest.mark.parametrize(
    ("kernel", "register"), [(KERNEL, "%c3"), (A_REGISTERS, "%a2")], ids=["accumulator", "factor"]
)
def test_registers_that_others_wrote_need_a_fence(kernel: ProductKernel, register: str):
    line = f"wgmma.fence.sync.aligned;\nadd.u32 {register},{register},0;"
    text = finding(with_parts(kernel, fence=line), "async")
    assert f"on register {register}, which was used since the last `wgmma.fence`" in text
    assert "`add.u32` uses it here" in text
    assert run(with_parts(kernel, fence=f"{line}\nwgmma.fence.sync.aligned;"))


def test_a_second_batch_needs_a_fence_only_after_other_uses():
    again = f"{WAIT}\n{product(C)}\nwgmma.commit_group.sync.aligned;"
    assert not run(with_parts(KERNEL, in_flight=again))  # it runs, and adds once more
    used = again.replace(WAIT, f"{WAIT}\nadd.u32 %x0,%c2,0;")
    assert "on register %c2, which was used since" in finding(
        with_parts(KERNEL, in_flight=used), "async"
    )


def test_other_checks_alone_do_not_look_at_registers():
    assert run(with_parts(KERNEL, fence=""), "init")


# Shared memory -----------------------------------------------------------------------------------


def test_writes_to_operands_in_flight():
    text = finding(with_parts(KERNEL, in_flight=CLEAR), "async")
    assert re.search(
        r"race: .*writes 16 bytes at 0x0, in shared memory, which a `wgmma` still", text
    )
    assert "was issued here" in text
    assert run(with_parts(KERNEL, wait=f"{WAIT}\nbar.sync 0;\n{CLEAR}"))


def test_copies_into_operands_in_flight():
    line = "ld.param.u64 %g,[p_a];\ncp.async.ca.shared.global [%s],[%g],16;"
    assert "copies to 16 bytes at 0x0, in shared memory, which a `wgmma` still reads" in finding(
        with_parts(KERNEL, in_flight=line), "async"
    )


@pytest.mark.parametrize("seed", range(8))
def test_early_writes_give_wrong_numbers_where_nobody_looks(seed: int):
    """Operands are read at the wait, or with a seed at the issue or at the wait."""
    right = run(with_parts(KERNEL, in_flight=CLEAR), "bounds", seed)
    assert not right or seed


def test_a_seed_may_read_at_the_issue():
    kernel = with_parts(replace(KERNEL, steps=1), in_flight=CLEAR)
    assert {run(kernel, "bounds", seed) for seed in range(1, 8)} == {True, False}


def test_a_missing_barrier_is_a_race():
    for seed in range(4):
        text = finding(with_parts(KERNEL, barrier=""), "race", seed)
        assert re.search(
            r"reads 0x\w+ in shared memory, which thread \(\d+, 0, 0\) writes with", text
        )


def test_a_warp_may_write_its_own_rows_of_a():
    """Rows of A are read by their own warp alone; B is read by all four."""
    warp = "shr.u32 %x1,%t,5; shl.b32 %x1,%x1,11; and.b32 %x2,%t,31; shl.b32 %x2,%x2,2;"
    warp += "add.u32 %x1,%x1,%x2; add.u32 %x1,%x1,%s; ld.shared.b32 %x3,[%x1];"
    warp += "st.shared.b32 [%x1],%x3; bar.warp.sync -1; fence.proxy.async.shared::cta;"
    warp += "bar.warp.sync -1; wgmma.fence.sync.aligned;"
    assert run(with_parts(KERNEL, fence=warp), "race")
    into_b = warp.replace(
        "add.u32 %x1,%x1,%s;", f"add.u32 %x1,%s,%x2; add.u32 %x1,%x1,{KERNEL.a_place.size};"
    )
    into_b = f"setp.lt.u32 %p2,%t,32; @!%p2 bra ON; {into_b}".replace(
        "wgmma.fence", "ON: wgmma.fence"
    )
    assert "race" in finding(with_parts(KERNEL, fence=into_b), "race")


def test_the_wait_of_one_warp_ends_the_product_of_all():
    """The last warp writes behind its own wait, which no barrier follows."""
    line = f"{ZERO} setp.ge.u32 %p2,%t,96; @%p2 st.shared.b32 [%s+4],%x0;"
    assert run(with_parts(KERNEL, wait=f"{WAIT}\n{line}"), "race")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_early", [False, True])
def test_another_warp_writes_behind_the_wait(is_early: bool, seed: int):
    """A fifth warp reuses A behind a barrier, which comes after the wait or, too early, before."""
    arrive = "bar.arrive 1,160;"
    kernel = with_parts(
        KERNEL,
        barrier="bar.sync 0; setp.ge.u32 %p2,%t,128; @%p2 bra WRITER;",
        wait=f"{arrive} {WAIT}" if is_early else f"{WAIT} {arrive}",
    )
    text = kernel.text.replace(".reqntid 128", ".reqntid 160")
    text = text.replace("mov.u32 %s,tiles;", "setp.ge.u32 %p3,%t,128; @%p3 bra JOIN;\n%s", 1)
    text = text.replace("JOIN;\n%s", "JOIN;\nmov.u32 %s,tiles;")
    text = text.replace("fence.proxy.async", "JOIN: mov.u32 %s,tiles; fence.proxy.async")
    text = text.replace("ret; }", f"ret;\nWRITER: bar.sync 1,160; {CLEAR} ret; }}")
    generator = np.random.default_rng(3)
    a, b = kernel.operands(generator)
    out = np.zeros((kernel.registers, THREADS), np.uint32)
    fragments = kernel.fragments(kernel.addend(generator))
    arrays = [kernel.a_place.image(a), kernel.b_place.image(b), fragments, out]
    if not is_early:
        emulate(text, "k", 1, 160, arrays, kernel.shared, "all", seed)
        return
    with pytest.raises(EmulatorError, match="race"):
        emulate(text, "k", 1, 160, arrays, kernel.shared, "all", seed)


def test_a_missing_proxy_fence_is_a_race():
    text = finding(with_parts(KERNEL, proxy_fence=""), "race")
    assert re.search(
        r"race: .* reads 0x\w+ in shared memory through the asynchronous proxy, which thread "
        r"\(\d+, 0, 0\) wrote without a `fence.proxy.async` behind it",
        text,
    )
    assert "thread (0, 0, 0) wrote it here" in text
    assert "help: put `fence.proxy.async.shared::cta` behind the write" in text
    assert "proxy" in finding(with_parts(KERNEL, proxy_fence="fence.proxy.async.global;"), "race")
    assert run(with_parts(KERNEL, proxy_fence="fence.proxy.async;"), "race")
    assert run(with_parts(KERNEL, proxy_fence=""), "async")


def test_a_proxy_fence_in_front_of_the_write_is_none():
    late = "fence.proxy.async.shared::cta; st.shared.b32 [%s],0;"
    assert "proxy" in finding(with_parts(KERNEL, proxy_fence=late), "race")


def test_a_proxy_fence_comes_behind_the_wait_of_a_copy():
    copy = "ld.param.u64 %g,[p_a];\ncp.async.ca.shared.global [%s],[%g],16;"
    copy = f"setp.eq.u32 %p2,%t,0; @!%p2 bra ON; {copy}"
    wait, fence = "cp.async.wait_all;", "ON: fence.proxy.async.shared::cta;"
    assert run(with_parts(KERNEL, proxy_fence=f"{copy} {wait} {fence}"))
    early = f"{copy} fence.proxy.async.shared::cta; {wait} ON:"
    early = f"fence.proxy.async.shared::cta; {early}"
    assert "proxy" in finding(with_parts(KERNEL, proxy_fence=early), "race")
