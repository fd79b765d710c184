"""The chips that whole families of tests go through."""

from __future__ import annotations

from phobos.targets.ptx.chips import CHIPS, Chip

PLAIN_CHIPS: dict[str, Chip] = {name: one for name, one in CHIPS.items() if not one.is_exact}
"""The chips without a letter.

The compiler prints for sm_90a what it prints for sm_90, but for what sm_90a has beyond that; that
has tests of its own.
"""
