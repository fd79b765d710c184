"""What is asked of the elements of tiles, buffers and tensors everywhere."""

from __future__ import annotations

from xdsl.dialects.builtin import FixedBitwidthType, MemRefType, TensorType
from xdsl.ir import Attribute

_NAMES = {"i1": "bool", "index": "index", "f8E4M3FN": "f8e4m3", "f8E5M2": "f8e5m2"}
"""The types that MLIR calls otherwise than the language."""


def element_bytes(type_: Attribute) -> int:
    """Bytes of an element of a tile or a memref."""
    assert isinstance(type_, TensorType | MemRefType)
    element = type_.element_type
    assert isinstance(element, FixedBitwidthType)
    return element.size


def type_name(element: Attribute) -> str:
    """The language's name of an element type."""
    text = str(element)
    return _NAMES.get(text, text)
