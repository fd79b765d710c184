"""The legal forms of an instruction, declared as rows of a table.

A form is a pattern of suffixes, the signature they share, and what they need: a capability of the
chip (a boolean field of `phobos.targets.ptx.chips.Chip`) and the first PTX version that has them.

A pattern is slots joined by dots. A slot is one qualifier, or alternatives in braces, and is
optional with a question mark: ``{rn|rz|rm|rp}?.ftz?.sat?.f32``. Numbers of a shape may be given as
ranges from, to and step: ``m64n{8..24/8,32..256/16}k32``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from phobos.dialects.ptx.signatures import ANY_NUMBER, Signature, resolve_signature

Version = tuple[int, int]
"""A PTX ISA version, major then minor."""

OLDEST: Version = (6, 3)
"""The first PTX version that targets sm_75; everything older is present everywhere."""


_Slots = tuple[tuple[tuple[str, ...], bool], ...]
"""Alternatives of each slot, and whether it may be left out."""

_SLOT = re.compile(r"(?:\{[^}]*\}|[^.{}])+")

_RANGES = re.compile(r"(.*)\{(\d+\.\.[^}]*)\}(.*)")
"""A slot with numbers in ranges: what stands before them, the ranges, what stands behind."""


@dataclass(frozen=True, eq=False)
class Form:
    """One row: which suffixes, which operands, and what they need."""

    pattern: str
    signature: str
    needs: str | None = None
    since: Version = OLDEST

    @cached_property
    def _slots(self) -> _Slots:
        if not self.pattern:
            return ()
        slots: list[tuple[tuple[str, ...], bool]] = []
        for text in re.findall(_SLOT, self.pattern):
            optional = text.endswith("?")
            slots.append((_alternatives(text.rstrip("?")), optional))
        return tuple(slots)

    def matches(self, suffix: str) -> bool:
        """Whether this suffix is of the form."""
        return not suffix.endswith(".") and _spells(self._slots, suffix)

    @property
    def takes_any_number(self) -> bool:
        """Whether there may be any number of some registers."""
        return ANY_NUMBER in self.signature

    def resolve(self, suffix: str, many: int = 0) -> Signature:
        """The operands of this form with one concrete suffix.

        ``many`` is how many registers there are where there may be any number.
        """
        return resolve_signature(self.signature, suffix, many if self.takes_any_number else 0)

    def suffixes(self) -> Iterator[str]:
        """Every suffix of the form, in table order."""
        choices = [(*a, None) if optional else a for a, optional in self._slots]
        for combination in itertools.product(*choices):
            yield ".".join(part for part in combination if part is not None)

    def sample(self) -> Iterator[str]:
        """A few suffixes that together use every alternative of every slot at least once.

        Of numbers in ranges the first and the last stand for all.
        """
        choices = [(*a, None) if optional else a for a, optional in self._slots]
        if ".." in self.pattern:
            texts = re.findall(_SLOT, self.pattern)
            choices = [
                (c[0], c[-1]) if ".." in text else c for c, text in zip(choices, texts, strict=True)
            ]
        rounds = max((len(c) for c in choices), default=1)
        seen: set[str] = set()
        for index in range(rounds):
            picked = (c[index % len(c)] for c in choices)
            suffix = ".".join(part for part in picked if part is not None)
            if suffix not in seen:
                seen.add(suffix)
                yield suffix


def _alternatives(text: str) -> tuple[str, ...]:
    """The qualifiers that the text of a slot stands for."""
    match = _RANGES.fullmatch(text)
    if match is None:
        return tuple(text.strip("{}").split("|"))
    before, ranges, behind = match.groups()
    found: list[str] = []
    for part in ranges.split(","):
        first, last, step = map(int, re.split(r"\.\.|/", part))
        found += [f"{before}{number}{behind}" for number in range(first, last + 1, step)]
    return tuple(found)


def _spells(slots: _Slots, suffix: str) -> bool:
    """Whether some choice from the slots is this suffix.

    A regular expression would take longer to compile than its one or two uses take here.
    """
    if not slots:
        return not suffix
    (alternatives, optional), rest = slots[0], slots[1:]
    for text in alternatives:
        after = suffix[len(text) :]
        if suffix.startswith(text) and after[:1] in ("", ".") and _spells(rest, after[1:]):
            return True
    return optional and _spells(rest, suffix)
