"""The package as a whole: its examples are true and it depends on nothing."""

import ast
import doctest
import importlib
import pkgutil
import sys
from pathlib import Path

import pytest

import phobos.layout

MODULES = [module.name for module in pkgutil.iter_modules(phobos.layout.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(f"phobos.layout.{name}"))
    assert result.failed == 0
    assert result.attempted > 0


def imported(path: Path) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            modules.add(node.module or "")
    return modules


@pytest.mark.parametrize("name", MODULES)
def test_only_the_standard_library_is_imported(name):
    path = Path(phobos.layout.__path__[0]) / f"{name}.py"
    others = {module for module in imported(path) if not module.startswith("phobos.layout")}
    assert {module.partition(".")[0] for module in others} <= sys.stdlib_module_names
