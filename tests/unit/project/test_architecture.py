"""Who may import whom, and what the compiler proper may need."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "phobos"

MAY_IMPORT: dict[str, set[str]] = {
    "record": set(),
    "diagnostics": set(),
    "layout": set(),
    "dialects": {"layout", "ir"},
    "ir": {"layout"},
    "frontend": {"dialects", "ir", "layout"},
    "analysis": {"dialects", "ir", "layout"},
    "targets": {"dialects", "ir", "layout"},
    "transforms": {"analysis", "dialects", "ir", "layout", "targets"},
    "pipeline": {"transforms", "analysis", "dialects", "ir", "layout", "targets"},
    "explain": {"analysis", "dialects", "ir", "layout", "targets", "transforms"},
    "faults": {"ir"},
    "plugin": {"faults", "frontend", "targets", "dialects", "ir", "layout", "pipeline"},
    "universe": {"plugin", "pipeline", "dialects", "transforms"},
    "emulator": {"targets"},
    "runtime": {"targets", "emulator"},
    "driver": {
        "analysis",
        "dialects",
        "explain",
        "faults",
        "frontend",
        "ir",
        "pipeline",
        "runtime",
        "targets",
        "transforms",
        "universe",
    },
    "tune": {"runtime", "driver", "targets"},
    "kernels": {"driver", "runtime"},
}
"""What each room of the package may import beside itself, `record` and `diagnostics`.

`phobos/__init__.py` and `phobos/cli` may import everything. A room missing here is an error, so
that a new one gets its place in the table.
"""

FOR_ALL = {"record", "diagnostics"}

TYPE_ONLY = {("pipeline", "driver")}
"""What may be imported for annotations alone: the pipeline reads the driver's options record."""

COMPILER = {
    "record", "diagnostics", "layout", "dialects", "ir", "frontend", "analysis", "targets",
    "transforms", "pipeline", "explain", "faults", "plugin", "universe",
}  # fmt: skip
"""The rooms that need xDSL and the standard library alone."""

LAZY_ONLY = {"cuda", "numpy", "ml_dtypes", "rich"}
"""Packages of the `run` extra: outside the rooms that are made of them, imported in functions."""

NUMPY_ROOMS = {"emulator", "runtime", "tune", "kernels"}


@dataclass(frozen=True)
class Import:
    """One imported module and where it is imported."""

    path: Path
    line: int
    module: str
    is_lazy: bool
    is_type_only: bool = False

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {self.module}"


def room_of(path: Path) -> str:
    """The first part of a file's place in the package, without `.py`."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[Import]:
    """Every import in a file; one in a function or under TYPE_CHECKING is lazy."""

    def visit(node: ast.AST, lazy: bool, typing: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.Import():
                    for alias in child.names:
                        yield Import(path, child.lineno, alias.name, lazy, typing)
                case ast.ImportFrom():
                    assert child.level == 0, f"{path}:{child.lineno}: relative import"
                    module = child.module or ""
                    yield Import(path, child.lineno, module, lazy, typing)
                    if module == "phobos":
                        for alias in child.names:
                            name = f"phobos.{alias.name}"
                            yield Import(path, child.lineno, name, lazy, typing)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    yield from visit(child, True, typing)
                case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                    yield from visit(child, True, True)
                case _:
                    yield from visit(child, lazy, typing)

    yield from visit(ast.parse(path.read_text()), False, False)


@cache
def package_imports() -> list[tuple[str, Import]]:
    return [
        (room_of(path), found)
        for path in sorted(PACKAGE.rglob("*.py"))
        for found in imports_of(path)
    ]


def test_every_room_has_its_place_in_the_table() -> None:
    rooms = {room_of(path) for path in PACKAGE.rglob("*.py")}
    assert rooms - MAY_IMPORT.keys() - {"cli", "__init__"} == set()


def test_imports_point_down_the_table() -> None:
    wrong = [
        str(found)
        for room, found in package_imports()
        if room in MAY_IMPORT
        and (parts := found.module.split("."))[0] == "phobos"
        and len(parts) > 1
        and parts[1] not in MAY_IMPORT[room] | {room, *FOR_ALL}
        and not (found.is_type_only and (room, parts[1]) in TYPE_ONLY)
    ]
    assert wrong == []


def test_the_table_has_no_cycle() -> None:
    """Follow the table from each room; coming back to it would be a cycle."""

    def reachable(room: str, seen: frozenset[str]) -> None:
        assert room not in seen, f"cycle through {room}"
        for other in MAY_IMPORT[room]:
            reachable(other, seen | {room})

    for room in MAY_IMPORT:
        reachable(room, frozenset())


def test_the_compiler_needs_xdsl_alone() -> None:
    allowed = sys.stdlib_module_names | {"phobos", "xdsl"}
    wrong = [
        str(found)
        for room, found in package_imports()
        if room in COMPILER and found.module.split(".")[0] not in allowed
    ]
    assert wrong == []


def test_packages_of_the_run_extra_are_imported_lazily() -> None:
    wrong = [
        str(found)
        for room, found in package_imports()
        if not found.is_lazy
        and (package := found.module.split(".")[0]) in LAZY_ONLY
        and not (package in {"numpy", "ml_dtypes"} and room in NUMPY_ROOMS)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import numpy.linalg", [("numpy.linalg", False)]),
        ("def f():\n    from cuda import bindings", [("cuda", True)]),
        ("from phobos import layout", [("phobos", False), ("phobos.layout", False)]),
        ("if TYPE_CHECKING:\n    import numpy", [("numpy", True)]),
        ("class C:\n    import rich", [("rich", False)]),
    ],
)
def test_imports_are_found(tmp_path: Path, source: str, expected: list[tuple[str, bool]]) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert [(found.module, found.is_lazy) for found in imports_of(path)] == expected
