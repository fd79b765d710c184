"""Assembling PTX to machine code with NVIDIA's `ptxas`.

`phobos.targets.ptx.cuda_tools` says where `ptxas` is looked for.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from phobos.diagnostics import Note, PhobosError
from phobos.targets.ptx.cuda_tools import find_cuda_tool

_MAX_NOTES = 10


@dataclass(frozen=True, slots=True)
class Assembled:
    """What ptxas made: the machine code, and what it printed (warnings, with `-v` statistics)."""

    cubin: bytes
    log: str

    @property
    def warnings(self) -> tuple[str, ...]:
        """The lines of the log that warn of something.

        Some serious remarks (codes C75xx) come as `info` without being asked for, so that
        everything but the statistics of `-v` counts.
        """
        return tuple(
            line
            for line in self.log.splitlines()
            if line.strip() and not any(word in line for word in _STATISTICS)
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the warnings say, each once: without where in the PTX."""
        said = (_HEAD.sub("", _LINE.sub("", line)).strip() for line in self.warnings)
        return tuple(dict.fromkeys(said))

    @property
    def spills(self) -> dict[str, int]:
        """By kernel, the bytes that each thread spills to memory; empty where `-v` was not given.

        Kernels without spills are left out.
        """
        found = {name: int(stores) for name, stores in _SPILLS.findall(self.log)}
        return {name: stores for name, stores in found.items() if stores}


_SPILLS = re.compile(
    r"Function properties for (\S+)\s+\d+ bytes stack frame, (\d+) bytes spill stores"
)
_HEAD = re.compile(r"^ptxas\s+(?:info|warning)?\s*:\s*|^ptxas \S+; (?:info|warning)\s*:\s*")
_LINE = re.compile(r"(?: in around|, ) ?line \d+")
_STATISTICS = (
    "bytes gmem",
    "Compiling entry function",
    "Function properties for",
    "bytes stack frame",
    "Used ",
    "Compile time",
)


def find_ptxas() -> str:
    """The path of `ptxas`. Raises PhobosError if there is none."""
    found = find_cuda_tool("ptxas")
    if found is not None:
        return found
    raise PhobosError.at(
        None,
        "ptxas is needed to make machine code, and was not found",
        help="pip install nvidia-cuda-nvcc, or put the CUDA toolkit's bin on the PATH",
    )


def assemble(ptx: str, chip: str, flags: tuple[str, ...] = ()) -> Assembled:
    """Assemble a PTX text for a chip; `flags` are passed on to ptxas.

    Raises PhobosError with what ptxas says and the command to repeat, if it refuses the text.
    """
    ptxas = find_ptxas()
    with tempfile.TemporaryDirectory(prefix="phobos-") as folder:
        source, output = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        command = [ptxas, f"-arch={chip}", *flags, str(source), "-o", str(output)]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        log = (finished.stdout + finished.stderr).replace(str(source), "kernel.ptx")
        if finished.returncode == 0:
            return Assembled(output.read_bytes(), log)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    repeat = " ".join(["ptxas", f"-arch={chip}", *flags, "kernel.ptx", "-o", "kernel.cubin"])
    raise PhobosError.at(
        None,
        f"ptxas refuses the PTX for {chip}",
        notes=[Note(line) for line in lines[:_MAX_NOTES]],
        help=f"this is a fault of the compiler; with the PTX in kernel.ptx, repeat it by {repeat}",
    )
