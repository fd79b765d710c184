"""The PTX parser: text to frozen records, for the emulator and for tools that read PTX."""

from phobos.targets.ptx.parse.module import parse_ptx

__all__ = ["parse_ptx"]
