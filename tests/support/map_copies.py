"""Kernels in PTX that copy boxes of a tensor by its tensor map, with their contracts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from phobos.runtime.abi import entry_arguments
from phobos.runtime.module import Module, Variant
from phobos.runtime.multiples import Multiples
from phobos.targets.ptx.contract import (
    Access,
    Contract,
    Dimension,
    GridSource,
    KernelContract,
    TensorMap,
    TensorParameter,
)
from tests.support.doc_blocks import blocks_of

AXES = ("I", "J", "K")


def copy_contract(box: Sequence[int], type_: str, swizzle: int, *, by_map: bool) -> Contract:
    """`copy(A: tensor<f32>[I, J], B: tensor<f32>[P0, P1])`, a thread for each element of a box."""
    rank = len(box)
    outer = tuple(Dimension(f"P{axis}", None) for axis in range(rank))
    inner = tuple(Dimension(name, None) for name in AXES[:rank])
    grid = [f"P{axis} / {extent}" for axis, extent in enumerate(box)]
    x, y, z = [*reversed(grid), "1", "1"][:3]
    kernel = KernelContract(
        name="copy",
        threads=prod(box),
        parameters=(
            TensorParameter("A", "f32", inner, Access.READ),
            TensorParameter("B", "f32", outer, Access.WRITE),
        ),
        grid=(x, y, z),
        grid_from=GridSource.ATTRIBUTE,
        tensor_maps=(TensorMap("A", type_, tuple(box), swizzle),) if by_map else (),
    )
    return Contract("copy.ph", "sm_90", "8.0", 32, 1, (kernel,))


def copy_ptx(contract: Contract) -> str:
    """Each CTA copies a box of A, with zeros outside, to the same place in B."""
    (kernel,) = contract.kernels
    box = kernel.tensor_maps[0].box if kernel.tensor_maps else None
    body = _by_map(kernel.tensor_maps[0]) if kernel.tensor_maps else _by_loads(kernel)
    return _module(kernel, body, 4 * prod(box) if box is not None else 4)


def _module(kernel: KernelContract, body: str, shared_bytes: int) -> str:
    parameters = ",\n  ".join(
        f".param .align 64 .b8 {one.name}[128]"
        if one.type == "b8[128]"
        else f".param .{one.type} {one.name}"
        for one in entry_arguments(kernel, 32)
    )
    return f"""\
.version 8.0
.target sm_90
.address_size 64
.visible .entry {kernel.name}(
  {parameters})
{{
  .reg .pred %p<4>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<12>;
  .shared .align 1024 .b8 box[{shared_bytes}];
  .shared .align 8 .b64 full;
{body}
  ret;
}}
"""


_CTA = ("x", "y", "z")


def _places(box: Sequence[int]) -> str:
    """`%r0` is the thread; the coordinates of its CTA's box in %r1.. and its own in %r11.., the
    innermost first, and the offset of its element in B in %r20."""
    rank = len(box)
    lines = ["mov.u32 %r0, %tid.x;", "mov.u32 %r10, %r0;"]
    for axis, extent in enumerate(reversed(box)):
        lines += [
            f"mov.u32 %r{1 + axis}, %ctaid.{_CTA[axis]};",
            f"mul.lo.u32 %r{1 + axis}, %r{1 + axis}, {extent};",
            f"rem.u32 %r{11 + axis}, %r10, {extent};",
            f"div.u32 %r10, %r10, {extent};",
            f"add.u32 %r{11 + axis}, %r{11 + axis}, %r{1 + axis};",
        ]
    lines += ["mov.u32 %r20, 0;"]
    for axis in range(rank):
        lines += [
            f"ld.param.u32 %r21, [B_stride_{rank - 1 - axis}];",
            f"mad.lo.u32 %r20, %r{11 + axis}, %r21, %r20;",
        ]
    return "\n".join(f"  {line}" for line in lines)


_STORE = """
  ld.param.u64 %rd4, [B_aligned];
  cvta.to.global.u64 %rd4, %rd4;
  mul.wide.u32 %rd5, %r20, 4;
  add.s64 %rd4, %rd4, %rd5;
  st.global.b32 [%rd4], %r22;"""


def _by_map(one: TensorMap) -> str:
    rank, size = len(one.box), 4 * prod(one.box)
    copy = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
    corner = ", ".join(f"%r{1 + axis}" for axis in range(rank))
    # The swizzle exchanges pieces of 16 bytes: bits 4 to 6 of a place by its bits 7 to 9.
    mask = max(one.swizzle // 16 - 1, 0)
    return f"""\
{_places(one.box)}
  mov.u32 %r23, box;
  mov.u32 %r24, full;
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [%r24], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r24], {size};
  mov.b64 %rd1, A_map_0;
  cvta.param.u64 %rd1, %rd1;
  {copy} [%r23], [%rd1, {{{corner}}}], [%r24];
READY:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r24], 0;
  @!%p2 bra WAIT;
  shl.b32 %r25, %r0, 2;
  shr.u32 %r26, %r25, 7;
  and.b32 %r26, %r26, {mask};
  shl.b32 %r26, %r26, 4;
  xor.b32 %r25, %r25, %r26;
  add.u32 %r25, %r25, %r23;
  ld.shared.b32 %r22, [%r25];{_STORE}"""


def _by_loads(kernel: KernelContract) -> str:
    assert kernel.grid is not None
    rank = kernel.tensors[0].rank
    box = [int(text.split("/")[1]) for text in reversed(kernel.grid[:rank])]
    lines = ["mov.u32 %r22, 0;", "mov.u32 %r25, 0;"]
    for axis in range(rank):
        lines += [
            f"ld.param.u32 %r21, [A_size_{rank - 1 - axis}];",
            f"setp.ge.u32 %p1, %r{11 + axis}, %r21;",
            "@%p1 bra STORE;",
            f"ld.param.u32 %r21, [A_stride_{rank - 1 - axis}];",
            f"mad.lo.u32 %r25, %r{11 + axis}, %r21, %r25;",
        ]
    lines += [
        "ld.param.u64 %rd1, [A_aligned];",
        "cvta.to.global.u64 %rd1, %rd1;",
        "mul.wide.u32 %rd2, %r25, 4;",
        "add.s64 %rd1, %rd1, %rd2;",
        "ld.global.b32 %r22, [%rd1];",
    ]
    loads = "\n".join(f"  {line}" for line in lines)
    return f"{_places(box)}\n{loads}\nSTORE:{_STORE}"


def copy_module(
    box: Sequence[int], type_: str = "f32", swizzle: int = 0, made: list[Variant] | None = None
) -> Module:
    """A module whose launches copy by a tensor map where they can; `made` gets its variants."""

    def compile(variant: Variant) -> tuple[str, Contract]:
        if made is not None:
            made.append(variant)
        contract = copy_contract(box, type_, swizzle, by_map=variant.tensor_maps)
        return copy_ptx(contract), contract

    first = Variant(Multiples(1), None, line_info=False)
    plain = copy_contract(box, type_, swizzle, by_map=False)
    return Module(copy_ptx(plain), plain, variant=first, compile=compile, tensor_maps=True)


COPIES = [
    ((8, 16), (5, 12), "f32", 0),
    ((8, 16), (24, 32), "f32", 64),
    ((4, 32), (9, 40), "tf32", 128),
    ((8, 8), (30, 8), "f32", 32),
    ((2, 4, 16), (3, 5, 20), "f32", 0),
    ((1, 8, 32), (2, 11, 32), "f32", 128),
    ((64,), (130,), "f32", 0),
]
"""Boxes, shapes, types and swizzles that the map of a copy may have."""


def copy_case(
    box: Sequence[int], shape: Sequence[int], type_: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A source, a target of whole boxes, and what the target holds behind the copy."""
    source = np.random.default_rng(len(box)).standard_normal(shape).astype(np.float32)
    whole = [-(-extent // size) * size for extent, size in zip(shape, box, strict=True)]
    target, expected = np.full(whole, np.nan, np.float32), np.zeros(whole, np.float32)
    copied = rounded_to_tf32(source) if type_ == "tf32" else source
    expected[tuple(map(slice, shape))] = copied
    return source, target, expected


def rounded_to_tf32(values: np.ndarray) -> np.ndarray:
    """Rounded to 10 bits of fraction, ties to even."""
    bits = values.view(np.uint32)
    bits = bits + 0xFFF + (bits >> 13 & 1)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


RANKS = KernelContract(
    name="ranks",
    threads=1,
    parameters=(TensorParameter("out", "i32", (Dimension("N", None),), Access.WRITE),),
    grid=("N", "1", "1"),
    grid_from=GridSource.ATTRIBUTE,
    cluster=(2, 1, 1),
)

RANKS_PTX = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry ranks(
  .param .u64 out_allocated, .param .u64 out_aligned, .param .u32 out_offset,
  .param .u32 out_size_0, .param .u32 out_stride_0)
.reqnctapercluster 2, 1, 1
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, %clusterid.x;
  mad.lo.u32 %r1, %r2, 10, %r1;
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %rd2, %r2, 4;
  ld.param.u64 %rd1, [out_aligned];
  cvta.to.global.u64 %rd1, %rd1;
  add.s64 %rd1, %rd1, %rd2;
  st.global.b32 [%rd1], %r1;
  ret;
}
"""


def ranks_module() -> Module:
    """`ranks(out)`: each CTA stores its rank and 10 times the number of its cluster of 2."""
    return Module(RANKS_PTX, Contract("ranks.ph", "sm_90", "8.0", 32, 1, (RANKS,)))


def documented_function() -> Callable[..., Any]:
    """`tensor_map` of the page on the ABI, which encodes a map of a contract in JSON."""
    page = Path(__file__).parents[2] / "docs/launch-abi.md"
    codes = (block.text for block in blocks_of(page) if block.kind == "python")
    (code,) = (code for code in codes if "def tensor_map" in code)
    names: dict[str, Any] = {}
    exec(code, names)
    return names["tensor_map"]
