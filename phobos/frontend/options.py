"""What a caller chooses about the translation of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from phobos.diagnostics import SourceMap


@dataclass(frozen=True)
class FrontendOptions:
    """What a caller chooses about the translation of a program.

    `constants` gives `@autotune` names other values, `kernel` takes one kernel of the file,
    `index_bits` is 32 or 64 (None leaves it to the compiler). With `assertions`, `assert` and
    `print` are translated and not left out. `sources` receives the text and the spans that later
    errors underline.
    """

    constants: Mapping[str, int | float] = field(default_factory=dict)
    kernel: str | None = None
    index_bits: int | None = None
    assertions: bool = False
    sources: SourceMap = field(default_factory=SourceMap)
