"""Quick views of what operations and blocks hold, for walks over whole kernels.

xDSL answers `op.operands`, and each step of `for op in block.ops`, with an object made for that
call, which takes half a microsecond; a kernel has thousands of instructions and is walked dozens
of times. What is here reads the fields behind those answers (xDSL is pinned, so they stay), in
less than a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter

from xdsl.ir import Block, Operation, SSAValues

operands_of: Callable[[Operation], SSAValues] = attrgetter("_operands")
"""The operands of an operation, as they are now."""


def operations(block: Block) -> Iterator[Operation]:
    """The operations of a block in order; the one that was given last may be taken out of it."""
    op = block.first_op
    while op is not None:
        following: Operation | None = op._next_op  # pyright: ignore[reportPrivateUsage]
        yield op
        op = following
