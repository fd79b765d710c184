"""How compile time grows with a program: a kernel whose body is repeated.

Each copy of the body has names of its own and works one CTA further on, so that no copy is found
to compute what another one has computed.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools.bench.errors import BenchError
from tools.bench.spread import Spread, spread
from tools.bench.table import make_table, time_text

if TYPE_CHECKING:
    from rich.table import Table

COPIES = (1, 2, 4, 8, 16)
_KERNEL = re.compile(r"(?P<head>.*kernel\s+\w+\([^)]*\)\s*\{\n)(?P<body>.*)\}\s*", re.DOTALL)
_NAME = re.compile(r"\b(?:let|var)\s+(\w+)")


@dataclass(frozen=True)
class Growth:
    """The times from text to PTX of one program, by the number of copies of its body."""

    program: str
    seconds: dict[int, Spread]


def repeated(text: str, copies: int) -> str:
    """A program of one kernel with its body repeated. BenchError if there is no such kernel."""
    found = _KERNEL.fullmatch(text)
    if found is None:
        raise BenchError("only a program of one kernel can have its body repeated")
    body = found["body"]
    names = set(_NAME.findall(body))
    parts = [_renamed(body, names, number) for number in range(copies)]
    return f"{found['head']}{''.join(parts)}}}\n"


def _renamed(body: str, names: set[str], number: int) -> str:
    if number == 0:
        return body
    for name in names:
        body = re.sub(rf"(?<![.\w]){name}\b", f"{name}_{number}", body)
    return body.replace("ctx.block.x", f"(ctx.block.x + {number})")


def measure_growth(path: Path, chip: str, repeats: int) -> Growth:
    """Phobos in this process, from text to PTX, after one compilation that warms up."""
    from phobos.driver.compilation import compile_text
    from phobos.driver.modules import read_source
    from phobos.driver.options import make_options

    text, options = read_source(path), make_options(chip=chip)
    compile_text(text, path.name, options)
    longer = {copies: repeated(text, copies) for copies in COPIES}
    samples: dict[int, list[float]] = {copies: [] for copies in COPIES}
    # In turns, so that what else the machine does for a while slows all lengths alike.
    for _ in range(repeats):
        for copies in COPIES:
            gc.collect()
            started = time.perf_counter()
            compile_text(longer[copies], path.name, options)
            samples[copies].append(time.perf_counter() - started)
    return Growth(path.name, {copies: spread(own) for copies, own in samples.items()})


def growth_table(growths: Sequence[Growth], chip: str) -> Table:
    """One line a program: the medians, and the time of 16 copies over 16 times that of one."""
    table = make_table(
        f"Compile times for {chip} of bodies that are repeated, medians",
        ("program", *(f"x{copies}" for copies in COPIES), "per copy"),
        right=range(1, 2 + len(COPIES)),
    )
    first, last = COPIES[0], COPIES[-1]
    for growth in growths:
        medians = {copies: one.median for copies, one in growth.seconds.items()}
        share = medians[last] / last / (medians[first] / first)
        cells = [time_text(medians[copies]) for copies in COPIES]
        table.add_row(growth.program, *cells, f"{share:.2f}")
    return table
