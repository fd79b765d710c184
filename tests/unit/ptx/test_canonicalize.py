"""Rewriting kernels: what they store stays the same, and what should go goes."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.dialects import ptx
from phobos.transforms.ptx_branches import simplify_branches
from phobos.transforms.ptx_canonicalize import canonicalize_entry
from phobos.transforms.ptx_dead_code import remove_dead_code
from phobos.transforms.ptx_fold import fold_entry
from phobos.transforms.ptx_fuse import fuse_products
from phobos.transforms.ptx_licm import hoist_invariants
from phobos.transforms.ptx_strength_reduce import reduce_strength
from phobos.transforms.ptx_verify import verify_module
from tests.unit.ptx.programs import RandomKernel, run_kernel


def _fold(entry: ptx.EntryOp) -> None:
    """Folding by itself needs reachable blocks only."""
    simplify_branches(entry)
    fold_entry(entry)


def _reduce_strength(entry: ptx.EntryOp) -> None:
    hoist_invariants(entry)
    reduce_strength(entry)


REWRITES = {
    "branches": simplify_branches,
    "fold": _fold,
    "dead-code": remove_dead_code,
    "licm": hoist_invariants,
    "fuse": fuse_products,
    "strength-reduce": _reduce_strength,
    "canonicalize": canonicalize_entry,
}


SEEDS = {name: range(40 if name == "canonicalize" else 12) for name in REWRITES}


@pytest.mark.parametrize(("name", "seed"), [(name, s) for name in REWRITES for s in SEEDS[name]])
def test_random_kernels_store_the_same(name: str, seed: int):
    kernel = RandomKernel(seed)
    module = kernel.module
    verify_module(module)
    before = run_kernel(module, seed)
    REWRITES[name](kernel.entry)
    module.verify()
    verify_module(module)
    np.testing.assert_array_equal(run_kernel(module, seed), before)


@pytest.mark.parametrize("seed", range(40, 52))
def test_canonicalizing_twice_changes_nothing_more(seed: int):
    kernel = RandomKernel(seed)
    canonicalize_entry(kernel.entry)
    once = str(kernel.entry)
    canonicalize_entry(kernel.entry)
    assert str(kernel.entry) == once
