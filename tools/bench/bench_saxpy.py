"""saxpy on the GPU against PyTorch: time and share of the memory bandwidth it reaches.

    python tools/bench/bench_saxpy.py [--log2-size 28] [--repeats 50]

Both compute out = 2 * x + y in one kernel on the same arrays, in turns, timed with CUDA events.
saxpy does nothing but move 12 bytes an element, so bytes a second is the whole story.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch  # pyright: ignore[reportMissingImports]

import phobos

SOURCE = Path(__file__).resolve().parents[2] / "examples/saxpy_fp32.ph"
BYTES_PER_ELEMENT = 12
ALPHA = 2.0
WARM_UP = 10


def main() -> int:
    """Measure and print; returns 1 if a result is wrong."""
    parser = argparse.ArgumentParser(description="saxpy against PyTorch")
    parser.add_argument("--log2-size", type=int, default=28)
    parser.add_argument("--repeats", type=int, default=50)
    arguments = parser.parse_args()

    size = 1 << arguments.log2_size
    x, y = (torch.randn(size, device="cuda") for _ in range(2))
    expected = torch.add(y, x, alpha=ALPHA)
    out = torch.empty_like(x)
    runs: dict[str, Callable[[], object]] = {
        "torch.add(out=)": lambda: torch.add(y, x, alpha=ALPHA, out=out)
    }
    for block in (512, 1024, 2048, 4096, 8192):
        kernel = phobos.compile(SOURCE.read_text(), constants={"BLOCK": block})["saxpy"]
        run = launcher(kernel, x, y, out)
        out.fill_(float("nan"))
        run()
        torch.cuda.synchronize()
        if not torch.allclose(out, expected, rtol=1e-6, atol=1e-6):
            print(f"phobos with BLOCK={block} computes wrong numbers")
            return 1
        runs[f"phobos BLOCK={block}"] = run

    times = measure(runs, arguments.repeats)
    baseline = times["torch.add(out=)"]
    print(
        f"saxpy, {size:,} elements, {torch.cuda.get_device_name()}, median of {arguments.repeats}"
    )
    for name, milliseconds in times.items():
        bandwidth = BYTES_PER_ELEMENT * size / milliseconds / 1e6
        share = baseline / milliseconds
        print(f"{name:22} {milliseconds:8.4f} ms {bandwidth:8.0f} GB/s {share:6.3f} of torch")
    return 0


def launcher(kernel: Callable[..., object], x: torch.Tensor, y: torch.Tensor, out: torch.Tensor):
    """A call of the kernel on these arrays."""
    return lambda: kernel(x, y, out, ALPHA)


def measure(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median milliseconds of each run; the runs take turns, so that all see the same clocks."""
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(WARM_UP + repeats):
        for name, run in runs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            run()
            end.record()
            end.synchronize()
            if repeat >= WARM_UP:
                samples[name].append(start.elapsed_time(end))
    return {name: statistics.median(values) for name, values in samples.items()}


if __name__ == "__main__":
    sys.exit(main())
