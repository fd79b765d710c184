"""When a module needs 64-bit indices whatever was asked for.

The launch ABI promises it: one kernel that needs them widens its whole module, and asking for
32 bits never narrows it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr

from phobos.dialects.atomics import LoadAcquireOp, StoreReleaseOp
from phobos.ir.kernel import kernels
from phobos.targets.ptx.chips import chip

WIDE_INDEX = 64
_TENSORCORE = "phobos.tensorcore"
_STAYS_NARROW = "wmma"


def needs_wide_index(module: ModuleOp, chip_name: str) -> bool:
    """Whether a kernel orders memory for the system or stages tensor-core operands.

    The first is true of `load_acquire` and `store_release`, the second on chips with asynchronous
    copies of each form of `@tensorcore` but `wmma`.
    """
    if any(isinstance(op, LoadAcquireOp | StoreReleaseOp) for op in module.walk()):
        return True
    if not chip(chip_name).has_cp_async:
        return False
    forms = (kernel.attributes.get(_TENSORCORE) for kernel in kernels(module))
    return any(
        isinstance(form, StringAttr) and form.data.split()[:1] != [_STAYS_NARROW] for form in forms
    )
