"""Benchmarks: Phobos kernels against PyTorch and Triton, and compile times.

    python -m tools.bench --list
    python -m tools.bench saxpy copy --dtype f32,f16 --csv out.csv --plot roofline.svg
    python -m tools.bench compile-time

A case is one file in `tools/bench/cases`; README.md in this folder says how to add one and how
things are measured.
"""
