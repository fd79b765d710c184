"""An explanation as JSON, for tools: the records with their fields by name."""

from __future__ import annotations

import json
from dataclasses import asdict

from phobos.explain.records import Explanation

VERSION = 1
"""Grows when a field changes its meaning."""


def explanation_json(explanation: Explanation) -> str:
    """The whole as a JSON object."""
    return json.dumps({"version": VERSION, **asdict(explanation)}, indent=2)
