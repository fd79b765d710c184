"""Random programs that are well-typed by construction, with arguments to launch them on."""

from __future__ import annotations

from tools.fuzz.generator.programs import Case, generate

__all__ = ["Case", "generate"]
