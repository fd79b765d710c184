"""Attention, forward: what its case files share. As many keys as queries, and as many heads."""

from __future__ import annotations

from typing import Any

from tools.bench.case import (
    Case,
    Choices,
    Extents,
    PhobosKernel,
    Rate,
    TritonKernel,
    Values,
    ceildiv,
    read,
    shipped,
    written,
)
from tools.bench.reference import E
from tools.bench.triton_language import jit, tl

SIZE = (4 * 32, 4096)
"""A batch of 4 with 32 heads, and the length of their sequences."""
PROGRAMS = {"f32": "attention_fp32", "f16": "attention_fp16", "bf16": "attention_bf16"}


@jit
def triton_attention(
    q, k, v, o, length, scale,
    ROWS: tl.constexpr, KEYS: tl.constexpr, D: tl.constexpr, IS_CAUSAL: tl.constexpr,
):  # fmt: skip
    """ROWS queries of a head a program; f32 is multiplied as it is, not rounded."""
    head = tl.program_id(1).to(tl.int64) * length * D
    first = tl.program_id(0) * ROWS
    row, d = first + tl.arange(0, ROWS), tl.arange(0, D)
    place = row[:, None] * D + d[None, :]
    queries = tl.load(q + head + place, row[:, None] < length, 0.0)
    factor = scale * 1.4426950408889634  # exp(x) is exp2(x * log2(e))
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    out = tl.zeros((ROWS, D), tl.float32)
    # All rows see all keys before `whole`; from there on keys are hidden from some.
    whole = first // KEYS * KEYS if IS_CAUSAL else length // KEYS * KEYS
    last = min(first + ROWS, length) if IS_CAUSAL else length
    for start in range(0, whole, KEYS):
        column = start + tl.arange(0, KEYS)
        keys = tl.load(k + head + column[None, :] * D + d[:, None])
        scores = tl.dot(queries, keys, input_precision="ieee") * factor
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + head + column[:, None] * D + d[None, :])
        out = tl.dot(
            weights.to(values.dtype), values, out * shrink[:, None], input_precision="ieee"
        )
        top = higher
    for start in range(whole, last, KEYS):
        column = start + tl.arange(0, KEYS)
        keys = tl.load(k + head + column[None, :] * D + d[:, None], column[None, :] < length, 0.0)
        seen = column[None, :] < length
        if IS_CAUSAL:
            seen = seen & (column[None, :] <= row[:, None])
        scores = tl.dot(queries, keys, input_precision="ieee") * factor
        scores = tl.where(seen, scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + head + column[:, None] * D + d[None, :], column[:, None] < length, 0.0)
        out = tl.dot(
            weights.to(values.dtype), values, out * shrink[:, None], input_precision="ieee"
        )
        top = higher
    result = (out / total[:, None]).to(o.dtype.element_ty)
    tl.store(o + head + place, result, row[:, None] < length)


def _torch_attention(*, is_causal: bool) -> Any:
    def attention(torch: Any, t: Values) -> None:
        """PyTorch's flash attention, or what it has for f32, where that cannot be had.

        It cannot write to a given array: what it returns takes the place of O.
        """
        from torch.nn.attention import (  # pyright: ignore[reportMissingImports]
            SDPBackend,
            sdpa_kernel,
        )

        is_wide = t.Q.dtype == torch.float32
        backend = SDPBackend.EFFICIENT_ATTENTION if is_wide else SDPBackend.FLASH_ATTENTION
        with sdpa_kernel(backend):
            out = torch.nn.functional.scaled_dot_product_attention(
                t.Q[None], t.K[None], t.V[None], is_causal=is_causal, scale=t.scale
            )
        t.O = out[0]

    return attention


def _reference(*, is_causal: bool) -> Any:
    def reference(t: Values) -> Any:
        """Head by head, since the scores of all would take much memory."""
        out = t.Q * 0
        for head in range(t.Q.shape[0]):
            # The scores of random data are small enough to do without their maximum.
            weights = E ** (t.Q[head] @ t.K[head].T * t.scale)
            if is_causal:
                ones = weights * 0 + 1
                weights = weights * (ones.cumsum(1) <= ones.cumsum(0))
            out[head] = weights @ t.V[head] / weights.sum(1, keepdims=True)
        return out

    return reference


def blocks(*shapes: tuple[int, ...]) -> tuple[Choices, ...]:
    """Constants of a Phobos kernel: BLOCK_M, BLOCK_N, THREADS, and CTAS where it has that."""
    names = ("BLOCK_M", "BLOCK_N", "THREADS", "CTAS")
    return tuple(dict(zip(names, shape, strict=False)) for shape in shapes)


def attention_case(
    name: str,
    dtypes: tuple[str, ...],
    search: tuple[Choices, ...],
    triton: tuple[tuple[int, int, int, int], ...],
    *,
    d: int,
    is_causal: bool = False,
) -> Case:
    """A case for heads of size `d`; `triton` are ROWS, KEYS, warps, stages."""
    fixed = {"D": d, "IS_CAUSAL": int(is_causal)}
    names = ("ROWS", "KEYS", "num_warps", "num_stages")
    half = 2 if is_causal else 1
    return Case(
        name=name,
        summary="O = softmax(scale Q K^T) V" + (", causal" if is_causal else ""),
        dims=("H", "S"),
        sizes=(SIZE,),
        dtypes=dtypes,
        arrays=(*(read(one, "H", "S", d) for one in "QKV"), written("O", "H", "S", d)),
        scalars={"scale": d**-0.5},
        flops=lambda extents: 4 * extents["H"] * extents["S"] ** 2 * d // half,
        # A mean of many values is small, but the first rows of a causal one have few.
        magnitude=lambda extents: 1.0 if is_causal else 2.0 * extents["S"] ** -0.5,
        rate=Rate.FLOPS,
        trial=(4, 68),
        reference=_reference(is_causal=is_causal),
        phobos=PhobosKernel(
            lambda dtype: shipped(PROGRAMS[dtype]),
            "attention",
            tuple({**one, "D": d, "CAUSAL": int(is_causal)} for one in search),
        ),
        torch={"flash": _torch_attention(is_causal=is_causal)},
        triton=TritonKernel(
            triton_attention,
            ("Q", "K", "V", "O", "S", "scale"),
            _triton_grid,
            tuple({**dict(zip(names, one, strict=True)), **fixed} for one in triton),
        ),
    )


def _triton_grid(extents: Extents, chosen: Choices) -> tuple[int, ...]:
    return (ceildiv(extents["S"], chosen["ROWS"]), extents["H"])
