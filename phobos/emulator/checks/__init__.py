"""Checks that need memory of what happened before: data races and counts."""
