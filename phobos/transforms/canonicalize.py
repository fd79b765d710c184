"""`ph-canonicalize`: xDSL's `canonicalize`, whose new operations know their place in the source.

xDSL's patterns make operations without a location, as where a constant moves to the right; a
later error about one would point nowhere, and its instructions would have no `.loc`. Here a new
operation takes the location of the one it came from.

Before:
    %3 = arith.muli %constant, %blocks : i32 loc("prefix_sum.ph":13:21)

After:
    %3 = arith.muli %blocks, %constant : i32 loc("prefix_sum.ph":13:21)

With `canonicalize`, the second line would have `loc(unknown)`.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp, UnknownLoc
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.dead_code_elimination import region_dce


class CanonicalizePass(ModulePass):
    """Applies all canonicalization patterns and keeps locations; see the module's text."""

    name = "ph-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Canonicalize `op` in place."""
        pattern = _LocatedPattern(
            GreedyRewritePatternApplier(
                [CanonicalizationRewritePattern()], ctx=ctx, folding_enabled=True
            )
        )
        listener = PatternRewriterListener(operation_insertion_handler=[pattern.locate])
        walker = PatternRewriteWalker(pattern, post_walk_func=region_dce, listener=listener)
        walker.rewrite_module(op)


class _LocatedPattern(RewritePattern):
    """Runs a pattern and remembers where the operation it looks at is from."""

    def __init__(self, pattern: RewritePattern) -> None:
        self.pattern = pattern
        self.location: LocationAttr = UnknownLoc()

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        """Apply the pattern to `op`."""
        self.location = op.location
        self.pattern.match_and_rewrite(op, rewriter)

    def locate(self, op: Operation) -> None:
        """Give `op`, which the pattern has made, the location."""
        if isinstance(op.location, UnknownLoc):
            op.location = self.location
