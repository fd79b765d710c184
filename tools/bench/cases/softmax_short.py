"""softmax of rows of 1024 elements."""

from __future__ import annotations

from tools.bench.row_cases import SHORT
from tools.bench.softmax import SOFTMAX

CASE = SOFTMAX.case(SHORT)
