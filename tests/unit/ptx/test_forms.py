"""The instruction tables against ptxas: what a chip claims assembles, what it lacks is refused."""

from __future__ import annotations

import re
import subprocess
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from phobos.dialects.ptx.forms import OLDEST, Form
from phobos.dialects.ptx.matrix import MMA_SHAPES
from phobos.targets.ptx.assembler import assemble, find_ptxas
from phobos.targets.ptx.chips import CAPABILITIES, CHIPS
from phobos.targets.ptx.legality import format_version, mma_shapes, version_for
from tests.support.chips import PLAIN_CHIPS
from tests.unit.ptx.forms import INSTRUCTIONS, FormModule, Spelling, spellings

FAST = ("-O0",)
"""ptxas only has to say yes or no."""

FAMILIES = sorted({cls.__module__.rpartition(".")[2] for cls in INSTRUCTIONS} - {"warpgroup"})
"""The modules that define instructions; ptxas takes small kernels faster than one large one.

Products of a warpgroup have a protocol, and tests of their own.
"""

# The manual gives fence.acquire and fence.release to sm_90 and newer; ptxas takes them anywhere.
# A multicast it advises against, and does by a copy at a time, where the hardware has none.
LENIENT = re.compile(r"fence\.(acquire|release)|cp\.async\.bulk.*\.multicast::cluster")


@pytest.mark.parametrize("chip", PLAIN_CHIPS.values(), ids=PLAIN_CHIPS)
def test_every_claimed_form_assembles_at_the_version_that_is_printed(chip):
    claimed = [s for s in spellings(Form.sample) if chip.has(s.form.needs)]

    def version_and_family(spelling: Spelling):
        return version_for(chip, spelling.form.since), spelling.cls.__module__

    claimed.sort(key=version_and_family)
    for (version, _), group in groupby(claimed, key=version_and_family):
        text = FormModule(chip.name, group).text
        assert f".version {format_version(version)}\n" in text
        assert assemble(text, chip.name, FAST).warnings == ()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_suffix_of_every_form_assembles(family):
    """All combinations of qualifiers, on the chip that has the most of them."""
    chip = CHIPS["sm_120"]
    chosen = [
        spelling
        for spelling in spellings()
        if spelling.cls.__module__.endswith(f".{family}") and chip.has(spelling.form.needs)
    ]
    assert chosen
    assert assemble(FormModule(chip.name, chosen).text, chip.name, FAST).warnings == ()


def test_every_form_that_needs_the_letter_assembles():
    """What sm_90a has beyond sm_90, without the advice that sm_90 gets on multicast."""
    plain, exact = CHIPS["sm_90"], CHIPS["sm_90a"]
    more = exact.capabilities - plain.capabilities - {"has_wgmma"}
    chosen = [spelling for spelling in spellings() if spelling.form.needs in more]
    text = FormModule(exact.name, chosen).text
    assert f".version {format_version(exact.ptx_version)}\n" in text
    assert assemble(text, exact.name, FAST).warnings == ()


def test_multicast_is_for_chips_that_do_it_in_hardware():
    chosen = [spelling for spelling in spellings() if spelling.form.needs == "has_multicast"]
    (first, *_) = assemble(FormModule("sm_90", chosen).text, "sm_90", FAST).warnings
    assert "should be used on .target 'sm_90a" in first


@pytest.mark.parametrize("chip", PLAIN_CHIPS.values(), ids=PLAIN_CHIPS)
def test_every_form_a_chip_lacks_is_refused_by_ptxas(chip, tmp_path: Path):
    lacking = [s for s in spellings(Form.sample) if not chip.has(s.form.needs)]
    lacking = [s for s in lacking if not LENIENT.match(str(s))]
    if not lacking:
        pytest.skip(f"{chip.name} has every form")
    lines = FormModule(chip.name, lacking).text.splitlines()
    accepted = set(_instruction_lines(lines, lacking)) - _refused_lines(lines, chip.name, tmp_path)
    assert [lines[number - 1] for number in sorted(accepted)] == []


def _instruction_lines(lines: list[str], chosen: list[Spelling]) -> list[int]:
    """Numbers of the lines that hold the chosen instructions."""
    mnemonics = {s.cls.spelling(s.suffix).mnemonic for s in chosen}
    heads = (re.split(r"[ ;]", line.strip(), maxsplit=1)[0] for line in lines)
    found = [number for number, head in enumerate(heads, 1) if head in mnemonics]
    assert len(found) >= len(chosen)
    return found


def _refused_lines(lines: list[str], chip: str, folder: Path) -> set[int]:
    source = folder / "forms.ptx"
    source.write_text("\n".join(lines))
    command = [find_ptxas(), f"-arch={chip}", *FAST, str(source), "-o", str(folder / "cubin")]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode != 0
    log = finished.stdout + finished.stderr
    return {int(number) for number in re.findall(r"line (\d+); error", log)}


def test_forms_name_capabilities_that_chips_have_fields_for():
    needs = {form.needs for cls in INSTRUCTIONS for form in cls.forms} - {None}
    assert needs <= set(CAPABILITIES)


def test_capabilities_without_a_form_are_few():
    """A capability that no instruction needs is either used by passes or a leftover."""
    needs = {form.needs for cls in INSTRUCTIONS for form in cls.forms}
    assert set(CAPABILITIES) - needs == set()


def test_pattern_language():
    form = Form("{rn|rz}?.ftz?.f32", "t = t")
    assert list(form.suffixes()) == [
        "rn.ftz.f32",
        "rn.f32",
        "rz.ftz.f32",
        "rz.f32",
        "ftz.f32",
        "f32",
    ]
    assert form.matches("rz.ftz.f32")
    assert not form.matches("ftz.rz.f32")
    assert not form.matches("f32.f32")
    assert Form("", "").matches("")
    assert list(Form("{a.b|c}.d", "").suffixes()) == ["a.b.d", "c.d"]


def test_every_suffix_matches_its_own_form():
    for spelling in spellings(Form.sample):
        assert spelling.form.matches(spelling.suffix)
        assert spelling.form.since >= OLDEST


def test_mma_rows_agree_with_the_sizes_of_their_fragments():
    """Registers of a lane hold its 1/32 of each matrix."""
    bits = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4}
    bits |= {"e4m3": 8, "e5m2": 8, "b1": 1, "f32": 32, "s32": 32}
    for row in MMA_SHAPES:
        if row.k == 4 and row.a == "f16":
            continue  # four products at once, each by eight lanes
        width = 64 if row.a == "f64" else 32
        assert row.a_registers * width * 32 == row.m * row.k * bits[row.a], row
        assert row.b_registers * width * 32 == row.k * row.n * bits[row.b], row
        width = 64 if row.accumulator == "f64" else 32
        size = row.m * row.n * bits[row.accumulator]
        assert row.accumulator_registers * width * 32 == size, row


def test_mma_shapes_grow_with_the_chip():
    shapes = [set(mma_shapes(chip)) for chip in PLAIN_CHIPS.values()]
    assert all(older <= newer for older, newer in pairwise(shapes))
    assert {(s.name, s.a) for s in shapes[0] if s.a == "f16"} == {
        ("m16n8k8", "f16"),
        ("m8n8k4", "f16"),
    }
