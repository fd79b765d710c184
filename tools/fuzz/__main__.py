"""Random programs against the compiler: `python -m tools.fuzz --count 2000`."""

from __future__ import annotations

import argparse
import gc
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

from tools.fuzz.generator import generate
from tools.fuzz.generator.programs import CHIPS
from tools.fuzz.runner import Outcome, Verdict, judge
from tools.fuzz.shrink import shrink

_CHUNK = 50


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the programs; returns the exit code, 1 if there is anything to look into."""
    options = _parser().parse_args(arguments)
    seeds = range(options.seed, options.seed + options.count)
    start = time.perf_counter()
    counts: Counter[Verdict] = Counter()
    copied = 0
    for done, (seed, outcome) in enumerate(_outcomes(seeds, options), 1):
        counts[outcome.verdict] += 1
        copied += outcome.by_tensor_copies
        if not outcome.verdict.is_good:
            _report(seed, outcome, options)
        if options.progress and done % 1000 == 0:
            print(f"{done} programs, {time.perf_counter() - start:.0f} s", flush=True)
    print(_summary(counts, copied, time.perf_counter() - start))
    return 0 if all(verdict.is_good for verdict in counts) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="programs to run")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first program")
    parser.add_argument("--jobs", type=int, default=1, help="processes to run them in")
    parser.add_argument("--device", choices=("emulator", "cuda"), default="emulator")
    parser.add_argument("--chip", choices=CHIPS, help="one chip; by default they take turns")
    parser.add_argument("--large", action="store_true", help="programs of many statements")
    parser.add_argument(
        "--products", action="store_true",
        help="products of tiles that fill tensor cores, mostly for the chip with tensor copies",
    )  # fmt: skip
    parser.add_argument(
        "--no-tensor-maps", dest="tensor_maps", action="store_false",
        help="compile for copies without tensor maps, also where the chip has them",
    )  # fmt: skip
    parser.add_argument("--no-shrink", dest="shrink", action="store_false", help="as they are")
    parser.add_argument("--progress", action="store_true", help="say how far it is")
    return parser


def _outcomes(seeds: Sequence[int], options: argparse.Namespace) -> Iterator[tuple[int, Outcome]]:
    jobs = [
        (seeds[start : start + _CHUNK], options.chip, options.device, options.large)
        for start in range(0, len(seeds), _CHUNK)
    ]
    run = partial(run_chunk, tensor_maps=options.tensor_maps, is_product=options.products)
    if options.jobs <= 1:
        for job in jobs:
            yield from run(job)
        return
    with ProcessPoolExecutor(options.jobs) as pool:
        for chunk in pool.map(run, jobs):
            yield from chunk


def run_chunk(
    job: tuple[Sequence[int], str | None, str, bool],
    *,
    tensor_maps: bool = True,
    is_product: bool = False,
) -> list[tuple[int, Outcome]]:
    """The outcomes of some seeds."""
    seeds, chip, device, is_large = job
    # A program makes much garbage in cycles; looking for it all the time costs a tenth.
    gc.disable()
    try:
        return [
            (seed, judge(replace(case, tensor_maps=tensor_maps), device))
            for seed in seeds
            for case in [generate(seed, chip, is_large=is_large, is_product=is_product)]
        ]
    finally:
        gc.enable()
        gc.collect()


def _report(seed: int, outcome: Outcome, options: argparse.Namespace) -> None:
    case = generate(seed, options.chip, is_large=options.large, is_product=options.products)
    case = replace(case, tensor_maps=options.tensor_maps)
    print(f"--- seed {seed}, {case.chip}, grid {case.grid}: {outcome.verdict}")
    print(case.source)
    print(outcome.detail, flush=True)
    if options.shrink:
        smaller = shrink(case, outcome, options.device)
        print("--- made smaller")
        print(smaller.source)
        print(judge(smaller, options.device).detail, flush=True)


def _summary(counts: Counter[Verdict], copied: int, seconds: float) -> str:
    total = sum(counts.values())
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    if copied:
        parts += f"; {copied} took tensor copies"
    return f"{total} programs in {seconds:.0f} s: {parts}"


if __name__ == "__main__":
    raise SystemExit(main())
