"""The roofline plot: what was achieved, under what the machine can do.

A kernel that does I operations a byte can reach at most min(operations a second, I * bytes a
second); both limits are measured on the machine, by a large copy and large matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.bench.entrants import Contender
from tools.bench.errors import BenchError
from tools.bench.results import Result

if TYPE_CHECKING:
    from tools.bench.worker import Roofs

PRODUCT_TYPES = ("f32", "f16")
"""The types whose matrix products give the upper limits: without and with tensor cores."""
SUFFIXES = (".png", ".svg")
_COLOURS = {
    Contender.PHOBOS: "#c2410c",
    Contender.TORCH: "#1d4ed8",
    Contender.TRITON: "#15803d",
}
_MARKERS = "osD^vP*Xhd<>p8H"
_LEFT_OF_ALL = 0.5
"""Where a case without arithmetic is put: at this share of the smallest intensity."""
_DEFAULT_INTENSITY = 0.1
_FIGURE_INCHES = (9.0, 6.0)
_DOTS_PER_INCH = 150


@dataclass(frozen=True)
class Point:
    """One contender on one problem; `label` names the problem."""

    label: str
    contender: Contender
    intensity: float
    flops_per_second: float


def check_plotting(path: Path) -> None:
    """BenchError if a plot cannot be written there."""
    if path.suffix not in SUFFIXES:
        raise BenchError(f"a plot is written as {' or '.join(SUFFIXES)}, not {path.name}")
    if find_spec("matplotlib") is None:
        raise BenchError("plots need matplotlib, which is not installed (pip install matplotlib)")


def points(results: Sequence[Result]) -> list[Point]:
    """Where the finalists stand.

    A case without arithmetic, such as copy, has intensity 0, which a logarithmic axis has no
    place for. It stands left of all others, at the same share of the slope as of the bandwidth.
    """
    finals = [result for result in results if result.is_final and result.seconds is not None]
    intensities = [result.flops / result.bytes for result in finals if result.flops]
    substitute = _LEFT_OF_ALL * min(intensities, default=_DEFAULT_INTENSITY / _LEFT_OF_ALL)
    found: list[Point] = []
    for result in finals:
        assert result.seconds is not None
        bandwidth = result.bytes / result.seconds.median
        intensity = result.flops / result.bytes if result.flops else substitute
        label = f"{result.case} {result.dtype} {result.size}"
        if not result.flops:
            label += " (no arithmetic)"
        found.append(Point(label, result.contender, intensity, intensity * bandwidth))
    return found


def write_plot(path: Path, results: Sequence[Result], roofs: Roofs) -> None:
    """Draw the results under the machine's roofs, to a PNG or SVG file."""
    # A figure of its own, not one of pyplot's: it needs no display.
    from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports]

    figure = Figure(figsize=_FIGURE_INCHES, layout="constrained")
    _draw(figure.add_subplot(), points(results), roofs)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=_DOTS_PER_INCH)


def _draw(axes: Any, found: Sequence[Point], roofs: Roofs) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    labels = list(dict.fromkeys(point.label for point in found))
    for point in found:
        axes.plot(
            point.intensity,
            point.flops_per_second / 1e12,
            linestyle="none",
            color=_COLOURS[point.contender],
            fillstyle="full" if point.contender is Contender.PHOBOS else "none",
            marker=_marker(labels, point.label),
        )
    _draw_roofs(axes, [point.intensity for point in found], roofs)
    _draw_legend(axes, labels, [c for c in Contender if any(c is p.contender for p in found)])
    axes.set_title(f"Roofline, {roofs.gpu}")
    axes.set_xlabel("arithmetic intensity (FLOP/byte)")
    axes.set_ylabel("TFLOP/s")
    axes.grid(visible=True, which="both", alpha=0.2)


def _marker(labels: Sequence[str], label: str) -> str:
    return _MARKERS[labels.index(label) % len(_MARKERS)]


def _draw_legend(axes: Any, labels: Sequence[str], contenders: Sequence[Contender]) -> None:
    """Colours stand for contenders, markers for problems."""
    for contender in contenders:
        axes.plot([], [], linewidth=6, color=_COLOURS[contender], label=str(contender))
    for label in labels:
        axes.plot(
            [], [], linestyle="none", color="grey", marker=_marker(labels, label), label=label
        )
    axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _draw_roofs(axes: Any, intensities: Sequence[float], roofs: Roofs) -> None:
    """The slope of the bandwidth up to the highest limit, and each limit from the slope on."""
    bandwidth = roofs.bytes_per_second
    highest = max(roofs.flops_per_second.values())
    left = min(intensities, default=_DEFAULT_INTENSITY) / 2
    ridge = highest / bandwidth
    right = 2 * max(*intensities, ridge)
    axes.plot([left, ridge], [left * bandwidth / 1e12, highest / 1e12], color="black")
    middle = math.sqrt(left * ridge)
    axes.annotate(
        f"{bandwidth / 1e12:.2f} TB/s (copy)",
        (middle, middle * bandwidth / 1e12),
        xytext=(-6, 6),
        textcoords="offset points",
        fontsize="small",
        ha="right",
    )
    for dtype, limit in roofs.flops_per_second.items():
        axes.plot([limit / bandwidth, right], [limit / 1e12] * 2, color="black")
        axes.annotate(
            f"{limit / 1e12:.0f} TFLOP/s ({dtype} product)",
            (right, limit / 1e12),
            xytext=(0, 4),
            textcoords="offset points",
            fontsize="small",
            ha="right",
        )
