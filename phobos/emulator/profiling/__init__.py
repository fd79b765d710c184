"""Counts of what a kernel does, by source line: why it is slow, before any GPU is at hand."""

from phobos.emulator.profiling.counts import LineCounts, Profile
from phobos.emulator.profiling.table import profile_table

__all__ = ["LineCounts", "Profile", "profile_table"]
