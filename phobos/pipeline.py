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
    from xdsl.utils.arg_spec import ArgSpec

    from phobos.driver.options import CompileOptions

DEFAULT_PIPELINE = ",".join(
    (
        "ph-bind-constants",  # ctx.threads and literal extents become constants
        "ph-canonicalize",
        "cse",
        "ph-infer-uniformity{annotate=false}",  # legality: who reaches what
        "ph-analyze-extents",  # proofs of bounds and alignment, read by all below
        "ph-warn-masked-folds",
        "ph-mask-slices",  # the entry checks that these proofs rest on
        "ph-swizzle-blocks",  # the proofs are made, and follow ctx.block
        "ph-walk-back",  # likewise: the proofs hold for any order of iterations
        "ph-unroll-loops",  # copies what is proven of accesses along
        "ph-select-contraction",  # before layouts, which follow from the instruction
        "ph-hoist-operands",  # before layouts, as what is staged outside a loop has its own
        "ph-assign-layouts",
        "ph-widen-accesses",
        "ph-load-early",  # before exchanges, which have barriers
        "ph-expand-wmma",
        "ph-expand-exchanges",  # what crosses warps goes through shared buffers
        "ph-expand-scans",
        "ph-expand-clusters",
        "ph-pipeline-loops",  # while loads and buffers of a loop are still in sight
        "ph-hold-operands",  # the stages left alone
        "ph-prefetch-fragments",
        "ph-expand-collectives",  # makes shared buffers, so before they are placed
        "ph-place-tiles",
        "ph-insert-barriers",  # needs places: buffers may share bytes
        "ph-lower-to-ptx",
        "ph-ptx-assume-finite",  # before anything touches the roundings that it replaces
        "ph-ptx-canonicalize",
        "ph-ptx-limit-registers",
        "ph-ptx-verify",
    )
)
"""The default order, as `phobos-opt -p` takes it; the word `default` stands for it there."""

_LOCATIONS = {
    "ph-bind-constants": ("bind_constants", "BindConstantsPass"),
    "ph-canonicalize": ("canonicalize", "CanonicalizePass"),
    "ph-infer-uniformity": ("infer_uniformity", "InferUniformityPass"),
    "ph-check-bounds": ("check_bounds", "CheckBoundsPass"),
    "ph-analyze-extents": ("analyze_extents", "AnalyzeExtentsPass"),
    "ph-warn-masked-folds": ("warn_masked_folds", "WarnMaskedFoldsPass"),
    "ph-mask-slices": ("mask_slices", "MaskSlicesPass"),
    "ph-swizzle-blocks": ("swizzle_blocks", "SwizzleBlocksPass"),
    "ph-walk-back": ("walk_back", "WalkBackPass"),
    "ph-unroll-loops": ("unroll_loops", "UnrollLoopsPass"),
    "ph-select-contraction": ("select_contraction", "SelectContractionPass"),
    "ph-hoist-operands": ("hoist_operands", "HoistOperandsPass"),
    "ph-assign-layouts": ("assign_layouts", "AssignLayoutsPass"),
    "ph-widen-accesses": ("widen_accesses", "WidenAccessesPass"),
    "ph-load-early": ("load_early", "LoadEarlyPass"),
    "ph-expand-wmma": ("expand_wmma", "ExpandWmmaPass"),
    "ph-expand-exchanges": ("expand_exchanges", "ExpandExchangesPass"),
    "ph-expand-scans": ("expand_scans", "ExpandScansPass"),
    "ph-expand-clusters": ("expand_clusters", "ExpandClustersPass"),
    "ph-pipeline-loops": ("pipeline_loops", "PipelineLoopsPass"),
    "ph-hold-operands": ("hold_operands", "HoldOperandsPass"),
    "ph-prefetch-fragments": ("prefetch_fragments", "PrefetchFragmentsPass"),
    "ph-expand-collectives": ("expand_collectives", "ExpandCollectivesPass"),
    "ph-insert-barriers": ("insert_barriers", "InsertBarriersPass"),
    "ph-place-tiles": ("place_tiles", "PlaceTilesPass"),
    "ph-lower-to-ptx": ("lower_to_ptx", "LowerToPtxPass"),
    "ph-ptx-assume-finite": ("ptx_assume_finite", "PtxAssumeFinitePass"),
    "ph-ptx-canonicalize": ("ptx_canonicalize", "PtxCanonicalizePass"),
    "ph-ptx-simplify-branches": ("ptx_branches", "PtxSimplifyBranchesPass"),
    "ph-ptx-fold": ("ptx_fold", "PtxFoldPass"),
    "ph-ptx-dead-code": ("ptx_dead_code", "PtxDeadCodePass"),
    "ph-ptx-licm": ("ptx_licm", "PtxLicmPass"),
    "ph-ptx-strength-reduce": ("ptx_strength_reduce", "PtxStrengthReducePass"),
    "ph-ptx-fuse": ("ptx_fuse", "PtxFusePass"),
    "ph-ptx-negate-comparisons": ("ptx_negate_comparisons", "PtxNegateComparisonsPass"),
    "ph-ptx-reorder": ("ptx_reorder", "PtxReorderPass"),
    "ph-ptx-limit-registers": ("ptx_limit_registers", "PtxLimitRegistersPass"),
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


_FROM_OPTIONS = {
    "ph-select-contraction": ("chip", "tensor_maps"),
    "ph-expand-clusters": ("chip",),
    "ph-pipeline-loops": ("chip", "tensor_maps"),
    "ph-lower-to-ptx": ("chip",),
}
"""The passes whose result depends on compile options, and the options, by the names of both."""


def default_pipeline(options: CompileOptions) -> tuple[ModulePass, ...]:
    """The passes that `phobos-compile` runs: DEFAULT_PIPELINE for a chip and build mode."""
    from xdsl.utils.arg_spec import ArgSpec, parse_pipeline

    specs = list(parse_pipeline(DEFAULT_PIPELINE))
    for position, spec in enumerate(specs):
        if spec.name in _FROM_OPTIONS:
            given = {key: (getattr(options, key),) for key in _FROM_OPTIONS[spec.name]}
            specs[position] = ArgSpec(spec.name, given)
    if options.check_bounds:
        # Behind the rules of uniformity, so that errors speak of the author's code alone.
        behind = [spec.name for spec in specs].index("ph-infer-uniformity") + 1
        specs.insert(behind, ArgSpec("ph-check-bounds", {}))
    return tuple(_pass(spec) for spec in specs)


def _pass(spec: ArgSpec) -> ModulePass:
    kind = _pass_class(spec.name)
    return kind.from_spec(spec) if spec.parameters else kind()


def _pass_class(name: str) -> type[ModulePass]:
    if name in PASSES:
        return PASSES[name]()
    from xdsl.transforms import get_all_passes

    return get_all_passes()[name]()
