"""Where tiles live, from the IR in which every tile has its layout."""

from __future__ import annotations

from xdsl.dialects import gpu
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.dialects.elements import type_name
from phobos.dialects.gathering import GatherOp
from phobos.dialects.shaping import ReduceOp
from phobos.explain.places import Places, order_of
from phobos.explain.records import RegisterTiles, TileName
from phobos.explain.words import held_elements, layout_words
from phobos.layout.linear import LinearLayout

_SHOWN_UNNAMED = (tile.LoadOp, GatherOp, DotOp, ReduceOp)
"""What is worth a line without having a name: slices, products and folds."""

_Key = tuple[tuple[int, ...], LinearLayout]


def register_tiles(kernel: gpu.FuncOp, places: Places) -> tuple[RegisterTiles, ...]:
    """The tiles of a kernel that are in registers, those that are alike together."""
    groups: dict[_Key, dict[TileName, None]] = {}
    for op in kernel.walk():
        inner = [arg for region in op.regions for block in region.blocks for arg in block.args]
        for value in (*op.results, *inner):
            key, name = _key(value), _name(value, places)
            if key is not None and name is not None:
                groups.setdefault(key, {})[name] = None
    return tuple(_group(key, list(names)) for key, names in groups.items())


def _group(key: _Key, names: list[TileName]) -> RegisterTiles:
    shape, layout = key
    words = layout_words(layout, shape)
    return RegisterTiles(_distinct(names), shape, held_elements(layout), words, str(layout))


def _distinct(names: list[TileName]) -> tuple[TileName, ...]:
    """Each name once, where it stands first: a variable has a value for each assignment."""
    kept: dict[tuple[str, str], TileName] = {}
    for one in sorted(names, key=lambda one: order_of(one.place)):
        text = one.name or (one.place.text if one.place is not None else "")
        kept.setdefault((text, one.element), one)
    return tuple(kept.values())


def _key(value: SSAValue) -> _Key | None:
    layout = tile.layout_of(value)
    if layout is None or not isinstance(value.type, TensorType):
        return None
    return value.type.get_shape(), layout


def _name(value: SSAValue, places: Places) -> TileName | None:
    if value.name_hint is not None:
        return TileName(value.name_hint, places.of_value(value), element_name(value))
    owner = value.owner
    if not isinstance(owner, Operation) or not isinstance(owner, _SHOWN_UNNAMED):
        return None
    if isinstance(owner, tile.LoadOp) and tile.is_shared(owner.mem):
        return None
    return TileName(None, places.of(owner), element_name(value))


def element_name(value: SSAValue) -> str:
    """The language's name of the element type of a tile or tensor."""
    return type_name(getattr(value.type, "element_type", value.type))
