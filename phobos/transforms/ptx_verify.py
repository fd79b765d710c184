"""`ph-ptx-verify`: refuse what the chip lacks, before ptxas does.

    ptx.module @m sm_75 {
      ptx.entry @k() {                      error: `redux.sync.add.u32` does not exist on sm_75
        %s = ptx.redux sync.add.u32 ...     help: sm_80, sm_86, sm_89, sm_90 and sm_120 have it

Checks every instruction against its forms and the chip's capabilities, the limits of kernels,
shared memory, bulk copies and their barriers, and that definitions dominate uses; with
``require_locations`` also that every operation knows the source line it comes from. Reports all
violations (up to twenty). Changes nothing. Precondition: ptx modules. Cost: one walk, about 2 us an
instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from phobos.diagnostics import MAX_ERRORS, Diagnostic, PhobosError
from phobos.dialects.ptx import (
    AssertFailOp,
    BraOp,
    CondBraOp,
    EntryOp,
    ExitOp,
    ImmOp,
    Instruction,
    ParamAddressOp,
    ParamOp,
    PrintfOp,
    PtxModuleOp,
    RegisterType,
    RetOp,
    SharedOp,
    SymbolOp,
    is_instruction,
)
from phobos.ir.dominance import check_dominance
from phobos.ir.locations import location_of
from phobos.ir.views import operands_of, operations
from phobos.targets.ptx.chips import CHIPS, MAX_STATIC_SHARED, MAX_THREADS, Chip, chip
from phobos.targets.ptx.legality import (
    MAX_CLUSTER,
    MAX_PARAMETER_BYTES,
    chips_with,
    parameter_bytes,
)
from phobos.targets.ptx.tensor_maps import cluster_of
from phobos.transforms.ptx_verify_copies import copy_violations


@dataclass(frozen=True)
class PtxVerifyPass(ModulePass):
    """Checks that a chip can run what a ptx module says."""

    name = "ph-ptx-verify"

    require_locations: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check every ptx module; PhobosError with all violations."""
        for module in op.body.block.ops:
            if isinstance(module, PtxModuleOp):
                verify_module(module, require_locations=self.require_locations)


def verify_module(module: PtxModuleOp, *, require_locations: bool = False) -> None:
    """Check one ptx module; PhobosError with all violations."""
    errors = list(_violations(module, chip(module.chip)))
    if require_locations:
        errors.extend(_unknown_locations(module))
    if errors:
        raise PhobosError(errors[:MAX_ERRORS])
    check_dominance(module)


def _violations(module: PtxModuleOp, target: Chip) -> Iterator[Diagnostic]:
    shared = 0
    for op in module.body.ops:
        match op:
            case SharedOp():
                yield from _name_violations(op)
                shared += op.size
            case EntryOp():
                yield from _name_violations(op)
                yield from _entry_violations(op, target)
            case _:
                yield _error(op, f"`{op.name}` is not something a PTX module can hold")
    if shared > MAX_STATIC_SHARED:
        yield Diagnostic.error(
            f"the variables in shared memory take {shared} bytes; the limit is "
            f"{MAX_STATIC_SHARED} for memory of fixed size",
            location_of(module),
            help=f"memory sized at launch (`@dynshared`) can take {target.max_dynamic_shared} "
            f"bytes on {target.name}",
        )


_NAME = re.compile(r"(?!WARP_SZ\Z)([a-zA-Z]|[_$][\w$])[\w$]*", re.ASCII)
"""What PTX takes as a name; it knows no reserved word but the one."""


def _name_violations(op: EntryOp | SharedOp) -> Iterator[Diagnostic]:
    names = [op.sym_name]
    if isinstance(op, EntryOp):
        names += [parameter.name for parameter in op.parameters]
    for name in names:
        if _NAME.fullmatch(name) is None:
            yield _error(op, f"`{name}` is no name that PTX can have")


def _entry_violations(entry: EntryOp, target: Chip) -> Iterator[Diagnostic]:
    size = parameter_bytes(entry.parameters)
    if size > MAX_PARAMETER_BYTES:
        yield _error(
            entry,
            f"the parameters of `{entry.sym_name}` take {size} bytes; the limit is "
            f"{MAX_PARAMETER_BYTES}",
        )
    threads = prod(entry.maxntid or ())
    if not 1 <= threads <= MAX_THREADS:
        yield _error(entry, f"a block of {threads} threads; the limit is {MAX_THREADS}")
    yield from _cluster_violations(entry, prod(cluster_of(entry)), target)
    legal: set[tuple[object, ...]] = set()
    for block in entry.body.blocks:
        for op in operations(block):
            if not is_instruction(op):
                yield from _other_violations(op, entry)
            elif _signature(op) not in legal:
                violation = _instruction_violation(op, target)
                if violation is not None:
                    yield violation
                elif not op.properties.keys() - {"suffix"}:
                    legal.add(_signature(op))
                if isinstance(op, ParamOp | ParamAddressOp):
                    yield from _parameter_violations(op, entry)
                else:
                    yield from copy_violations(op, entry)


def _cluster_violations(entry: EntryOp, blocks: int, target: Chip) -> Iterator[Diagnostic]:
    if blocks > 1 and not target.has_clusters:
        owners = [record.name for record in CHIPS.values() if record.has_clusters]
        yield Diagnostic.error(
            f"`{entry.sym_name}` needs clusters, which {target.name} does not have",
            location_of(entry),
            help=f"{_listed(owners)} them",
        )
    elif blocks > MAX_CLUSTER:
        yield _error(entry, f"a cluster of {blocks} blocks; the limit is {MAX_CLUSTER}")


def _parameter_violations(op: ParamOp | ParamAddressOp, entry: EntryOp) -> Iterator[Diagnostic]:
    if op.immediates[0] >= len(entry.parameters):
        yield _error(op, f"`{entry.sym_name}` has no parameter {op.immediates[0]}")


_OTHERS = (ImmOp, SymbolOp, BraOp, CondBraOp, RetOp, ExitOp, PrintfOp, AssertFailOp)


def _other_violations(op: Operation, entry: EntryOp) -> Iterator[Diagnostic]:
    """What is no instruction: constants, symbols, branches, calls; all else was not lowered."""
    if not isinstance(op, _OTHERS):
        yield _error(op, f"`{op.name}` is no PTX instruction and was not lowered to one")
    if isinstance(op, SymbolOp):
        module = entry.parent
        assert module is not None
        names = (o.sym_name for o in module.ops if isinstance(o, SharedOp))
        if op.symbol not in names:
            yield _error(op, f"there is no variable `{op.symbol}`")


def _signature(op: Instruction) -> tuple[object, ...]:
    """All that decides whether an instruction with no property but a suffix is legal."""
    types = [cast(RegisterType, value.type).data for value in (*operands_of(op), *op.results)]
    return (type(op), op.suffix, len(op.results), len(op.properties), *types)


def _instruction_violation(op: Instruction, target: Chip) -> Diagnostic | None:
    try:
        op.verify_()
    except VerifyException as error:
        return _error(op, str(error))
    form = op.shape.form
    if target.has(form.needs):
        return None
    mnemonic = op.spelling(op.suffix).mnemonic
    owners = [record.name for record in chips_with(form)]
    return Diagnostic.error(
        f"`{mnemonic}` does not exist on {target.name}",
        location_of(op),
        help=f"{_listed(owners)} it" if owners else "no supported chip has it",
    )


def _listed(names: list[str]) -> str:
    if len(names) == 1:
        return f"{names[0]} has"
    return f"{', '.join(names[:-1])} and {names[-1]} have"


def _unknown_locations(module: PtxModuleOp) -> Iterator[Diagnostic]:
    for op in module.walk():
        if op is not module and isinstance(op.location, UnknownLoc):
            yield _error(op, f"internal error: `{op.name}` does not know where it comes from")


def _error(op: Operation, message: str) -> Diagnostic:
    return Diagnostic.error(message, location_of(op))
