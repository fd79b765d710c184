"""softmax of rows of 131072 elements."""

from __future__ import annotations

from tools.bench.row_cases import LONG
from tools.bench.softmax import SOFTMAX

CASE = SOFTMAX.case(LONG)
