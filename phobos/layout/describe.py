"""Layouts in words, for people who read dumps."""

from __future__ import annotations

from phobos.layout.linear import LinearLayout
from phobos.layout.queries import contiguous_vector


def describe(layout: LinearLayout) -> str:
    """Say what a layout does, one clause an input.

    >>> text = "register=[[0, 1], [0, 2]] lane=[[0, 4], [1, 0], [0, 0]] warp=[[2, 0]] -> [4, 8]"
    >>> print(describe(LinearLayout.parse(text)))
    4x8 tile: 4 registers hold 4 consecutive elements of axis 1; 8 lanes span 2 of axis 1 \
(step 4), 2 of axis 0, 2 copies; 2 warps span 2 of axis 0 (step 2)
    """
    sizes = "x".join(map(str, layout.shape)) or "scalar"
    clauses = [_clause(layout, name) for name in layout.in_names if layout.in_bits(name)] or [
        "one element a thread"
    ]
    return f"{sizes} tile: " + "; ".join(clauses)


def _clause(layout: LinearLayout, name: str) -> str:
    noun = f"{layout.in_size(name)} {name}s"
    vectors = layout.bases(name)
    parts: list[str] = []
    first = 0
    for axis in range(layout.rank):
        width = contiguous_vector(layout, axis, name)
        if width > 1:
            parts.append(f"{width} consecutive elements of axis {axis}")
            first = width.bit_length() - 1
    parts.extend(_spans(vectors[first:]))
    verb = "hold" if first else "span"
    return f"{noun} {verb} {', '.join(parts)}"


def _spans(vectors: tuple[tuple[int, ...], ...]) -> list[str]:
    """Runs of bits that continue along one axis, as text."""
    runs: list[tuple[str, int, int]] = []  # where, first step, number of bits
    for vector in vectors:
        where, step = _direction(vector)
        if runs and runs[-1][0] == where and step == runs[-1][1] << runs[-1][2]:
            runs[-1] = (where, runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((where, step, 1))
    return [_run_text(*run) for run in runs]


def _direction(vector: tuple[int, ...]) -> tuple[str, int]:
    axes = [axis for axis, value in enumerate(vector) if value]
    if not axes:
        return "copies", 0
    if len(axes) == 1 and vector[axes[0]].bit_count() == 1:
        return f"of axis {axes[0]}", vector[axes[0]]
    return f"at XOR {list(vector)}", 0


def _run_text(where: str, step: int, bits: int) -> str:
    suffix = f" (step {step})" if step > 1 else ""
    return f"{1 << bits} {where}{suffix}"
