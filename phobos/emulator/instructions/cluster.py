"""What CTAs of a cluster, and warps of a CTA, share out: addresses and registers."""

from __future__ import annotations

from phobos.emulator.decode import Operands, Step
from phobos.emulator.instructions.memory import do_nothing
from phobos.emulator.instructions.registry import decodes

_REGISTER_COUNTS = range(24, 257, 8)


@decodes("setmaxnreg")
def _setmaxnreg(ops: Operands) -> Step:
    """Registers are dealt by the assembler; the emulator only looks at the number."""
    ops.expect_count(1)
    suffix = ops.instruction.suffix
    if suffix not in (("inc", "sync", "aligned", "u32"), ("dec", "sync", "aligned", "u32")):
        ops.refuse("takes the form setmaxnreg.{inc,dec}.sync.aligned.u32")
    count = ops.immediate(0, "the number of registers")
    if count not in _REGISTER_COUNTS:
        ops.refuse(f"takes multiples of 8 from 24 to 256, got {count}")
    return do_nothing
