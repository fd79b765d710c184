"""Reading source files."""

from __future__ import annotations

from pathlib import Path

from phobos.diagnostics import PhobosError


def read_source(path: Path) -> str:
    """The text of a source file. Raises PhobosError if it cannot be read or is not UTF-8."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PhobosError.at(None, f"cannot read {path}: {error.strerror or error}") from error
    return decode_source(data, str(path))


def decode_source(data: bytes, name: str) -> str:
    """The text of a source; a byte order mark is dropped. PhobosError if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PhobosError.at(
            None,
            f"{name} is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start}",
            help="a source is plain text; is this a compiled file?",
        ) from error
