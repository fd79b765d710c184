"""rmsnorm of rows of 1024 elements."""

from __future__ import annotations

from tools.bench.norms import RMSNORM
from tools.bench.row_cases import SHORT

CASE = RMSNORM.case(SHORT)
