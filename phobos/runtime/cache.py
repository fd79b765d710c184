"""The kernel cache: compiled modules on disk, so that a process need not compile them again.

A file an entry, named after its key. A key is a digest of everything that decides the result
(`CompileOptions.key`), so an entry is never out of date, only unused. Entries are written to a
temporary file and renamed, so that a reader sees a whole entry or none, and carry a digest of
their content: what is cut off or altered counts as missing and is written anew. A cache that
cannot be read or written is no error; kernels are compiled then.

The folder is `PHOBOS_CACHE_DIR`, else the user's cache folder; `PHOBOS_CACHE=0` turns the cache
off.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from phobos.diagnostics import PhobosError
from phobos.targets.ptx.contract import Contract, from_json

FOLDER_VARIABLE = "PHOBOS_CACHE_DIR"
SWITCH_VARIABLE = "PHOBOS_CACHE"
OFF = frozenset({"0", "off", "no", "false"})
"""The values of a switch in the environment, in lower case, that turn it off."""

Compiled = tuple[str, Contract]
"""A PTX text and its contract."""


class KernelCache:
    """A folder of compiled modules."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> Compiled | None:
        """The entry of a key, or None if there is no sound one."""
        try:
            entry = json.loads(self._path(key).read_text(encoding="utf-8"))
            body = entry["body"]
            if entry["digest"] != _digest(body):
                return None
            return body["ptx"], from_json(body["contract"])
        except (OSError, ValueError, TypeError, KeyError, RecursionError, PhobosError):
            return None

    def put(self, key: str, compiled: Compiled) -> bool:
        """Store an entry; whether that was possible."""
        ptx, contract = compiled
        body = {"ptx": ptx, "contract": contract.to_json()}
        text = json.dumps({"digest": _digest(body), "body": body})
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, text.encode())
        except OSError:
            return False
        return True

    def get_or_make(
        self, key: str, make: Callable[[], Compiled], keep: Callable[[], bool] = lambda: True
    ) -> Compiled:
        """The entry of a key; `make` gives it where it is missing, and `keep` says if it stays."""
        found = self.get(key)
        if found is None:
            found = make()
            if keep():
                self.put(key, found)
        return found

    def _path(self, key: str) -> Path:
        # Two levels, since some file systems are slow on folders of many files.
        return self.folder / key[:2] / f"{key[2:]}.json"


def default_cache() -> KernelCache | None:
    """The cache that the environment names, or None if it is turned off."""
    if os.environ.get(SWITCH_VARIABLE, "").lower() in OFF:
        return None
    folder = os.environ.get(FOLDER_VARIABLE)
    return KernelCache(Path(folder) if folder else _user_folder() / "phobos" / "kernels")


def replace_file(path: Path, content: bytes) -> None:
    """Write a file as a whole: readers see the old content or the new. OSError if that fails."""
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}")
    # Not by tempfile, whose files nobody else may read, whatever the umask says.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _user_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _digest(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
