"""What `phobos-compile` lists: chips and passes."""

from __future__ import annotations

from phobos.diagnostics import PhobosError
from phobos.driver.options import CompileOptions, resolve_chip
from phobos.targets.ptx.contract import ChipSource

_REASONS = {
    ChipSource.ENVIRONMENT: ", as PHOBOS_CHIP says",
    ChipSource.GPU: ", for the GPU of this machine",
}
"""Why a chip is the default, where that is not the compiler's own choice."""


def chip_table() -> str:
    """The supported chips, a line each, with the one that is taken by default marked."""
    from phobos.targets.ptx.chips import CHIPS

    try:
        default, source = resolve_chip(None)
        reason = _REASONS.get(source, "")
        mark = f"  default{reason}"
    except PhobosError:
        # PHOBOS_CHIP names none; whoever asks for the list may be about to mend that.
        default, mark = None, ""
    lines = [f"{'chip':<8}{'PTX':<6}{'shared memory a CTA':>20}  {'threads an SM':>13}"]
    for chip in CHIPS.values():
        version = ".".join(map(str, chip.ptx_version))
        shared = f"{chip.max_dynamic_shared // 1024} KB"
        line = f"{chip.name:<8}{version:<6}{shared:>20}  {chip.max_threads_per_sm:>13}"
        alone = "  for its own GPUs alone, with wgmma" if chip.is_exact else ""
        lines.append(line + alone + (mark if chip.name == default else ""))
    return "\n".join(lines)


def pipeline_text(options: CompileOptions) -> str:
    """The default passes for these options, as `--passes` and `phobos-opt -p` take them."""
    from phobos.pipeline import default_pipeline

    return ",".join(str(one.spec()) for one in default_pipeline(options))
