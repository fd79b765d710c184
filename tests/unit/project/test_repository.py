"""Promises about the repository itself: sizes, packaging, the published names."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MAX_LINES = 600
MAX_WHEEL_BYTES = 3_000_000

SOURCES = sorted(
    path
    for folder in ("phobos", "tests", "tools")
    for path in (ROOT / folder).rglob("*.py")
    if "__pycache__" not in path.parts
)


def test_no_source_file_is_too_long() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in SOURCES}
    assert {path: lines for path, lines in lengths.items() if lines >= MAX_LINES} == {}


def test_sources_have_no_unfinished_business() -> None:
    marks = ["TO" + "DO", "FIX" + "ME", "XX" + "X"]
    wrong = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in SOURCES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if any(mark in line for mark in marks)
    ]
    assert wrong == []


def test_the_scripts_and_the_universe_are_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    scripts = {entry.name: entry.value for entry in entry_points(group="console_scripts")}
    for name, value in project["scripts"].items():
        assert scripts[name] == value
    universes = {entry.name: entry.value for entry in entry_points(group="xdsl.universe")}
    assert universes["phobos"] == project["entry-points"]["xdsl.universe"]["phobos"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built in this environment so that nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_is_small_and_for_any_machine(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    assert wheel.stat().st_size < MAX_WHEEL_BYTES


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"phobos"}
    packaged = {name for name in names if name.endswith(".py")}
    assert packaged == {
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        if path.is_relative_to(ROOT / "phobos")
    }
    assert any(name.endswith("licenses/LICENSE") for name in names)
