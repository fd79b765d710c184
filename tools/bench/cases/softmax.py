"""softmax of rows of 8192 elements."""

from __future__ import annotations

from tools.bench.row_cases import SQUARE
from tools.bench.softmax import SOFTMAX

CASE = SOFTMAX.case(SQUARE)
