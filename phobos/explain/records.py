"""What an explanation consists of: records of numbers, names and places."""

from __future__ import annotations

from dataclasses import field

from phobos.record import Value, record
from phobos.targets.ptx.contract import NO_CLUSTER, Cluster, TensorMap


@record
class Place(Value):
    """A piece of the source: where it begins, and its text on one line, cut if it is long."""

    file: str
    line: int
    column: int
    text: str


# Tiles -------------------------------------------------------------------------------------------


@record
class TileName(Value):
    """A tile by its name in the program; one without a name is called by its expression."""

    name: str | None
    place: Place | None
    element: str


@record
class RegisterTiles(Value):
    """Tiles of one shape that are in registers in the same way.

    `elements` is what one thread holds; `words` say who holds what, `layout` says it exactly.
    """

    tiles: tuple[TileName, ...]
    shape: tuple[int, ...]
    elements: int
    words: tuple[str, ...]
    layout: str


MBARRIER = "mbarrier"
"""The element of a buffer of barriers."""


@record
class SharedTile(Value):
    """A buffer in shared memory: its bytes (of all stages), and what it is there for."""

    place: Place | None
    element: str
    shape: tuple[int, ...]
    stages: int
    offset: int
    bytes: int
    purpose: str
    order: str
    """How its elements lie: row by row, or swizzled."""


@record
class SharedMemory(Value):
    """The shared memory of a CTA; `limit` is what the chip lets a kernel of this kind have."""

    tiles: tuple[SharedTile, ...] = ()
    bytes: int = 0
    is_dynamic: bool = False
    limit: int = 0


# Memory ------------------------------------------------------------------------------------------


@record
class Coalesced(Value):
    """What a warp's access touches: sectors of 32 bytes, and the fewest that hold the data.

    `words` say how the lanes' addresses lie to each other.
    """

    words: str
    sectors: int | None = None
    ideal: int | None = None


@record
class Banks(Value):
    """Passes that a warp's access of shared memory takes, and the fewest for its width."""

    passes: int
    ideal: int


@record
class Boxes(Value):
    """What tensor copies of one slice bring to each stage, box by box.

    A box has so many elements along each axis of the tensor; `element` is what they are copied
    as, `bytes` what a stage takes of the slice.
    """

    tensor: str
    element: str
    shape: tuple[int, ...]
    count: int
    bytes: int


@record
class Access(Value):
    """The instructions that one place of the source became, of one kind.

    `bytes` is what a thread moves with one of the `count` instructions (of a tensor copy, the one
    thread that starts it for the CTA); `instruction` is how PTX spells it. `narrow` says what kept
    it from 16 bytes.
    """

    place: Place | None
    space: str
    verb: str
    instruction: str
    bytes: int
    count: int
    guarded: int
    """How many of the instructions have a predicate, or put zeros past a tensor's end."""
    coalesced: Coalesced | None = None
    banks: Banks | None = None
    narrow: str | None = None
    boxes: Boxes | None = None
    """Of tensor copies."""


@record
class Mask(Value):
    """An axis of a tile access that is compared with the tensor's extent at run time."""

    place: Place | None
    tensor: str
    axis: int
    extent: str
    reason: str
    remedy: str | None
    split: Place | None = None
    """The loop whose whole tiles go without this mask."""


# Threads -----------------------------------------------------------------------------------------


@record
class Step(Value):
    """One step of the chain that made a value vary."""

    words: str
    place: Place | None


@record
class Split(Value):
    """A branch or loop that not all threads take alike, and why."""

    place: Place | None
    construct: str
    level: str
    chain: tuple[Step, ...]


@record
class Varying(Value):
    """A named value that is not the same in all threads."""

    name: str
    place: Place | None
    level: str


@record
class Threads(Value):
    """How far the threads of a CTA differ."""

    splits: tuple[Split, ...] = ()
    values: tuple[Varying, ...] = ()


# Contractions ------------------------------------------------------------------------------------


@record
class Pipelining(Value):
    """How the loads of a loop run ahead of its contractions.

    `form` is `tensor copies` (TMA into `stages` buffers), `copies` (cp.async into them),
    `registers` (loads of the next iteration held in registers; with 2 `stages` they are stored an
    iteration later, for the one behind it) or `none`; `reason` says why.
    """

    form: str
    stages: int
    place: Place | None
    reason: str
    overlap: int = 0
    """Products of earlier iterations that run on when one starts."""
    no_tensor_copies: str | None = None
    """What keeps tensor copies from bringing the operands, on a chip that has them."""


@record
class Contraction(Value):
    """A product of tiles: what it is made of and why."""

    place: Place | None
    shape: tuple[int, int, int]
    operand: str
    accumulator: str
    instruction: str
    count: int
    """Instructions of a thread (a warp's for mma, a warpgroup's for wgmma) for one product."""
    warps: tuple[int, int]
    """Warps along M and N that have parts of the result."""
    copies: int
    """Warps that compute the same part, since the result is too small to share out."""
    operands: tuple[str, str]
    reason: str
    pipelining: Pipelining | None = None


# Machine -----------------------------------------------------------------------------------------


@record
class Registers(Value):
    """Registers as the PTX has them: an estimate, and what is declared to ptxas."""

    estimate: int
    declared: str | None


@record
class Mix(Value):
    """How many machine instructions there are of each kind, the most frequent first.

    `line` is that of a loop in the source, None for the whole kernel.
    """

    line: int | None
    total: int
    kinds: tuple[tuple[str, int], ...]


@record
class Machine(Value):
    """What ptxas made of a kernel."""

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int
    ctas: int
    occupancy: float
    """The share of a multiprocessor's threads that run at one time, from 0 to 1."""
    limit: str
    """What keeps more CTAs off a multiprocessor."""
    mixes: tuple[Mix, ...] = ()


# Whole -------------------------------------------------------------------------------------------


@record
class Kernel(Value):
    """All that is explained of one kernel."""

    name: str
    place: Place | None
    threads: int
    constants: tuple[tuple[str, int | float], ...] = ()
    tiles: tuple[RegisterTiles, ...] = ()
    shared: SharedMemory = field(default_factory=SharedMemory)
    accesses: tuple[Access, ...] = ()
    masks: tuple[Mask, ...] = ()
    contractions: tuple[Contraction, ...] = ()
    variation: Threads = field(default_factory=Threads)
    barriers: int = 0
    """Barriers of the CTA in the code."""
    waits: int = 0
    """Waits at mbarriers in the code."""
    registers: Registers | None = None
    machine: Machine | None = None
    tensor_maps: tuple[TensorMap, ...] = ()
    """What a launch passes behind the parameters."""
    cluster: Cluster = NO_CLUSTER
    """CTAs of a cluster along x, y and z."""


@record
class Explanation(Value):
    """What is explained of a source; `remarks` are about what could not be found out."""

    source: str
    chip: str
    index_bits: int
    extent_multiple: int
    kernels: tuple[Kernel, ...]
    remarks: tuple[str, ...] = ()
    extent_multiples: tuple[tuple[str, int], ...] = ()
    """Dims with a number of their own in place of `extent_multiple`."""
