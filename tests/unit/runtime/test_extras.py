"""What is said where the packages for running kernels are missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import phobos
from phobos.runtime import extras
from tests.support.run_lines import call_tool

KERNEL = "kernel k(x: tensor<f32>[4]) {\n  x[:] = 1.0\n}\n"


@pytest.fixture(params=["numpy", "ml_dtypes"])
def missing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a package that is not found."""
    find_spec = extras.find_spec
    monkeypatch.setattr(
        extras, "find_spec", lambda name: None if name == request.param else find_spec(name)
    )
    extras.require_packages.cache_clear()
    yield request.param
    extras.require_packages.cache_clear()


def test_a_launch_names_the_package_and_what_installs_it(missing: str) -> None:
    module = phobos.compile(KERNEL, cache=False)
    with pytest.raises(phobos.PhobosError, match=f"needs the package {missing}(.|\n)*phobos.run"):
        module["k"]([1.0] * 4, device="emulator")


def test_the_tool_does_so_too(missing: str) -> None:
    outcome = call_tool("phobos-run", ["-"], KERNEL.encode())
    assert outcome.code == 1
    assert f"needs the package {missing}" in outcome.stderr.decode()
    assert b"internal error" not in outcome.stderr
