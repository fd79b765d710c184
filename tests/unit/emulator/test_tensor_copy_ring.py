"""A ring of stages between tensor copies and `wgmma`: what is right, and what is reported."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from phobos.emulator import EmulatorError, TensorMapArgument, emulate
from phobos.targets.ptx.assembler import assemble
from tests.support.ptxas import needs_ptxas
from tests.support.tensor_copy_kernels import DEPTH, ROWS, THREADS, RingKernel

KERNEL = RingKernel()
TURNS = 6


def run(kernel: RingKernel, seed: int = 0, checks: str = "all", text: str = "") -> None:
    """Multiply small whole numbers and compare."""
    generator = np.random.default_rng(7)
    a = generator.integers(-4, 5, (ROWS, TURNS * DEPTH)).astype(np.float16)
    b = generator.integers(-4, 5, (kernel.columns, TURNS * DEPTH)).astype(np.float16)
    c = np.zeros((ROWS, kernel.columns), np.float32)
    maps = [TensorMapArgument(x, "f16", (len(x), DEPTH), 128) for x in (a, b)]
    arguments = [*maps, c, TURNS]
    emulate(
        text or kernel.text, "k", 1, THREADS, arguments, kernel.shared, checks, seed, name="k.ptx"
    )
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def finding(seed: int = 0, checks: str = "async", **parts: str) -> str:
    """The report about the kernel with parts replaced; underscores stand for blanks."""
    texts = tuple((name.replace("_", " "), text) for name, text in parts.items())
    with pytest.raises(EmulatorError) as caught:
        run(replace(KERNEL, texts=texts), seed, checks)
    return str(caught.value)


@pytest.mark.parametrize("seed", range(6))
def test_the_ring_is_right(seed: int):
    run(KERNEL, seed)


def test_two_stages_and_more_columns():
    run(RingKernel(64, 2), seed=3)


@needs_ptxas
def test_the_ring_assembles():
    assert assemble(KERNEL.text, "sm_90a").warnings == ()


# Faults ------------------------------------------------------------------------------------------

COPY = "`cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes`"
FAULTS = {
    "no_wait_for_full": (
        {"wait_for_full": ""},
        "race|uninitialised|deadlock",
        r"((reads|copies to) 16 bytes at 0x\w+, in shared memory, |waits at the mbarrier )",
    ),
    "released_too_early": (
        {"wait_for_products": "", "release": "@%p3 mbarrier.arrive.shared::cta.b64 _,[%r9+64];"},
        "race",
        r"copies to 16 bytes at 0x\w+, in shared memory, which a `wgmma` still reads",
    ),
    "too_few_bytes": (
        {"expect": "mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r9],12272;"},
        "deadlock",
        r"waits at the mbarrier at 0x\w+ for phase 0 \(parity 0\), which lacks "
        "the expectation of 16 bytes that never come",
    ),
    "too_many_bytes": (
        {"expect": "mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r9],12304;"},
        "deadlock",
        r"which lacks 16 more bytes that never come",
    ),
    "no_bytes": (
        {"expect": "mbarrier.arrive.shared::cta.b64 _,[%r9];"},
        "race|deadlock|uninitialised",
        r"while an asynchronous copy|lacks the expectation of \d+ bytes|which nothing wrote",
    ),
    "never_armed": (
        {"expect": "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r9],BYTES;"},
        "deadlock",
        r"for phase 0 \(parity 0\), which lacks (4 of 4|1 of 1) arrivals that never come",
    ),
    "never_released": (
        {"release": ""},
        "deadlock",
        r"which lacks (4 of 4|1 of 1) arrivals that never come",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("seed", range(3))
def test_faults(name: str, seed: int):
    parts, kinds, message = FAULTS[name]
    first, *rest = finding(seed, **parts).splitlines()
    found = rf"k\.ptx:\d+:\d+: error: ({kinds}): kernel `k`, CTA \(0, 0, 0\), thread \(.*{message}"
    assert re.match(found, first), first
    if kinds == "deadlock":
        assert any("note: the mbarrier was initialised here" in line for line in rest)
        assert any(" waits at the mbarrier at " in line for line in rest)
    if "asynchronous copy" in first or "wgmma" in first:
        assert any("was issued" in line for line in rest), rest


RACES = {
    "no_wait_for_empty": ({"wait_for_empty": ""}, "race|mbarrier"),
    "released_too_early": ({"wait_for_products": "wgmma.wait_group.sync.aligned 1;"}, "race"),
    "no_wait_for_full": ({"wait_for_full": ""}, "race|uninitialised|deadlock"),
}


@pytest.mark.parametrize("name", RACES)
@pytest.mark.parametrize("seed", range(4))
def test_races_are_found_under_every_schedule(name: str, seed: int):
    parts, kinds = RACES[name]
    first = finding(seed, "all", **parts).splitlines()[0]
    assert re.match(rf"k\.ptx:\d+:\d+: error: ({kinds}): kernel `k`", first), first


NEEDED = re.compile(
    r"@!%p1 bra (?:EMPTY|FULL);|(?:@%p3 )?mbarrier\.(?!try_wait)[^;]*;|bar\.sync[^;]*;"
    r"|fence\.[^;]*;|wgmma\.(?:fence|commit|wait)[^;]*;|cp\.async[^;]*;"
)
"""Statements that the ring does not go without, and a wait at the end, which its loop did."""


@pytest.mark.parametrize("place", [m.span() for m in NEEDED.finditer(KERNEL.text)][:-1])
def test_no_statement_may_be_left_out(place: tuple[int, int]):
    text = KERNEL.text[: place[0]] + KERNEL.text[place[1] :]

    def under_some_schedules() -> None:
        # A wait that looks only once fails where the other warps are late.
        for seed in range(8):
            run(KERNEL, seed, text=text)

    with pytest.raises(EmulatorError):
        under_some_schedules()
