"""Marks the tests that assemble."""

from __future__ import annotations

import pytest

from phobos.targets.ptx.cuda_tools import find_cuda_tool

needs_ptxas = pytest.mark.skipif(find_cuda_tool("ptxas") is None, reason="needs ptxas")
