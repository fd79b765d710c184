"""Where what `phobos-compile` makes goes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from phobos.diagnostics import PhobosError
from phobos.driver.levels import Level
from phobos.record import Value, record
from phobos.runtime.cache import replace_file

STANDARD = "-"
_CONTRACT_SUFFIX = ".json"
_FILE_LEVELS = {Level.PTX: ".ptx", Level.CUBIN: ".cubin"}
"""Levels that go to a file beside the source unless -o says otherwise, and its ending."""


@record
class Output(Value):
    """A level to write, and the file; None is standard output."""

    level: Level
    path: Path | None


def place_outputs(source: Path | None, output: str | None, level: Level) -> tuple[Output, ...]:
    """What to write and where, for `--emit LEVEL` and `-o OUTPUT`.

    `source` is the file compiled, or None for standard input. PTX that goes to a file has its
    contract beside it. Raises PhobosError if an output would overwrite the source or another, or
    is a folder.
    """
    path = _output_path(source, output, level)
    outputs = [Output(level, path)]
    if path is not None and level is Level.PTX:
        outputs.append(Output(Level.CONTRACT, path.with_suffix(_CONTRACT_SUFFIX)))
    paths = [one.path for one in outputs if one.path is not None]
    if source is not None and any(_is_same(path, source) for path in paths):
        raise PhobosError.at(
            None, f"the output would overwrite {source}", help="name another file with -o"
        )
    if len(set(paths)) < len(paths):
        raise PhobosError.at(
            None,
            f"the launch contract goes to {paths[0]} too",
            help="give the PTX another ending than .json",
        )
    return tuple(outputs)


def _output_path(source: Path | None, output: str | None, level: Level) -> Path | None:
    if output == STANDARD:
        return None
    if output is not None:
        path = Path(output)
        if path.is_dir():
            raise PhobosError.at(
                None, f"{output} is a folder", help="name the file to write with -o"
            )
        return path
    if source is None or level not in _FILE_LEVELS:
        return None
    return source.with_suffix(_FILE_LEVELS[level])


def _is_same(path: Path, source: Path) -> bool:
    return path == source or (path.exists() and source.exists() and path.samefile(source))


def write_outputs(outputs: Sequence[Output], levels: Mapping[Level, str | bytes]) -> None:
    """Write each output as a whole. Raises PhobosError if a file cannot be written."""
    for output in outputs:
        content = levels[output.level]
        data = content.encode() if isinstance(content, str) else content
        if output.path is None:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            continue
        try:
            _write(output.path, data)
        except OSError as error:
            reason = error.strerror or str(error)
            raise PhobosError.at(None, f"cannot write {output.path}: {reason}") from error


def _write(path: Path, data: bytes) -> None:
    """Write a file; one that is no regular file (`/dev/null`, a pipe) is written into."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
    else:
        replace_file(path, data)
