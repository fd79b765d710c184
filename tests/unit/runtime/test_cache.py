"""The kernel cache: entries come back whole or not at all."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from phobos.runtime.cache import KernelCache, default_cache, replace_file
from tests.support.launching import SAXPY, SAXPY_PTX, contract_of

KEY = "ab" + "c" * 62
COMPILED = (SAXPY_PTX, contract_of(SAXPY))


def entry_file(folder: Path) -> Path:
    (path,) = folder.rglob("*.json")
    return path


def test_an_entry_comes_back(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path / "new" / "folder")
    assert cache.get(KEY) is None
    assert cache.put(KEY, COMPILED)
    assert KernelCache(cache.folder).get(KEY) == COMPILED
    assert cache.get("00" + KEY[2:]) is None


def test_making_happens_once(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    made: list[int] = []

    def make() -> tuple[str, object]:
        made.append(1)
        return COMPILED

    assert cache.get_or_make(KEY, make) == COMPILED  # pyright: ignore[reportArgumentType]
    assert cache.get_or_make(KEY, make) == COMPILED  # pyright: ignore[reportArgumentType]
    assert made == [1]


def cut_off(text: str) -> str:
    return text[: len(text) // 2]


def altered(text: str) -> str:
    return text.replace("fma.rn.f32", "add.rn.f32")


def of_another_format(text: str) -> str:
    entry = json.loads(text)
    entry["body"]["contract"]["format"] = 99
    return json.dumps(entry)


def emptied(text: str) -> str:
    return text[:0]


def made_a_list(text: str) -> str:
    return json.dumps([text])


@pytest.mark.parametrize("damage", [cut_off, altered, of_another_format, emptied, made_a_list])
def test_a_damaged_entry_counts_as_missing_and_is_made_anew(
    tmp_path: Path, damage: Callable[[str], str]
) -> None:
    cache = KernelCache(tmp_path)
    cache.put(KEY, COMPILED)
    path = entry_file(tmp_path)
    path.write_text(damage(path.read_text()))
    assert cache.get(KEY) is None
    assert cache.get_or_make(KEY, lambda: COMPILED) == COMPILED
    assert cache.get(KEY) == COMPILED


def test_bytes_that_are_no_text_count_as_missing(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    cache.put(KEY, COMPILED)
    entry_file(tmp_path).write_bytes(b"\xff\x00" * 100)
    assert cache.get(KEY) is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    cache = KernelCache(tmp_path / "file" / "below")
    assert cache.put(KEY, COMPILED) is False
    assert cache.get_or_make(KEY, lambda: COMPILED) == COMPILED


def test_the_environment_names_the_folder_or_turns_the_cache_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PHOBOS_CACHE", raising=False)
    monkeypatch.setenv("PHOBOS_CACHE_DIR", str(tmp_path / "here"))
    cache = default_cache()
    assert cache is not None
    assert cache.folder == tmp_path / "here"
    monkeypatch.delenv("PHOBOS_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = default_cache()
    assert cache is not None
    assert cache.folder.parts[-2:] == ("phobos", "kernels")
    monkeypatch.setenv("PHOBOS_CACHE", "0")
    assert default_cache() is None


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.ptx"
    path.write_text("old")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
def test_a_replaced_file_has_the_usual_mode(tmp_path: Path) -> None:
    usual, replaced = tmp_path / "usual", tmp_path / "replaced"
    usual.write_bytes(b"")
    replace_file(replaced, b"")
    assert stat.S_IMODE(replaced.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)


def test_a_failed_replacement_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        replace_file(folder, b"new")
    assert list(tmp_path.iterdir()) == [folder]
