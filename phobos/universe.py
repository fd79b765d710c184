"""What Phobos adds to xDSL's tools: dialects, passes, a target and a front end.

xDSL finds `PHOBOS_UNIVERSE` through the entry point group `xdsl.universe`, so a plain `xdsl-opt`
reads `.ph` files, knows the dialects and runs the passes. Every value is a factory that imports
when it is called: each xDSL tool loads this module at its start.

A name that another package also publishes stops every xDSL tool, so passes and the target
carry the prefix `ph-`.
"""

from xdsl.ir import Dialect
from xdsl.universe import Universe
from xdsl.utils.frontend import Frontend
from xdsl.utils.target import Target

from phobos.pipeline import PASSES


def _tile() -> Dialect:
    from phobos.dialects.tile import Tile

    return Tile


def _ctx() -> Dialect:
    from phobos.dialects.ctx import Ctx

    return Ctx


def _collective() -> Dialect:
    from phobos.dialects.collective import Collective

    return Collective


def _cluster() -> Dialect:
    from phobos.dialects.cluster import Cluster

    return Cluster


def _ptx() -> Dialect:
    from phobos.dialects.ptx import Ptx

    return Ptx


def _ptx_target() -> type[Target]:
    from phobos.plugin import PtxTarget

    return PtxTarget


def _ph_frontend() -> type[Frontend]:
    from phobos.plugin import PhFrontend

    return PhFrontend


PHOBOS_UNIVERSE = Universe(
    all_dialects={
        "tile": _tile,
        "ctx": _ctx,
        "collective": _collective,
        "cluster": _cluster,
        "ptx": _ptx,
    },
    all_passes=PASSES,
    all_targets={"ph-ptx": _ptx_target},
    all_frontends={"ph": _ph_frontend},
)
"""The universe that the entry point `xdsl.universe` names."""
