"""Linear layouts over GF(2): who holds which element of a tile.

Pure integer code without any knowledge of the IR.  `linear` has the type, `build`, `fragments`
and `shared` construct layouts, `algebra` combines them, and `queries`, `reduction`, `convert` and
`overhang` answer what code generation asks.
"""

from phobos.layout.algebra import slice_layout
from phobos.layout.build import elementwise_layout
from phobos.layout.linear import LinearLayout
from phobos.layout.queries import contiguous_vector
from phobos.layout.text import LayoutError

__all__ = [
    "LayoutError",
    "LinearLayout",
    "contiguous_vector",
    "elementwise_layout",
    "slice_layout",
]
