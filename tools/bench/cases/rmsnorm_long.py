"""rmsnorm of rows of 131072 elements."""

from __future__ import annotations

from tools.bench.norms import RMSNORM
from tools.bench.row_cases import LONG

CASE = RMSNORM.case(LONG)
