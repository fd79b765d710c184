"""Classes of instructions, as a profile counts them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from phobos.targets.ptx.parse.records import Instruction


class InstructionClass(Enum):
    """What part of a GPU an instruction keeps busy; the value heads a column."""

    INTEGER = "integer"
    FLOAT = "float"
    SPECIAL = "special"
    TENSOR = "tensor"
    CONVERT = "convert"
    MOVE = "move"
    GLOBAL = "global"
    SHARED = "shared"
    LOCAL = "local"
    ATOMIC = "atomic"
    WARP = "warp"
    BARRIER = "barrier"
    CONTROL = "control"


_BY_OPCODE: Mapping[str, InstructionClass] = {
    **dict.fromkeys(
        ("ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt"), InstructionClass.SPECIAL
    ),
    **dict.fromkeys(("mma", "wmma"), InstructionClass.TENSOR),
    "cvt": InstructionClass.CONVERT,
    **dict.fromkeys(("mov", "selp", "slct", "cvta", "prmt"), InstructionClass.MOVE),
    **dict.fromkeys(("ldmatrix", "stmatrix"), InstructionClass.SHARED),
    **dict.fromkeys(("atom", "red"), InstructionClass.ATOMIC),
    **dict.fromkeys(
        ("shfl", "vote", "match", "redux", "activemask", "elect", "movmatrix"),
        InstructionClass.WARP,
    ),
    **dict.fromkeys(
        ("bar", "barrier", "membar", "fence", "mbarrier", "nanosleep"), InstructionClass.BARRIER
    ),
    **dict.fromkeys(
        ("bra", "brx", "call", "ret", "exit", "trap", "brkpt"), InstructionClass.CONTROL
    ),
}
_MEMORY = frozenset({"ld", "ldu", "st", "prefetch", "cp"})


def class_of(instruction: Instruction) -> InstructionClass:
    """The class of an instruction. Generic addressing counts as global."""
    if instruction.opcode == "wgmma":
        is_product = instruction.suffix[:1] == ("mma_async",)
        return InstructionClass.TENSOR if is_product else InstructionClass.BARRIER
    found = _BY_OPCODE.get(instruction.opcode)
    if found is not None:
        return found
    parts = {part.split("::")[0] for part in instruction.suffix}
    if instruction.opcode in _MEMORY:
        if "global" in parts:
            return InstructionClass.GLOBAL
        if "shared" in parts:
            return InstructionClass.SHARED
        if "param" in parts or "const" in parts:
            return InstructionClass.MOVE
        return InstructionClass.LOCAL if "local" in parts else InstructionClass.GLOBAL
    floats = ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64", "f32x2")
    is_float = any(part in floats for part in instruction.suffix)
    return InstructionClass.FLOAT if is_float else InstructionClass.INTEGER
