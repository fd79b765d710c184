"""How long compiling takes: in a warm process, as a whole process, and in Triton if installed.

    python tools/bench/bench_compile.py [--repeats 10]

Needs no GPU, except for Triton's number. Each line is the best and the median of the repeats: the
best is what the code costs, the median what a user of this machine sees.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import phobos

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

TRITON_SAXPY = """
import time, torch, triton, triton.language as tl
@triton.jit
def saxpy(x, y, out, alpha, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, alpha * tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)
x = torch.ones(4096, device="cuda")
times = []
for block in (128, 256, 512, 1024, 2048):  # each is another constant, so another compilation
    start = time.perf_counter()
    saxpy.warmup(x, x, x, 2.0, 4096, BLOCK=block, grid=(1,))
    times.append(time.perf_counter() - start)
print(*times[1:])
"""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="compile times")
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    print(f"{'what':46} {'best':>9} {'median':>9}")
    for path in sorted(EXAMPLES.glob("*.ph")):
        text = path.read_text()
        report(f"phobos.compile, warm: {path.name}", measure(partial(compile_text, text), repeats))
    report("phobos-compile, whole process: saxpy_fp32.ph", measure(compile_in_process, repeats))
    report_triton()
    return 0


def compile_text(text: str) -> None:
    """Compile a program from text to PTX."""
    phobos.compile(text, chip="sm_80")


def compile_in_process() -> None:
    """Run the command-line tool on saxpy."""
    code = "import sys; from phobos.cli.compile import main; sys.exit(main())"
    arguments = [str(EXAMPLES / "saxpy_fp32.ph"), "--chip", "sm_80", "-o", os.devnull]
    with tempfile.TemporaryDirectory() as folder:
        arguments[-1] = str(Path(folder) / "saxpy.ptx")
        subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, check=True)


def measure(action: Callable[[], object], repeats: int) -> list[float]:
    """Seconds of each repeat, after one that warms up."""
    action()
    times: list[float] = []
    for _ in range(repeats):
        gc.collect()
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return times


def report(name: str, times: list[float]) -> None:
    """Print one line."""
    best, median = (1000 * value for value in (min(times), statistics.median(times)))
    print(f"{name:46} {best:6.1f} ms {median:6.1f} ms", flush=True)


def report_triton() -> None:
    """Print Triton's time for the same kernel, its cache empty, or why there is none."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TRITON_CACHE_DIR": cache}
        script = Path(cache) / "saxpy.py"  # Triton reads the source of its kernels from a file
        script.write_text(TRITON_SAXPY)
        finished = subprocess.run(
            [sys.executable, str(script)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if finished.returncode != 0:
        print(f"triton: not measured ({(finished.stderr.strip().splitlines() or ['?'])[-1]})")
        return
    times = [float(word) for word in finished.stdout.split()]
    report("triton, warm, ptxas included: the same saxpy", times)


if __name__ == "__main__":
    sys.exit(main())
