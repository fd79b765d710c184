"""Collects the lit tests under tests/filecheck, and says what one worker of xdist should run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.run_lines import RunLineError, run_test

LIT_FOLDER = Path(__file__).parent / "filecheck"
LIT_SUFFIXES = {".mlir", ".ph"}


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take every `.mlir` and `.ph` file under tests/filecheck as a test."""
    if file_path.suffix in LIT_SUFFIXES and LIT_FOLDER in file_path.parents:
        return LitFile.from_parent(parent, path=file_path)
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file on one worker, which keeps what they share.

    A file that tries every example, or every case of the benchmarks, has a group for each: it
    would be among the longest by far.
    """
    for item in items:
        group = item.path.stem
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            for parameter, name in (("example", "file"), ("case", "name")):
                group = getattr(item.callspec.params.get(parameter), name, group)
        item.add_marker(pytest.mark.xdist_group(group))


class LitFile(pytest.File):
    """One lit test; it holds a single item."""

    def collect(self) -> Iterator[pytest.Item]:
        """The item that runs the file."""
        yield LitItem.from_parent(self, name="RUN")


class LitItem(pytest.Item):
    """Runs the `RUN:` lines of its file."""

    def runtest(self) -> None:
        """Run the file; raises RunLineError if it does not behave as it says."""
        with tempfile.TemporaryDirectory() as folder:
            run_test(self.path, Path(folder) / "scratch")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The commands and what they printed; a traceback only for a fault of the runner."""
        if isinstance(excinfo.value, RunLineError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """The heading of a failure."""
        return self.path, 0, str(self.path.relative_to(LIT_FOLDER))
