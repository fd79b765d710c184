"""What xDSL's own tools see of Phobos."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import XDSL_UNIVERSE, Universe
from xdsl.utils.frontend import Frontend
from xdsl.utils.target import Target

from phobos.universe import PHOBOS_UNIVERSE
from tests.support.run_lines import call_tool


def test_factories_give_what_their_names_say() -> None:
    for name, dialect in PHOBOS_UNIVERSE.all_dialects.items():
        assert isinstance(dialect(), Dialect)
        assert dialect().name == name
    for name, one in PHOBOS_UNIVERSE.all_passes.items():
        assert issubclass(one(), ModulePass)
        assert one().name == name
    for name, target in PHOBOS_UNIVERSE.all_targets.items():
        assert issubclass(target(), Target)
        assert target().name == name
    for name, frontend in PHOBOS_UNIVERSE.all_frontends.items():
        assert issubclass(frontend(), Frontend)
        assert frontend().name == name


def test_passes_and_targets_carry_the_prefix() -> None:
    for name in (*PHOBOS_UNIVERSE.all_passes, *PHOBOS_UNIVERSE.all_targets):
        assert name.startswith("ph-")


def test_every_pass_says_what_it_does() -> None:
    for factory in PHOBOS_UNIVERSE.all_passes.values():
        assert factory().__doc__, factory().name


def test_nothing_clashes_with_xdsl() -> None:
    for mapping in ("all_dialects", "all_passes", "all_targets", "all_frontends"):
        assert not getattr(PHOBOS_UNIVERSE, mapping).keys() & getattr(XDSL_UNIVERSE, mapping).keys()


def test_the_entry_point_publishes_the_universe() -> None:
    multiverse = Universe.get_multiverse()
    assert multiverse.all_passes.keys() >= PHOBOS_UNIVERSE.all_passes.keys()
    assert multiverse.all_dialects.keys() >= PHOBOS_UNIVERSE.all_dialects.keys()
    assert "ph" in multiverse.all_frontends
    assert "ph-ptx" in multiverse.all_targets


def test_plain_xdsl_opt_reads_a_ph_file(tmp_path: Path) -> None:
    source = tmp_path / "fill.ph"
    source.write_text("kernel fill(out: tensor<f32>[N]) { out[ctx.block.x] = 1.0 }")
    outcome = call_tool("xdsl-opt", [str(source), "-p", "ph-infer-uniformity"])
    assert outcome.code == 0, outcome.stderr.decode()
    assert b'sym_name = "fill"' in outcome.stdout or b"@fill" in outcome.stdout


def test_plain_xdsl_opt_shows_where_a_ph_file_is_wrong(tmp_path: Path) -> None:
    source = tmp_path / "wrong.ph"
    source.write_text("kernel fill(out: tensor<f32>[N]) {\n  out[base] = 1.0\n}")
    outcome = call_tool("xdsl-opt", [str(source), "--parsing-diagnostics"])
    assert outcome.code == 0, outcome.stderr.decode()
    assert b"wrong.ph:2:7: error:" in outcome.stdout


@pytest.mark.parametrize("module", ["phobos.universe", "phobos.pipeline"])
def test_loading_the_universe_imports_no_pass(module: str) -> None:
    """Every xDSL tool loads it at its start, so it must stay cheap."""
    code = (
        f"import sys, {module}; "
        "print([n for n in sys.modules if n.startswith(('phobos.transforms.', "
        "'phobos.frontend', 'phobos.dialects.', 'phobos.targets', 'numpy'))])"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert finished.stdout.strip() == "[]"
