"""`ph-ptx-canonicalize`: make a kernel smaller and faster without changing what it does.

    %o = ptx.mul wide.u32 %i, %c4
    %a = ptx.add u64 %o, %c16
    %p = ptx.add u64 %x, %a           -->   %p = ptx.mad wide.u32 %i, %c4, %x
    %v = ptx.ld global.b32 [%p]             %v = ptx.ld global.b32 [%p + 16]

Runs, on each kernel: branch simplification, the negation of comparisons that ptxas might get wrong,
loop-invariant code motion, folding with common subexpressions and dead code until no branch is
settled any more, code motion again, strength reduction of addresses, and the fusion of
multiplications and additions. Each is a pass of its own, named in its module.
Precondition: ptx modules that verify. Cost: linear, about 15 us an instruction.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from phobos.dialects import ptx
from phobos.transforms.ptx_branches import simplify_branches
from phobos.transforms.ptx_dead_code import remove_dead_code
from phobos.transforms.ptx_fold import fold_entry
from phobos.transforms.ptx_fuse import fuse_products
from phobos.transforms.ptx_licm import hoist_invariants
from phobos.transforms.ptx_negate_comparisons import negate_comparisons
from phobos.transforms.ptx_strength_reduce import reduce_strength

_MAX_ROUNDS = 3
"""Settling a branch joins blocks and uncovers more to fold; that rarely happens twice."""


class PtxCanonicalizePass(ModulePass):
    """Canonicalizes every kernel of every ptx module."""

    name = "ph-ptx-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Canonicalize every kernel."""
        for entry in ptx.entries_in(op):
            canonicalize_entry(entry)


def canonicalize_entry(entry: ptx.EntryOp) -> None:
    """Canonicalize one kernel in place."""
    simplify_branches(entry)
    negate_comparisons(entry)
    # Before folding, so that loops beside each other share what is hoisted out of both.
    hoist_invariants(entry)
    for _ in range(_MAX_ROUNDS):
        fold_entry(entry)
        remove_dead_code(entry)
        if not simplify_branches(entry):
            break
    hoist_invariants(entry)
    if reduce_strength(entry):
        fold_entry(entry)
        remove_dead_code(entry)
    simplify_branches(entry)
    fuse_products(entry)
