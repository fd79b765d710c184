"""The passes and their order: the one place that says how a kernel is compiled.

`PASSES` names every pass that Phobos has; the names are the interface of `phobos-opt -p`.
`DEFAULT_PIPELINE` is the order in which a program goes from tile IR to PTX IR. Both import
nothing until a pass is asked for, since every xDSL tool loads this module at its start.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

_LOCATIONS = {
    "ph-bind-constants": ("bind_constants", "BindConstantsPass"),
    "ph-infer-uniformity": ("infer_uniformity", "InferUniformityPass"),
    "ph-check-bounds": ("check_bounds", "CheckBoundsPass"),
    "ph-analyze-extents": ("analyze_extents", "AnalyzeExtentsPass"),
    "ph-mask-slices": ("mask_slices", "MaskSlicesPass"),
    "ph-select-contraction": ("select_contraction", "SelectContractionPass"),
    "ph-assign-layouts": ("assign_layouts", "AssignLayoutsPass"),
    "ph-expand-collectives": ("expand_collectives", "ExpandCollectivesPass"),
    "ph-insert-barriers": ("insert_barriers", "InsertBarriersPass"),
    "ph-place-tiles": ("place_tiles", "PlaceTilesPass"),
    "ph-lower-to-ptx": ("lower_to_ptx", "LowerToPtxPass"),
    "ph-ptx-canonicalize": ("ptx_canonicalize", "PtxCanonicalizePass"),
    "ph-ptx-verify": ("ptx_verify", "PtxVerifyPass"),
}
"""Pass name -> module in phobos.transforms and class."""


def _factory(module: str, name: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        return getattr(import_module(f"phobos.transforms.{module}"), name)

    return load


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    name: _factory(*location) for name, location in _LOCATIONS.items()
}
"""Pass name -> factory that imports the pass's class."""
