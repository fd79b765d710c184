"""For each program in examples/: what it computes, in NumPy, and the launches it is tried with.

Extents are awkward ones: 1, one past a tile, odd numbers, and such that several tiles and a rest
are needed on each axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phobos.targets.ptx.contract import KernelContract
from tests.support.cases import Arrays, Case, Reference

EXAMPLES = Path(__file__).parents[2] / "examples"

MULTIPLES_OF_4 = (4, 100, 1000)
"""Extents that keep the default promise, so that the default PTX serves them."""
ODD_EXTENTS = (1, 3, 17, 97)

Scalars = Mapping[str, float]
Dims = dict[str, int]


@dataclass(frozen=True, eq=False)
class Example:
    """How to try one program.

    `shapes` maps one awkward extent and the kernel's constants to the extents of a launch.
    """

    file: str
    kernel: str
    reference: Reference
    shapes: Callable[[int, Mapping[str, float]], Dims]
    scalars: Mapping[str, float] | None = None
    grid: Callable[[Dims], tuple[int, ...]] | None = None
    relative: float = 1e-6
    absolute: float = 1e-6
    extents: tuple[int, ...] = (*MULTIPLES_OF_4, *ODD_EXTENTS)
    tile: str | None = None
    prepare: Callable[[Arrays], None] | None = None
    scratch: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The program."""
        return EXAMPLES / self.file

    def case(self, dims: Dims) -> Case:
        """A launch with these extents."""
        return Case(
            self.reference,
            dims,
            self.scalars or {},
            None if self.grid is None else self.grid(dims),
            self.relative,
            # The error of a sum grows with the number of its terms.
            self.absolute * max(1, dims.get("K", 1) / 64),
            prepare=self.prepare,
            scratch=self.scratch,
        )

    def cases(self, kernel: KernelContract, *, multiple: int = 1) -> list[Case]:
        """The launches whose extents are all multiples of `multiple`.

        Beside the fixed extents there is one past a tile, and a tile and `multiple` more.
        """
        constants = kernel.constants
        extents = list(self.extents)
        if self.tile is not None:
            extents += [int(constants[self.tile]) + 1, int(constants[self.tile]) + multiple]
        shapes = [self.shapes(extent, constants) for extent in dict.fromkeys(extents)]
        return [
            self.case(dims)
            for dims in shapes
            if all(extent % multiple == 0 for extent in dims.values())
        ]


def saxpy(tensors: Arrays, scalars: Scalars) -> Arrays:
    return {"out": scalars["alpha"] * tensors["x"] + tensors["y"]}


def scale(tensors: Arrays, scalars: Scalars) -> Arrays:
    return {"out": scalars["alpha"] * tensors["x"]}


def row_sum(tensors: Arrays, scalars: Scalars) -> Arrays:
    return {"O": tensors["X"].sum(axis=1, keepdims=True)}


def matvec(tensors: Arrays, scalars: Scalars) -> Arrays:
    return {"O": tensors["A"] @ tensors["W"].T}


def copy2d(tensors: Arrays, scalars: Scalars) -> Arrays:
    return {"B": tensors["A"]}


def axpby(tensors: Arrays, scalars: Scalars) -> Arrays:
    scaled = scalars["alpha"] * tensors["X"] + scalars["beta"] * tensors["Y"]
    return {"Z": scaled + tensors["bias"]}


def batch_add(tensors: Arrays, scalars: Scalars) -> Arrays:
    return {"C": tensors["A"] + tensors["B"]}


def gemm(tensors: Arrays, scalars: Scalars) -> Arrays:
    product = tensors["A"] @ tensors["B"]
    return {"C": scalars["alpha"] * product + scalars["beta"] * tensors["C"]}


def softmax(tensors: Arrays, scalars: Scalars) -> Arrays:
    exponentials = np.exp(tensors["X"] - tensors["X"].max(axis=1, keepdims=True))
    return {"Y": exponentials / exponentials.sum(axis=1, keepdims=True)}


def layernorm(tensors: Arrays, scalars: Scalars) -> Arrays:
    x = tensors["X"]
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt(variance + scalars["epsilon"])
    return {"Y": scaled * tensors["gamma"] + tensors["beta"]}


def rmsnorm(tensors: Arrays, scalars: Scalars) -> Arrays:
    x = tensors["X"]
    mean = (x * x).mean(axis=1, keepdims=True)
    return {"Y": x / np.sqrt(mean + scalars["epsilon"]) * tensors["gamma"]}


def cross_entropy(tensors: Arrays, scalars: Scalars) -> Arrays:
    x = tensors["X"]
    top = x.max(axis=1, keepdims=True)
    total = np.exp(x - top).sum(axis=1, keepdims=True)
    return {"L": top + np.log(total) - np.take_along_axis(x, tensors["T"][:, None], axis=1)}


def turn(tensors: Arrays, scalars: Scalars) -> Arrays:
    return {"B": tensors["A"].T}


def running_sum(tensors: Arrays, scalars: Scalars) -> Arrays:
    return {"O": tensors["X"].cumsum(axis=1)}


def top1(tensors: Arrays, scalars: Scalars) -> Arrays:
    x = tensors["X"]
    return {"P": x.argmax(axis=1, keepdims=True), "V": x.max(axis=1, keepdims=True)}


def histogram(tensors: Arrays, scalars: Scalars) -> Arrays:
    return {"H": tensors["H"] + np.bincount(tensors["X"], minlength=256)}


def prefix_sum(tensors: Arrays, scalars: Scalars) -> Arrays:
    return {"O": tensors["X"].cumsum()}


def no_cta_has_come(tensors: Arrays) -> None:
    """Clears the state of a grid barrier."""
    tensors["state"][...] = 0


def stencil(tensors: Arrays, scalars: Scalars) -> Arrays:
    a = tensors["A"]
    wide = np.pad(a, 1)
    around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    return {"B": a + scalars["alpha"] * (around - 4 * a)}


def dropout(tensors: Arrays, scalars: Scalars) -> Arrays:
    def mix(x: np.ndarray) -> np.ndarray:
        x ^= x >> 16
        x = x * 0x7FEB352D & 0xFFFFFFFF
        x ^= x >> 15
        x = x * 0x846CA68B & 0xFFFFFFFF
        return x ^ x >> 16

    x, keep = tensors["X"], scalars["keep"]
    random = mix(mix(np.arange(len(x), dtype=np.uint64)) ^ np.uint64(scalars["seed"]))
    return {"Y": np.where(random >> 8 < keep * (1 << 24), x / keep, 0)}


def attention(tensors: Arrays, scalars: Scalars) -> Arrays:
    scores = scalars["scale"] * tensors["Q"] @ tensors["K"].T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return {"O": weights @ tensors["V"] / weights.sum(axis=1, keepdims=True)}


def linear_attention(tensors: Arrays, scalars: Scalars) -> Arrays:
    heads, steps, _ = tensors["Q"].shape
    out = np.zeros_like(tensors["V"])
    for head in range(heads):
        q, k, g, v = (tensors[name][head] for name in "QKGV")
        state = np.zeros((q.shape[1], v.shape[1]))
        for t in range(steps):
            state = np.exp(g[t])[:, None] * state + np.outer(k[t], v[t])
            out[head, t] = q[t] @ state
    return {"O": out}


def slow_decay(tensors: Arrays) -> None:
    """Makes the logarithms of decay small negative numbers."""
    tensors["G"][...] = -0.1 * np.abs(tensors["G"])


def embedding(tensors: Arrays, scalars: Scalars) -> Arrays:
    return {"O": tensors["W"][tensors["T"]]}


def table_rows(tensors: Arrays) -> None:
    """Makes the subscripts numbers of rows of the table."""
    tensors["T"][...] %= tensors["W"].shape[0]


def class_numbers(tensors: Arrays) -> None:
    """Makes the targets numbers of columns."""
    tensors["T"][...] %= tensors["X"].shape[1]


def row_in_a_block(extent: int, constants: Mapping[str, float]) -> Dims:
    """A row that fits one tile of BLOCK."""
    return {"M": min(extent, 7), "N": min(extent, int(constants["BLOCK"]))}


def vector(extent: int, constants: Mapping[str, float]) -> Dims:
    return {"N": extent}


def matrix(extent: int, constants: Mapping[str, float]) -> Dims:
    """Few rows and many columns, so that a launch stays small."""
    return {"M": min(extent, 36), "N": extent}


def weights(extent: int, constants: Mapping[str, float]) -> Dims:
    return {"K": extent, "N": min(extent, 20)}


def whole_tiles(extent: int, constants: Mapping[str, float]) -> Dims:
    """One tile along M, two along N, some along K: gemm takes whole tiles only."""
    tile_m, tile_n, tile_k = (int(constants[name]) for name in ("TILE_M", "TILE_N", "TILE_K"))
    return {"M": tile_m, "N": 2 * tile_n, "K": extent * tile_k}


def eighths(dims: Dims) -> tuple[int, ...]:
    return (-(-dims["N"] // 8),)


ALL = (
    Example("saxpy_fp32.ph", "saxpy", saxpy, vector, {"alpha": 2.5}, tile="BLOCK"),
    Example(
        "scale.ph", "scale", scale, vector, {"alpha": -1.5}, lambda dims: (3,), tile="BLOCK",
    ),
    Example(
        "row_sum.ph", "row_sum", row_sum, lambda k, _: {"R": min(k, 20), "K": k},
        grid=lambda dims: (dims["R"],), absolute=2e-5,
    ),
    Example("matvec.ph", "matvec", matvec, weights, grid=eighths, absolute=5e-5),
    Example("matvec_i8.ph", "matvec_i8", matvec, weights, grid=eighths),
    Example("copy2d.ph", "copy2d", copy2d, matrix, relative=0, absolute=0, tile="TILE_N"),
    Example(
        "axpby_bf16.ph", "axpby", axpby, matrix, {"alpha": 0.75, "beta": -2.0}, tile="TILE_N",
        absolute=3e-6,
    ),
    Example(
        "batch_add.ph", "batch_add", batch_add,
        lambda n, _: {"BATCH": min(n, 4), "M": min(n, 12), "N": n}, tile="TILE_N",
    ),
    Example(
        "gemm_fp32.ph", "gemm", gemm, whole_tiles, {"alpha": 1.25, "beta": -0.5}, extents=(1, 5),
        absolute=2e-5,
    ),
    Example(
        "gemm_fp16tc_fp32acc.ph", "gemm", gemm, whole_tiles, {"alpha": 1.25, "beta": -0.5},
        extents=(1, 5), absolute=2e-3, relative=2e-3,
    ),
    Example("softmax.ph", "softmax", softmax, row_in_a_block, relative=1e-5),
    Example(
        "layernorm.ph", "layernorm", layernorm, row_in_a_block, {"epsilon": 1e-3}, absolute=1e-5,
        relative=1e-5,
    ),
    Example(
        "rmsnorm_bf16.ph", "rmsnorm", rmsnorm, row_in_a_block, {"epsilon": 1e-3}, relative=4e-3,
    ),
    Example(
        "cross_entropy.ph", "cross_entropy", cross_entropy, row_in_a_block, relative=1e-5,
        absolute=1e-5, prepare=class_numbers,
    ),
    Example(
        "cumsum.ph", "running_sum", running_sum, lambda k, _: {"R": min(k, 5), "K": k},
        absolute=2e-5, tile="BLOCK",
    ),
    Example("top1.ph", "top1", top1, row_in_a_block),
    Example("histogram.ph", "histogram", histogram, vector, extents=(4, 1000, 1, 97, 10000)),
    Example(
        "prefix_sum.ph", "prefix_sum", prefix_sum, lambda n, _: {"N": n, "B": 512},
        absolute=1e-3, tile="BLOCK", extents=(4, 1, 97, 10000), prepare=no_cta_has_come,
        scratch=("parts", "state"),
    ),
    Example("stencil.ph", "stencil", stencil, matrix, {"alpha": 0.2}, tile="TILE_N"),
    Example(
        "dropout.ph", "dropout", dropout, vector, {"keep": 0.75, "seed": 12345}, tile="BLOCK",
    ),
    Example(
        "attention.ph", "attention", attention,
        lambda n, _: {"L": min(n, 20), "S": min(n, 40)}, {"scale": 0.2}, relative=1e-5,
        absolute=1e-5, extents=(100, 3, 17),
    ),
    Example(
        "linear_attention.ph", "linear_attention", linear_attention,
        lambda n, _: {"H": min(n, 4), "T": min(n, 40)}, relative=1e-4, absolute=1e-3,
        extents=(100, 1, 17), prepare=slow_decay,
    ),
    Example(
        "embedding.ph", "embedding", embedding,
        lambda n, _: {"I": min(n, 40), "V": n, "D": n}, relative=0, absolute=0,
        tile="COLUMNS", prepare=table_rows,
    ),
    Example("transpose.ph", "turn", turn, matrix, relative=0, absolute=0, tile="TILE"),
)  # fmt: skip


def large_shapes(example: Example) -> Dims:
    """Extents that fill a GPU, for tests on one."""
    return {
        "saxpy": {"N": (1 << 22) + 1},
        "scale": {"N": (1 << 22) + 1},
        "row_sum": {"R": 1003, "K": 4099},
        "matvec": {"N": 4099, "K": 4099},
        "matvec_i8": {"N": 4099, "K": 4099},
        "copy2d": {"M": 2051, "N": 4099},
        "axpby": {"M": 2051, "N": 4099},
        "batch_add": {"BATCH": 17, "M": 515, "N": 1027},
        "gemm": {"M": 512, "N": 256, "K": 512},
        "softmax": {"M": 3001, "N": 1021},
        "layernorm": {"M": 3001, "N": 1021},
        "rmsnorm": {"M": 3001, "N": 1021},
        "cross_entropy": {"M": 3001, "N": 1021},
        "running_sum": {"R": 1003, "K": 4099},
        "top1": {"M": 3001, "N": 1021},
        "histogram": {"N": (1 << 22) + 1},
        "prefix_sum": {"N": (1 << 16) + 1, "B": 4096},
        "stencil": {"M": 2051, "N": 4099},
        "dropout": {"N": (1 << 22) + 1},
        "attention": {"L": 1003, "S": 1021},
        "linear_attention": {"H": 64, "T": 515},
        "embedding": {"I": 5001, "V": 999, "D": 1021},
        "turn": {"M": 2051, "N": 4099},
    }[example.kernel]
