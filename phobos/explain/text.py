"""An explanation as text: a section for each subject, an item for each piece of the source."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from phobos.explain.records import (
    MBARRIER,
    Access,
    Boxes,
    Coalesced,
    Contraction,
    Explanation,
    Kernel,
    Machine,
    Mask,
    Mix,
    Pipelining,
    Place,
    RegisterTiles,
    SharedMemory,
    SharedTile,
    Split,
    TileName,
)
from phobos.targets.ptx.contract import NO_CLUSTER

WIDTH = 100
_MANY_NAMES = 8
_MANY_KINDS = 14
_PRODUCT = re.compile(r"[A-Z]G?MMA")
"""Machine instructions of tensor cores: few, and most of the work."""


def explanation_text(explanation: Explanation) -> str:
    """The whole, with a newline at its end."""
    head = (
        f"{explanation.source} for {explanation.chip}: {explanation.index_bits}-bit indices, "
        f"extents that are multiples of {explanation.extent_multiple}"
    )
    if explanation.extent_multiple == 1:
        head = head.rpartition(",")[0] + ", any extents"
    head += "".join(
        f", {name} a multiple of {multiple}" for name, multiple in explanation.extent_multiples
    )
    lines = [head]
    for kernel in explanation.kernels:
        lines += ["", *_kernel(kernel)]
    lines += [f"\nnote: {remark}" for remark in explanation.remarks]
    return "\n".join(lines) + "\n"


def _kernel(kernel: Kernel) -> Iterator[str]:
    constants = "".join(f", {name} = {value}" for name, value in kernel.constants)
    line = "" if kernel.place is None else f" (line {kernel.place.line})"
    head = f"kernel {kernel.name}{line}: {_count(kernel.threads, 'thread')} a CTA{constants}"
    yield from _wrapped(head, 0)
    yield from _section("tiles in registers", (_tiles(one) for one in kernel.tiles))
    yield from _section(_shared_title(kernel.shared), map(_shared, kernel.shared.tiles))
    yield from _section("products of tiles", map(_contraction, kernel.contractions))
    yield from _section("memory accesses", map(_access, kernel.accesses))
    yield from _section("at launch", _launch(kernel))
    yield from _section("masks", _masks(kernel.masks))
    yield from _section("threads", _threads(kernel))
    yield from _section("registers", _registers(kernel))
    if kernel.machine is not None:
        yield from _section("machine code", _machine(kernel.machine))


Item = Sequence[str]
"""The first line of an item, and what stands indented below it."""


def _section(title: str, items: Iterable[Item]) -> Iterator[str]:
    listed = list(items)
    if not listed:
        return
    yield from _wrapped(title, 2)
    for first, *others in listed:
        yield from _wrapped(first, 4)
        for other in others:
            yield from _wrapped(other, 8)


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


# ---- tiles


def _tiles(group: RegisterTiles) -> Item:
    named: dict[str, list[str]] = {}
    for one in group.tiles[:_MANY_NAMES]:
        named.setdefault(one.element, []).append(_tile_name(one))
    parts = [
        f"{', '.join(names)}: {_type(element, group.shape)}" for element, names in named.items()
    ]
    if len(group.tiles) > _MANY_NAMES:
        parts.append(f"and {len(group.tiles) - _MANY_NAMES} more")
    return ("; ".join(parts), *group.words)


def _tile_name(one: TileName) -> str:
    called = one.name or (f"`{one.place.text}`" if one.place is not None else "a tile")
    return called if one.place is None else f"{called} (line {one.place.line})"


def _type(element: str, shape: Sequence[int]) -> str:
    return f"tile<{element}>[{', '.join(map(str, shape))}]"


def _shared_title(shared: SharedMemory) -> str:
    kind = "dynamic, sized at launch" if shared.is_dynamic else "static"
    title = f"shared memory: {shared.bytes} bytes of {shared.limit}, {kind}"
    if sum(one.bytes for one in shared.tiles) > shared.bytes:
        title += "; tiles at one offset have it one after the other"
    return title


def _shared(one: SharedTile) -> Item:
    stages = f"{one.stages} stages of " if one.stages > 1 else ""
    if one.element == MBARRIER:
        return (
            f"{_at(one.place)}: {one.bytes} bytes at {one.offset}: {one.purpose}; "
            f"{one.shape[0]} mbarriers for each of {one.stages} stages",
        )
    return (
        f"{_at(one.place)}: {one.bytes} bytes at {one.offset}: {one.purpose}; "
        f"{stages}{_type(one.element, one.shape)}, {one.order}",
    )


# ---- products

_MAKERS = {"multiply-adds": "thread", "wgmma": "warpgroup"}
"""What the first word of an instruction says of who executes it; a warp executes the others."""


def _contraction(one: Contraction) -> Item:
    m, n, k = one.shape
    who = _MAKERS.get(one.instruction.partition(".")[0], "warp")
    lines = [
        f"{_at(one.place)}: {m} x {n} x {k}, {one.operand} summed in {one.accumulator}: "
        f"{one.instruction}",
        f"because: {one.reason}" if one.reason else "",
        f"{one.count} a {who} for each product; {_sharing(one)}",
        _homes(one.operands),
        *(() if one.pipelining is None else _pipelining_lines(one.pipelining)),
    ]
    return [line for line in lines if line]


def _sharing(one: Contraction) -> str:
    along_m, along_n = one.warps
    parts: list[str] = []
    if along_m * along_n > 1:
        parts.append(f"{along_m} x {along_n} warps share the result")
    if one.copies > 1:
        parts.append(f"{one.copies} warps compute the same, since the result is small")
    return " and ".join(parts) or "one warp has the whole result"


def _homes(operands: tuple[str, str]) -> str:
    left, right = operands
    if left == right:
        return f"both operands come from {left}"
    return f"the left operand comes from {left}, the right from {right}"


def _pipelining_lines(one: Pipelining) -> Iterator[str]:
    yield _pipelining(one)
    if one.no_tensor_copies is not None:
        yield f"no tensor copies: {one.no_tensor_copies}"


def _pipelining(one: Pipelining) -> str:
    where = "" if one.place is None else f" in the loop of line {one.place.line}"
    match one.form:
        case "tensor copies":
            ahead = _count(one.stages - 1, "step")
            return (
                f"loads run {ahead} ahead{where}: tensor copies, {one.stages} stages ({one.reason})"
            )
        case "copies":
            ahead = one.stages - 1 - one.overlap
            return (
                f"loads run {_count(ahead, 'step')} ahead{where}: cp.async, {one.stages} stages "
                f"({one.reason})"
            )
        case "registers" if one.stages > 1:
            return (
                f"loads run 2 steps ahead{where}, held in registers until the step before is "
                f"multiplied, then in one of {one.stages} stages of shared memory ({one.reason})"
            )
        case "registers":
            return f"loads run 1 step ahead{where}, held in registers ({one.reason})"
        case _:
            return f"no loads run ahead{where}: {one.reason}"


# ---- memory


def _access(one: Access) -> Item:
    if one.boxes is not None:
        return _tensor_copy(one, one.boxes)
    guarded = ""
    if one.guarded:
        word = "zeros past the end" if one.verb == "copy" else "guarded"
        guarded = f", {word}" if one.guarded == one.count else f", {one.guarded} of them {word}"
    noun = {"load": "load", "store": "store", "copy": "copy", "atomic": "atomic update"}[one.verb]
    plural = "copies" if noun == "copy" and one.count != 1 else None
    space = "" if one.space == "global" else f", {one.space}"
    if one.banks is not None and one.banks.passes <= one.banks.ideal:
        space += " without bank conflicts"
    lines = [
        f"{_at(one.place)}: {_count(one.count, noun, plural)} of {_bytes(one.bytes)} a thread"
        f"{space}{guarded}: {one.instruction}"
    ]
    if one.coalesced is not None:
        lines.append(_coalesced(one.coalesced))
    if one.banks is not None and one.banks.passes > one.banks.ideal:
        lines.append(
            f"a warp takes {one.banks.passes} passes where {one.banks.ideal} would do: its lanes"
            " meet in banks"
        )
    if one.narrow is not None:
        lines.append(f"not wider, since {one.narrow}")
    return lines


def _tensor_copy(one: Access, boxes: Boxes) -> Item:
    shape = " x ".join(map(str, boxes.shape))
    return (
        f"{_at(one.place)}: {_count(one.count, 'tensor copy', 'tensor copies')} of "
        f"{_bytes(one.bytes)}, global to shared, zeros past the end; one thread starts them for "
        f"the CTA: {one.instruction}",
        f"a stage takes {_bytes(boxes.bytes)}: {_count(boxes.count, 'box', 'boxes')} of {shape} "
        f"{boxes.element}",
    )


def _coalesced(one: Coalesced) -> str:
    if one.sectors is None or one.ideal is None:
        return f"a warp: {one.words}"
    if one.sectors == 1:
        return f"a warp: {one.words} (1 sector)"
    if one.sectors <= one.ideal:
        return f"a warp: {one.words}; coalesced ({_count(one.sectors, 'sector')})"
    return f"a warp: {one.words}; {one.sectors} sectors where {one.ideal} would hold the data"


def _launch(kernel: Kernel) -> Iterator[Item]:
    for one in kernel.tensor_maps:
        yield (f"a tensor map behind the parameters, of {one}",)
    if kernel.cluster != NO_CLUSTER:
        shape = " x ".join(map(str, kernel.cluster))
        yield (f"clusters of {shape} CTAs, of which the grid must be a multiple",)


def _masks(masks: Iterable[Mask]) -> Iterator[Item]:
    """Masks that are there for the same reason are one item."""
    alike: dict[tuple[object, ...], list[Mask]] = {}
    for one in masks:
        alike.setdefault((one.extent, one.reason, one.remedy, one.split), []).append(one)
    for group in alike.values():
        first = group[0]
        yield f"{first.extent}: {first.reason}", *_mask_lines(group)


def _mask_lines(group: Sequence[Mask]) -> Iterator[str]:
    first = group[0]
    for one in group:
        yield f"{_at(one.place)}: axis {one.axis} is compared with {one.extent}"
    if first.split is not None:
        yield f"whole tiles of the loop of line {first.split.line} go without this mask"
    if first.remedy is not None:
        yield f"`{first.remedy}` promises that, and spares the mask; no tile may start past the end"


# ---- threads


def _threads(kernel: Kernel) -> Iterator[Item]:
    found = kernel.variation
    for one in found.splits:
        yield _split(one)
    if not found.splits:
        yield ("no branch of the program splits the threads",)
    values = [f"{one.name} ({one.level})" for one in found.values]
    if values:
        yield (f"not the same in every thread: {', '.join(values)}",)
    meetings = [f"{_count(kernel.barriers, 'barrier')} of the CTA"] if kernel.barriers else []
    if kernel.waits:
        meetings.append(f"{_count(kernel.waits, 'wait')} at mbarriers")
    if meetings:
        yield (f"{' and '.join(meetings)} in the code",)


def _split(one: Split) -> Item:
    by = {"varying": "lanes of a warp", "warp-uniform": "whole warps"}[one.level]
    steps = [
        f"{step.words}" + (f" (line {step.place.line})" if step.place is not None else "")
        for step in one.chain
    ]
    return (f"{_at(one.place)} splits the threads, {by}", *steps)


# ---- machine


def _registers(kernel: Kernel) -> Iterator[Item]:
    found = kernel.registers
    if found is None:
        return
    declared = "" if found.declared is None else f"; declared to ptxas: {found.declared}"
    yield (f"about {found.estimate} of a thread are alive at one time as the PTX has it{declared}",)


_LIMITS = {
    "threads": "it has no more threads",
    "CTAs": "it takes no more CTAs",
    "registers": "the registers allow no more",
    "shared memory": "the shared memory allows no more",
}


def _machine(one: Machine) -> Iterator[Item]:
    spills = "no spills"
    if one.spill_stores or one.spill_loads:
        spills = f"{one.spill_stores} bytes of spill stores, {one.spill_loads} of spill loads"
    yield (f"{one.registers} registers a thread, {spills}, {one.shared} bytes of shared memory",)
    yield (
        f"{_count(one.ctas, 'CTA')} on a multiprocessor, {one.occupancy:.0%} of its threads; "
        f"{_LIMITS[one.limit]}",
    )
    for mix in one.mixes:
        yield (_mix(mix),)


def _mix(mix: Mix) -> str:
    told = mix.kinds[:_MANY_KINDS]
    told += tuple(one for one in mix.kinds[_MANY_KINDS:] if _PRODUCT.fullmatch(one[0]))
    shown = [f"{kind} {_share(count, mix.total)}" for kind, count in told]
    if len(mix.kinds) > len(told):
        shown.append(f"{len(mix.kinds) - len(told)} others")
    what = "the whole" if mix.line is None else f"the loop of line {mix.line}"
    return f"{what}: {mix.total} instructions: {', '.join(shown)}"


def _share(count: int, total: int) -> str:
    return f"{count / total:.0%}" if 200 * count >= total else "<1%"


# ---- words


def _at(place: Place | None) -> str:
    if place is None:
        return "somewhere"
    return f"line {place.line}" + (f" `{place.text}`" if place.text else "")


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def _bytes(number: int) -> str:
    return _count(number, "byte")
