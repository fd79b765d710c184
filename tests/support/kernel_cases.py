"""For each program in phobos/kernels/: what it computes, in NumPy, and what to launch it with.

Products get small integers and must be right to the last bit; attention gets normal numbers. The
emulator tries small extents and a GPU larger ones; nothing else differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

import phobos
from phobos.runtime.device import Device
from phobos.runtime.dtypes import numpy_dtype
from phobos.runtime.module import Module
from tests.support.cases import Arrays, Case, run_case

Scalars = Mapping[str, float]
Dims = Mapping[str, int]
Fill = Callable[[Arrays, Scalars], None]
Compute = Callable[[Arrays, Scalars], np.ndarray]


@dataclass(frozen=True, eq=False)
class Shipped:
    """How to try one program.

    `compute` gives what the tensor `result`, of type `element`, must hold: rounded once it must
    be equal, unless there is a tolerance. `fill` writes the inputs. The launch contract gives
    the grid of all but attention, whose CTAs are one for each block of rows and head.
    """

    file: str
    kernel: str
    result: str
    element: str
    compute: Compute
    fill: Fill
    scalars: Scalars
    tolerance: float = 0.0
    scratch: tuple[str, ...] = ()

    def load(self, chip: str | None, constants: Mapping[str, int]) -> Module:
        """The program, compiled for any extents, and with lines for the emulator to name."""
        return phobos.kernels.load(self.file, chip, constants, extent_multiple=1, line_info=True)

    def run(
        self,
        module: Module,
        dims: Dims,
        device: str | Device,
        *,
        fill: Fill | None = None,
        grid: tuple[int, ...] | None = None,
        **scalars: float,
    ) -> None:
        """Launch it; AssertionError where it wrote anything else than it should."""
        given = {**self.scalars, **scalars}

        def prepare(tensors: Arrays) -> None:
            (fill or self.fill)(tensors, given)

        def reference(tensors: Arrays, _: Scalars) -> Arrays:
            wanted = self.compute(tensors, given)
            if self.tolerance == 0.0:
                wanted = wanted.astype(numpy_dtype(self.element))
            return {self.result: wanted.astype(np.float64)}

        case = Case(
            reference, dims, given, grid, self.tolerance, self.tolerance,
            prepare=prepare, scratch=self.scratch,
        )  # fmt: skip
        run_case(module, self.kernel, case, device)


# Products ----------------------------------------------------------------------------------------


def fill_product(largest: int) -> Fill:
    """Integers up to `largest` in the matrices; what must not be read is NaN."""

    def fill(tensors: Arrays, scalars: Scalars) -> None:
        rng = np.random.default_rng(1)
        for name in "ABC":
            tensor = tensors[name]
            values = rng.integers(-largest, largest + 1, tensor.shape)
            tensor[...] = values.astype(tensor.dtype)
        if scalars["beta"] == 0 and tensors["C"].dtype.kind != "i":
            tensors["C"][...] = np.nan
        if "W" in tensors:
            tensors["W"][...] = np.nan
            tensors["state"][...] = 0

    return fill


def fill_grouped(table: list[tuple[int, int, int, int, int]]) -> Fill:
    """Integers in the matrices, and the problems of a grouped product."""

    def fill(tensors: Arrays, scalars: Scalars) -> None:
        fill_product(2)(tensors, {**scalars, "beta": 1})
        tensors["P"][...] = table

    return fill


def combined(product: np.ndarray, old: np.ndarray, scalars: Scalars) -> np.ndarray:
    """The end of every product: alpha * product + beta * old, where 0 * old is 0."""
    scaled = scalars["alpha"] * product
    return scaled if scalars["beta"] == 0 else scaled + scalars["beta"] * old


def product(tensors: Arrays, scalars: Scalars) -> np.ndarray:
    return combined(tensors["A"] @ tensors["B"], tensors["C"], scalars)


def product_transposed(tensors: Arrays, scalars: Scalars) -> np.ndarray:
    return combined(tensors["A"] @ tensors["B"].T, tensors["C"], scalars)


def grouped_products(tensors: Arrays, scalars: Scalars) -> np.ndarray:
    out = tensors["C"].copy()
    for m, n, k, a, b in tensors["P"]:
        place = np.s_[a : a + m, :n]
        own = tensors["A"][a : a + m, :k] @ tensors["B"][b : b + k, :n]
        out[place] = combined(own, out[place], scalars)
    return out


def _gemm(file: str, element: str, compute: Compute = product, largest: int = 2) -> Shipped:
    scalars = {"alpha": 2, "beta": -1}
    return Shipped(file, "gemm", "C", element, compute, fill_product(largest), scalars)


def _like_gemm(file: str, compute: Compute = product, scratch: tuple[str, ...] = ()) -> Shipped:
    kernel = file.removesuffix("_fp16")
    return replace(_gemm(file, "f16", compute), kernel=kernel, scratch=scratch)


GEMMS = (
    _gemm("gemm_fp32", "f32"),
    _gemm("gemm_tf32", "f32"),
    _gemm("gemm_fp16", "f16"),
    _gemm("gemm_fp16tc_fp32acc", "f16"),
    _gemm("gemm_bf16", "bf16"),
    _gemm("gemm_fp64", "f64"),
    _gemm("gemm_int8", "i32", product_transposed, largest=100),
    _gemm("gemm_fp8e4m3", "bf16", product_transposed),
    _gemm("gemm_fp8e5m2", "bf16", product_transposed),
)
BATCHED = _like_gemm("gemm_batched_fp16")
GROUPED = _like_gemm("gemm_grouped_fp16", grouped_products)
SPLITK = _like_gemm("gemm_splitk_fp16", scratch=("W", "state"))
SPLITK_CLUSTER = replace(_gemm("gemm_splitk_cluster_fp16", "f16"), kernel="gemm_splitk")
STREAMK = _like_gemm("gemm_streamk_fp16", scratch=("W", "state"))


# Attention ---------------------------------------------------------------------------------------


def _fill_attention(tensors: Arrays, _: Scalars) -> None:
    rng = np.random.default_rng(2)
    for name in "QKV":
        tensor = tensors[name]
        tensor[...] = rng.standard_normal(tensor.shape).astype(tensor.dtype)


def _attention(*, causal: bool) -> Compute:
    def compute(tensors: Arrays, scalars: Scalars) -> np.ndarray:
        """softmax(scale Q K^T) V for each head; a row that sees no key is 0."""
        q, k, v = (tensors[name] for name in "QKV")
        shared = len(q) // len(k)
        out = np.empty(q.shape)
        for head in range(len(q)):
            keys, values = k[head // shared], v[head // shared]
            scores = q[head] @ keys.T * scalars["scale"]
            if causal:
                row, column = np.arange(q.shape[1])[:, None], np.arange(k.shape[1])
                scores = np.where(column <= row + k.shape[1] - q.shape[1], scores, -np.inf)
            top = scores.max(axis=1, keepdims=True)
            weights = np.exp(scores - np.where(np.isinf(top), 0.0, top))
            total = weights.sum(axis=1, keepdims=True)
            out[head] = weights @ values / np.where(total == 0.0, 1.0, total)
        return out

    return compute


def attention(file: str, element: str, tolerance: float, *, causal: bool, d: int) -> Shipped:
    """One of the programs for attention, for heads of size `d`."""
    return Shipped(
        file, "attention", "O", element, _attention(causal=causal), _fill_attention,
        {"scale": d**-0.5}, tolerance,
    )  # fmt: skip


ATTENTION = {
    "attention_fp32": ("f32", 4e-6),
    "attention_fp16": ("f16", 2e-3),
    "attention_bf16": ("bf16", 1.6e-2),
}
"""Element type, and how far a result may be off, relative and absolute: two units in the last
place of numbers around 1, and 32 of f32, where the sums' own rounding counts."""

ALL_FILES = {
    *(one.file for one in (*GEMMS, BATCHED, GROUPED, SPLITK, SPLITK_CLUSTER, STREAMK)),
    *ATTENTION,
}
