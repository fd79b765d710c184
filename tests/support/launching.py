"""A contract and a PTX text to launch, and a device that only takes note."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from phobos.runtime.arrays import ArrayView
from phobos.runtime.device import Device, Launch, Program, Timing
from phobos.targets.ptx.contract import (
    Access,
    Contract,
    Dimension,
    GridSource,
    KernelContract,
    ScalarParameter,
    TensorParameter,
)

N = Dimension("N", None)

SAXPY = KernelContract(
    name="saxpy",
    threads=256,
    parameters=(
        TensorParameter("x", "f32", (N,), Access.READ),
        TensorParameter("y", "f32", (N,), Access.READ),
        TensorParameter("out", "f32", (N,), Access.WRITE),
        ScalarParameter("alpha", "f32"),
    ),
    constants={"BLOCK": 16},
    autotune={"BLOCK": (16, 8192)},
    grid=("ceildiv(N, BLOCK)", "1", "1"),
    grid_from=GridSource.INFERRED,
)

SAXPY_PTX = """\
.version 7.4
.target sm_80
.address_size 64
.visible .entry saxpy(
  .param .u64 x_allocated, .param .u64 x_aligned, .param .u32 x_offset,
  .param .u32 x_size_0, .param .u32 x_stride_0,
  .param .u64 y_allocated, .param .u64 y_aligned, .param .u32 y_offset,
  .param .u32 y_size_0, .param .u32 y_stride_0,
  .param .u64 out_allocated, .param .u64 out_aligned, .param .u32 out_offset,
  .param .u32 out_size_0, .param .u32 out_stride_0,
  .param .f32 alpha)
{
  .reg .pred %p<3>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<10>;
  ld.param.u32 %r1, [x_size_0];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, 16;
  @%p1 bra DONE;
  mov.u32 %r3, %ctaid.x;
  mad.lo.u32 %r4, %r3, 16, %r2;
  setp.ge.u32 %p2, %r4, %r1;
  @%p2 bra DONE;
  ld.param.u64 %rd1, [x_aligned];
  ld.param.u64 %rd2, [y_aligned];
  ld.param.u64 %rd3, [out_aligned];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  cvta.to.global.u64 %rd3, %rd3;
  mul.wide.u32 %rd4, %r4, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.b32 %r5, [%rd5];
  ld.global.b32 %r6, [%rd6];
  ld.param.b32 %r7, [alpha];
  fma.rn.f32 %r8, %r7, %r5, %r6;
  st.global.b32 [%rd7], %r8;
DONE:
  ret;
}
"""


def contract_of(
    *kernels: KernelContract, extent_multiple: int = 4, index_bits: int = 32
) -> Contract:
    return Contract(
        source="test.ph",
        chip="sm_80",
        ptx_version="7.4",
        index_bits=index_bits,
        extent_multiple=extent_multiple,
        kernels=kernels,
        compiler_version="0.0",
        compiler_fingerprint="0" * 16,
    )


@dataclass
class NotingDevice(Device):
    """Runs nothing; keeps what it was asked to launch."""

    name: ClassVar[str] = "noting"

    resident: int = 8
    launches: list[Launch] = field(default_factory=list)

    def describe(self) -> str:
        return "a device for tests"

    def check(self, program: Program, views: Iterable[ArrayView]) -> None:
        pass

    def resident_ctas(self, program: Program) -> int:
        return self.resident

    def launch(self, launch: Launch) -> None:
        self.launches.append(launch)

    def time(self, launch: Launch, count: int, progress: Callable[[], None]) -> Timing:
        for _ in range(count):
            self.launch(launch)
            progress()
        return Timing((0.25,) * count, is_emulated=False)
