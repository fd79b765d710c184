"""Machine code by kind of instruction, as nvdisasm lists it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from phobos.explain.records import Mix
from phobos.targets.ptx.cuda_tools import find_cuda_tool

DISASSEMBLER = "nvdisasm"
PACKAGE = "nvidia-cuda-nvdisasm"

_SECTION = re.compile(r"^\.text\.([^:\s]+):")
_LABEL = re.compile(r"^(\.L_x_\d+):")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)(\S*)(.*)")
_LINE = re.compile(r"^\s*//## File \"[^\"]*\", line (\d+)")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")
_BRANCH = "BRA"
_MANY_LOOPS = 4
_PADDING = re.compile(r"\bNOP\b|@!PT ")
"""What is never executed: filling, and instructions that only keep others apart."""

_KINDS = {
    "control": "BRA BRX JMP EXIT RET CALL BSSY BSYNC BREAK BPT WARPSYNC YIELD NANOSLEEP",
    "move": "MOV MOV32I UMOV CS2R S2R S2UR R2UR R2P P2R SEL FSEL USEL PRMT UPRMT VOTE VOTEU PLOP3 "
    "UPLOP3",
    "integer": "IMAD IADD3 IADD IMUL LEA LOP3 SHF SHL SHR ISETP IMNMX VIMNMX VIADD IABS POPC FLO "
    "BREV BMSK SGXT IDP VABSDIFF UIMAD UIADD3 ULEA ULOP3 USHF UISETP UIMNMX ULDC LDC LDCU I2IP "
    "UFLO UPOPC UBREV USGXT UVIMNMX UI2UR UI2I",
    "convert": "I2F F2I F2F F2FP I2FP I2I FRND UI2F UF2I",
}
"""Instructions that are counted together; all others (FFMA, HMMA, LDG, BAR ...) by their name."""
_KIND_OF = {opcode: kind for kind, opcodes in _KINDS.items() for opcode in opcodes.split()}


@dataclass
class _Code:
    """One kernel's instructions in order, and where its labels stand."""

    opcodes: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    targets: dict[int, str] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)

    def loops(self) -> Iterator[tuple[int, int]]:
        """Backward branches as (first, last) instruction; a branch to itself is padding."""
        for place, label in self.targets.items():
            first = self.labels.get(label, place)
            if first < place:
                yield first, place


def disassemble(cubin: bytes) -> dict[str, tuple[Mix, ...]] | str:
    """For each kernel the mix of the whole and of its innermost loops.

    A loop is named by the line of the branch at its end. Where instructions cannot be listed,
    the reason in words.
    """
    tool = find_cuda_tool(DISASSEMBLER)
    if tool is None:
        return f"no {DISASSEMBLER} to list machine instructions with: pip install {PACKAGE}"
    with tempfile.TemporaryDirectory(prefix="phobos-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        done = subprocess.run(
            [tool, "-g", "-c", str(path)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        said = " ".join((done.stderr + done.stdout).split())
        return f"{tool} cannot read the machine code: {said[:200]}"
    return {name: tuple(_mixes(code)) for name, code in parse_listing(done.stdout).items()}


def parse_listing(text: str) -> dict[str, _Code]:
    """The kernels of a listing of nvdisasm."""
    kernels: dict[str, _Code] = {}
    code, number = _Code(), 0
    for line in text.splitlines():
        section, label = _SECTION.match(line), _LABEL.match(line)
        if (place := _LINE.match(line)) is not None:
            number = int(place[1])
        elif section is not None:
            code = kernels.setdefault(section[1], _Code())
        elif label is not None:
            code.labels[label[1]] = len(code.opcodes)
        elif (found := _INSTRUCTION.match(line)) is not None and not _PADDING.search(line):
            target = _TARGET.search(found[3])
            if found[1] == _BRANCH and target is not None:
                code.targets[len(code.opcodes)] = target[1]
            code.opcodes.append(found[1])
            code.lines.append(number)
    return kernels


def _mixes(code: _Code) -> Iterator[Mix]:
    yield _mix(None, code.opcodes)
    loops = list(code.loops())
    longest: dict[int, tuple[int, int]] = {}
    for first, last in loops:
        is_innermost = not any(
            other != (first, last) and first <= other[0] and other[1] <= last for other in loops
        )
        line = code.lines[last]
        known = longest.get(line, (0, -1))
        # A loop that was unrolled has another behind it, for what is left.
        if is_innermost and last - first > known[1] - known[0]:
            longest[line] = first, last
    by_length = sorted(longest.items(), key=lambda item: item[1][0] - item[1][1])
    for line, (first, last) in sorted(by_length[:_MANY_LOOPS]):
        yield _mix(line, code.opcodes[first : last + 1])


def _mix(line: int | None, opcodes: list[str]) -> Mix:
    counts = Counter(_KIND_OF.get(opcode, opcode) for opcode in opcodes)
    kinds = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Mix(line, len(opcodes), tuple(kinds))
