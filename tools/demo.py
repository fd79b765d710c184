"""Runs saxpy from its source to checked numbers, with the two command-line tools.

`make demo` calls this. It needs no GPU: the PTX that the compiler writes runs on the emulator.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("examples/saxpy_fp32.ph")
OUT = Path("build/demo")
BLOCK = 1024
N = 10_000
ALPHA = 2.0


def main() -> int:
    """Run the demonstration; returns the exit code."""
    (ROOT / OUT).mkdir(parents=True, exist_ok=True)
    ptx, x, y, out = (OUT / name for name in ("saxpy.ptx", "x.npy", "y.npy", "out.npy"))

    heading("1. The kernel")
    print(f"{SOURCE} computes out = alpha * x + y, one tile of BLOCK elements a CTA:\n")
    print(indented(program_text(ROOT / SOURCE)))

    heading("2. Compile it")
    run_tool("phobos-compile", SOURCE, "--chip", "sm_80", "--set", f"BLOCK={BLOCK}", "-o", ptx)
    describe_compilation(ROOT / ptx)

    heading("3. Run it on the CPU")
    rng = np.random.default_rng(0)
    for path in (x, y):
        np.save(ROOT / path, rng.standard_normal(N).astype(np.float32))
    print(f"x and y hold {N:,} random numbers each. The emulator executes the PTX of every")
    print("thread, just as a GPU would, and checks each memory access on the way.\n")
    run_tool(
        "phobos-run", SOURCE, "--device", "emulator", "--chip", "sm_80", "--set", f"BLOCK={BLOCK}",
        "--arg", f"alpha={ALPHA}", "--load", f"x={x}", "--load", f"y={y}", "--save", f"out={out}",
    )  # fmt: skip

    heading("4. Check the result")
    result, xs, ys = (np.load(ROOT / path) for path in (out, x, y))
    expected = np.float64(ALPHA) * xs + ys
    error = float(np.max(np.abs(result - expected)))
    print(f"out[:4] is {result[:4]}, NumPy says {expected[:4].astype(np.float32)}.")
    if not error <= 1e-6:
        print(f"They differ by {error:.1e}, more than rounding explains: the demonstration FAILED.")
        return 1
    print(f"The largest difference over all {N:,} elements is {error:.1e}: rounding, as expected")
    print("of 32-bit floats.")
    print("\nDone. README.md says where to go from here; docs/language.md teaches the language.")
    return 0


def heading(text: str) -> None:
    """Print a section's title."""
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def indented(text: str) -> str:
    """The text, each line four columns to the right."""
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def program_text(path: Path) -> str:
    """A source without the comment that introduces it."""
    lines = path.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line and line[:2] != "//")
    return "\n".join(lines[start:])


def run_tool(name: str, *arguments: str | Path) -> None:
    """Show a command and run it; ends the demonstration if it fails."""
    words = [name, *map(str, arguments)]
    print("    $ " + " \\\n          ".join(command_lines(words)), flush=True)
    tool = Path(sys.executable).parent / name
    finished = subprocess.run([tool, *words[1:]], cwd=ROOT, check=False)
    if finished.returncode != 0:
        print(f"{name} failed with exit code {finished.returncode}.", file=sys.stderr)
        raise SystemExit(1)


def command_lines(words: list[str]) -> list[str]:
    """A command in lines that fit a terminal; an option stays with its value."""
    tied = (f"{word}\N{NO-BREAK SPACE}" if word.startswith("-") else f"{word} " for word in words)
    lines = textwrap.wrap("".join(tied), 84, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ").rstrip() for line in lines]


def describe_compilation(ptx: Path) -> None:
    """Say what the compiler wrote."""
    text = ptx.read_text()
    contract = json.loads(ptx.with_suffix(".json").read_text())
    kernel = contract["kernels"][0]
    instructions = sum(line.rstrip().endswith(";") and "." in line for line in body_lines(text))
    print(
        f"\nIt wrote {ptx.relative_to(ROOT)}: {instructions} instructions for {contract['chip']}."
    )
    print(f"Beside it is {ptx.with_suffix('.json').name}, the launch contract. It says to launch")
    print(f"`{kernel['name']}` with {kernel['threads']} threads a CTA, on this grid of CTAs:")
    print(f"({', '.join(kernel['grid'])}).")


def body_lines(ptx: str) -> list[str]:
    """The lines between the braces of the first entry that are no declarations."""
    lines = ptx[ptx.index("\n{") : ptx.rindex("}")].splitlines()
    return [line for line in lines if not line.strip().startswith((".", "//"))]


if __name__ == "__main__":
    sys.exit(main())
