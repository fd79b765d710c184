"""Everything that the documentation shows is compiled, run and compared."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

import phobos
from phobos.frontend.builtins import BUILTIN_FUNCTIONS, PLANNED
from tests.support.doc_blocks import Block, blocks_of, commands_of, matches, run_command
from tests.support.run_lines import call_tool

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)")
KINDS = {"ph", "ph error", "python", "mlir", "console", "text", "sh", "json", "ptx", "c"}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples, as the current one."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PHOBOS_CHIP", raising=False)
    return tmp_path


def with_follower(blocks: list[Block]) -> Iterator[tuple[Block, Block | None]]:
    """Each block with the one behind it."""
    return zip(blocks, [*blocks[1:], None], strict=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page(page: Path, workspace: Path) -> None:
    names: dict[str, Any] = {"__name__": page.stem}
    for block, following in with_follower(list(blocks_of(page))):
        place = f"{page.relative_to(ROOT)}:{block.line}"
        assert block.kind in KINDS, f"{place}: unknown kind of block `{block.kind}`"
        match block.kind:
            case "ph":
                names["source"] = block.text
                chip = "sm_90" if "@cluster" in block.text else "sm_80"
                assert phobos.compile(block.text, chip=chip).ptx, place
            case "ph error":
                check_refused(block, following, place)
            case "mlir":
                names["ir"] = block.text
                outcome = call_tool("phobos-opt", [], block.text.encode())
                assert outcome.code == 0, f"{place}: {outcome.stderr.decode()}"
            case "python":
                # Empty lines in front give tracebacks the page's line numbers.
                code = "\n" * block.line + block.text
                exec(compile(code, str(page), "exec", dont_inherit=True), names)
            case "console":
                for command in commands_of(block):
                    printed = run_command(command)
                    assert not command.output or matches(command.output, printed), (
                        f"{place}: `{' '.join(command.words)}` printed\n" + "\n".join(printed)
                    )
            case _:
                pass


def test_every_program_of_the_language_page_is_run() -> None:
    """Behind each program stands Python that launches a kernel of it."""
    page = ROOT / "docs/language.md"
    programs = 0
    for block, following in with_follower(list(blocks_of(page))):
        if block.kind != "ph":
            continue
        programs += 1
        place = f"language.md:{block.line}"
        assert following is not None, place
        assert following.kind == "python", place
        names = re.findall(r"^kernel (\w+)", block.text, re.MULTILINE)
        assert all(f'["{name}"](' in following.text for name in names), place
        for word in ('device="emulator"', "assert "):
            assert word in following.text, place
    assert programs >= 15


def check_refused(block: Block, following: Block | None, place: str) -> None:
    """The program must be an error, with the message that the page shows."""
    with pytest.raises(phobos.PhobosError) as caught:
        phobos.compile(block.text, chip="sm_80")
    if following is not None and following.kind == "text":
        message = re.sub(r"^[^\s:]+\.ph:|^<[^>]*>:", "kernel.ph:", str(caught.value), flags=re.M)
        expected = tuple(following.text.splitlines())
        assert matches(expected, message.splitlines()), f"{place}: the message is\n{message}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for found in LINK.finditer(page.read_text()):
        if "://" not in found[1]:
            assert (page.parent / found[1]).exists(), f"{page.name} links to {found[1]}"


def test_every_page_is_linked_from_the_overview() -> None:
    overview = (ROOT / "docs/overview.md").read_text()
    for page in PAGES:
        if page.parent == ROOT / "docs" and page.name != "overview.md":
            assert f"({page.name})" in overview


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ph")), ids=lambda p: p.name)
def test_an_example_begins_by_saying_what_it_teaches(path: Path) -> None:
    header = takewhile(lambda line: line.startswith("//"), path.read_text().splitlines())
    first_words = {line.removeprefix("// ").split(" ", 1)[0] for line in header}
    assert {"Teaches:", "Launch"} <= first_words


def test_the_language_page_lists_what_does_not_compile_yet() -> None:
    page = (ROOT / "docs/language.md").read_text()
    section = page[page.index("## What does not compile yet") :]
    listed = set(re.findall(r"`([a-z_0-9]+)`", section))
    assert listed & BUILTIN_FUNCTIONS == PLANNED


def test_the_language_page_names_every_builtin() -> None:
    words = set(re.findall(r"[a-z_0-9]+", (ROOT / "docs/language.md").read_text()))
    assert BUILTIN_FUNCTIONS - words == set()
