"""Bring the tables of docs/emulator.md up to date with the recorded answers of a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.unit.emulator.families import filled  # noqa: E402


def main() -> None:
    """Rewrite the page."""
    page = ROOT / "docs" / "emulator.md"
    page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    main()
