"""Tests in this folder need an NVIDIA GPU and are skipped where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from phobos.runtime.cuda_device import cuda_fault

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, and skip them without a GPU."""
    mine = [item for item in items if HERE in item.path.parents]
    fault = cuda_fault() if mine else None
    for item in mine:
        item.add_marker(pytest.mark.gpu)
        if fault is not None:
            item.add_marker(pytest.mark.skip(reason=fault))
