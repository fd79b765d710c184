"""Every level of IR, for every example: it prints, parses back, verifies and knows its source."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.parser import Parser
from xdsl.printer import Printer

from phobos.cli.opt import PhobosOptMain
from phobos.cli.pass_list import parse_passes
from phobos.diagnostics import SourceMap
from phobos.faults import verify_located
from phobos.plugin import PhFrontend

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.ph"))


@pytest.fixture(scope="module")
def driver() -> PhobosOptMain:
    return PhobosOptMain([])


def printed(module: ModuleOp, *, with_locations: bool) -> str:
    text = StringIO()
    Printer(stream=text, print_debuginfo=with_locations).print_op(module)
    return text.getvalue()


def parsed(context: Context, text: str) -> ModuleOp:
    module = Parser(context, text).parse_module()
    verify_located(module)
    return module


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_each_level_prints_parses_and_verifies(path: Path, driver: PhobosOptMain) -> None:
    module = PhFrontend().translate(path.read_text(), path.name, SourceMap())
    known = ""
    for one in (None, *parse_passes("default", driver.available_passes)):
        if one is not None:
            one.apply(driver.ctx, module)
        verify_located(module)
        text = printed(module, with_locations=False)
        if text == known:  # the pass had nothing to do, and a text is parsed one way
            continue
        where = f"after {one.name if one else 'the front end'}"
        assert printed(parsed(driver.ctx, text), with_locations=False) == text, where
        known = text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_each_operation_knows_its_source(path: Path, driver: PhobosOptMain) -> None:
    module = PhFrontend().translate(path.read_text(), path.name, SourceMap())
    for one in (None, *parse_passes("default", driver.available_passes)):
        if one is not None:
            one.apply(driver.ctx, module)
        lost = [
            op.name
            for op in module.walk()
            if op is not module and isinstance(op.location, UnknownLoc)
        ]
        assert lost == [], f"after {one.name if one else 'the front end'}"


def test_locations_survive_in_text(driver: PhobosOptMain) -> None:
    path = EXAMPLES[-1]
    module = PhFrontend().translate(path.read_text(), path.name, SourceMap())
    for one in parse_passes("default", driver.available_passes):
        one.apply(driver.ctx, module)
    text = printed(module, with_locations=True)
    assert f'loc("{path.name}":' in text
    assert printed(parsed(driver.ctx, text), with_locations=True) == text
