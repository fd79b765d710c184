"""rmsnorm of rows of 8192 elements."""

from __future__ import annotations

from tools.bench.norms import RMSNORM
from tools.bench.row_cases import SQUARE

CASE = RMSNORM.case(SQUARE)
