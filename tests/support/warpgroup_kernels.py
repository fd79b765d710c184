"""Kernels of one `wgmma` product in PTX, and what NumPy says that they compute.

A kernel copies the images of A and B to shared memory, multiplies in steps of 32 bytes of K and
stores its accumulators register by register. The same text runs on the emulator and on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Launcher = Callable[[str, str, int, int, list[Any], int], None]
"""Takes PTX, the name of the kernel, grid, block, arguments and bytes of shared memory."""

THREADS = 128
ROWS = 64
STEP_BYTES = 32

ELEMENTS: dict[str, np.dtype] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "s8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
}
SWIZZLE_CODES = {0: 0, 128: 1, 64: 2, 32: 3}


@dataclass(frozen=True)
class Placement:
    """How a tile of `rows` by all of K lies in shared memory.

    `width` is the bytes of a swizzled row, 0 without a swizzle. The offsets are those of the
    descriptor; `step` is how far the start moves from one step of K to the next.
    """

    rows: int
    depth: int
    bytes: int
    width: int
    is_k_major: bool

    def offset(self, row: npt.NDArray, k: npt.NDArray) -> npt.NDArray:
        """Bytes from the start of the tile to an element."""
        if self.is_k_major:
            line, along = row, k * self.bytes
            lines = self.rows
        else:
            line, along = k, row * self.bytes
            lines = self.depth
        if self.width:
            place = along // self.width * lines * self.width + line * self.width
            place = place + along % self.width
            return place ^ (((place >> 7) & (self.width // 16 - 1)) << 4)
        piece = along // 16
        inside = line % 8 * 16 + along % 16
        if self.is_k_major:
            return inside + line // 8 * self.stride + piece * self.leading
        return inside + piece * self.stride + line // 8 * self.leading

    @property
    def leading(self) -> int:
        """The leading offset."""
        if self.width:
            return 16 if self.is_k_major else self.depth * self.width
        return self.rows * 16 if self.is_k_major else 128

    @property
    def stride(self) -> int:
        """The stride offset."""
        if self.width:
            return 8 * self.width
        return 128 if self.is_k_major else self.depth * 16

    def start(self, step: int) -> int:
        """Where a step of K starts."""
        k = step * STEP_BYTES // self.bytes
        if self.is_k_major and self.width:
            panel, inside = divmod(step * STEP_BYTES, self.width)
            return panel * self.rows * self.width + inside
        return int(self.offset(np.array([0]), np.array([k]))[0])

    def descriptor(self, base: int, step: int = 0) -> int:
        """The descriptor of a step of K for a tile at `base`."""
        fields = (base + self.start(step)) >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32
        return fields | SWIZZLE_CODES[self.width] << 62

    @property
    def size(self) -> int:
        """Bytes of the tile, in whole kilobytes."""
        lines, along = (self.rows, self.depth) if self.is_k_major else (self.depth, self.rows)
        width = max(self.width, 16)
        panels = -(-along * self.bytes // width)
        return -(-panels * width * -(-lines // 8) * 8 // 1024) * 1024

    def image(self, matrix: npt.NDArray) -> npt.NDArray[np.uint8]:
        """The bytes of the tile for a matrix [row, k]; 0xA5 where it has no element."""
        found = np.full(self.size, 0xA5, np.uint8)
        row, k = (np.arange(matrix.shape[0])[:, None], np.arange(matrix.shape[1]))
        raw = np.ascontiguousarray(matrix).view(np.uint8).reshape(*matrix.shape, self.bytes)
        found[self.offset(row, k)[..., None] + np.arange(self.bytes)] = raw
        return found


@dataclass(frozen=True)
class ProductKernel:
    """One kernel: D = A B or D = C + A B, with A of 64 rows, or 64 for each warpgroup.

    Every CTA computes the same.

    Args:
        columns: N.
        types: Types of D, A and B, as PTX spells them.
        steps: Steps of K.
        width: Bytes of a swizzled row of both operands, 0 for none.
        a: `k` or `mn` for a descriptor of that order, `r` for registers.
        b: `k` or `mn`.
        scale_d: The operand: `1`, `0`, `%p0` (true) or `!%p0`.
        signs: The scales of A and B.
        suffix: What follows the types.
        groups: Warpgroups of a CTA: each multiplies 64 rows of A by the same B.
        texts: Replacements for the parts of the text that are named in `PARTS`.
    """

    columns: int
    types: tuple[str, str, str] = ("f32", "f16", "f16")
    steps: int = 1
    width: int = 128
    a: str = "k"
    b: str = "k"
    scale_d: str = "1"
    signs: tuple[int, int] = (1, 1)
    suffix: str = ""
    groups: int = 1
    texts: tuple[tuple[str, str], ...] = ()

    @property
    def rows(self) -> int:
        """Rows of A."""
        return ROWS * self.groups

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return THREADS * self.groups

    @property
    def element(self) -> int:
        """Bytes of a factor's element."""
        return ELEMENTS[self.types[1]].itemsize

    @property
    def depth(self) -> int:
        """K over all steps."""
        return self.steps * STEP_BYTES // self.element

    @property
    def a_place(self) -> Placement:
        """Where A lies, if not in registers."""
        return Placement(self.rows, self.depth, self.element, self.width, self.a == "k")

    @property
    def b_place(self) -> Placement:
        """Where B lies."""
        return Placement(self.columns, self.depth, self.element, self.width, self.b == "k")

    @property
    def registers(self) -> int:
        """Accumulator registers of a thread."""
        return self.columns // (4 if self.types[0] == "f16" else 2)

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return (0 if self.a == "r" else self.a_place.size) + self.b_place.size

    def part(self, name: str) -> str:
        """A part of the text that may have been replaced."""
        return dict(self.texts).get(name, PARTS[name])

    @property
    def text(self) -> str:
        """The module; the kernel's name is `k`."""
        accumulators = [f"%c{i}" for i in range(self.registers)]
        line = 4 * self.threads
        return "\n".join(
            [
                ".version 8.4\n.target sm_90a\n.address_size 64",
                ".extern .shared .align 1024 .b8 tiles[];",
                ".visible .entry k(.param .u64 p_a,.param .u64 p_b,.param .u64 p_c,",
                ".param .u64 p_d)",
                f".reqntid {self.threads},1,1\n{{",
                f".reg .pred %p<4>; .reg .b32 %t,%s,%i,%x<4>,%a<{4 * self.steps}>;",
                f".reg .b32 %c<{self.registers}>; .reg .b64 %g,%o,%da,%db,%dg;",
                "mov.u32 %t,%tid.x; mul.wide.u32 %o,%t,4; setp.ne.u32 %p0,%t,-1;",
                *self._copies(),
                *self._loads("c", self.registers, 0),
                *([] if self.a != "r" else self._loads("a", 4 * self.steps, 0)),
                self.part("proxy fence"),
                self.part("barrier"),
                self.part("fence"),
                *(self._product(step, accumulators) for step in range(self.steps)),
                self.part("commit"),
                self.part("in flight"),
                self.part("wait"),
                f"mov.u32 %i,%ctaid.x; mul.lo.u32 %i,%i,{self.registers * self.threads};",
                "ld.param.u64 %g,[p_d]; add.u64 %g,%g,%o;",
                "mul.wide.u32 %da,%i,4; add.u64 %g,%g,%da;",
                *(f"st.global.b32 [%g+{line * i}],%c{i};" for i in range(self.registers)),
                "ret; }",
            ]
        )

    def _copies(self) -> list[str]:
        """Both images to shared memory, 16 bytes a thread and turn."""
        lines = ["mov.u32 %s,tiles; shl.b32 %i,%t,4; add.u32 %s,%s,%i;"]
        places = [("b", self.b_place.size)]
        if self.a != "r":
            places.insert(0, ("a", self.a_place.size))
        at = 0
        for name, size in places:
            lines.append(f"ld.param.u64 %g,[p_{name}]; mul.wide.u32 %da,%t,16; add.u64 %g,%g,%da;")
            for offset in range(0, size, 16 * self.threads):
                line = (
                    f"ld.global.v4.b32 {{%x0,%x1,%x2,%x3}},[%g+{offset}]; "
                    f"st.shared.v4.b32 [%s+{at + offset}],{{%x0,%x1,%x2,%x3}};"
                )
                rest = (size - offset) // 16
                if rest < self.threads:
                    lines.append(f"setp.lt.u32 %p1,%t,{rest};")
                    line = " ".join(f"@%p1 {part};" for part in line.split("; ")).replace(";;", ";")
                lines.append(line)
            at += size
        lines.append("mov.u32 %s,tiles;")
        if self.groups > 1 and self.a != "r":
            apart = int(self.a_place.offset(np.array([ROWS]), np.array([0]))[0])
            lines.append(f"shr.u32 %i,%t,7; mul.wide.u32 %dg,%i,{apart >> 4};")
        return lines

    def _loads(self, name: str, count: int, first: int) -> list[str]:
        lines = [f"ld.param.u64 %g,[p_{name}]; add.u64 %g,%g,%o;"]
        return lines + [
            f"ld.global.b32 %{name}{first + i},[%g+{4 * self.threads * i}];" for i in range(count)
        ]

    def _product(self, step: int, accumulators: list[str]) -> str:
        """Descriptors and product of one step of K; the tiles' addresses are added at run time."""
        base = 0
        lines = ["cvt.u64.u32 %da,%s; shr.u64 %da,%da,4;"]
        if self.a == "r":
            left = "{" + ",".join(f"%a{4 * step + i}" for i in range(4)) + "}"
        else:
            left, base = "%da", self.a_place.size
        lines.append(f"add.u64 %db,%da,{self.b_place.descriptor(base, step):#x};")
        if self.a != "r":
            lines.append(f"add.u64 %da,%da,{self.a_place.descriptor(0, step):#x};")
        if self.groups > 1 and self.a != "r":
            lines.append("add.u64 %da,%da,%dg;")
        lines.append(self.part("descriptors"))
        d, a, b = self.types
        operands = ["{" + ",".join(accumulators) + "}", left, "%db"]
        operands.append("1" if step else self.scale_d)
        if a not in ("s8", "u8"):
            operands += [str(sign) for sign in self.signs]
        if a in ("f16", "bf16"):
            operands += [] if self.a == "r" else [str(int(self.a == "mn"))]
            operands.append(str(int(self.b == "mn")))
        k = STEP_BYTES // self.element
        form = f"m64n{self.columns}k{k}.{d}.{a}.{b}{self.suffix}"
        return " ".join(lines) + f"\nwgmma.mma_async.sync.aligned.{form} {', '.join(operands)};"

    # Numbers -------------------------------------------------------------------------------------

    def operands(self, generator: np.random.Generator) -> tuple[npt.NDArray, npt.NDArray]:
        """A [64, k] and B [n, k] of small numbers, whose products add up exactly."""
        found = []
        for rows, kind in ((self.rows, self.types[1]), (self.columns, self.types[2])):
            low = 0 if kind == "u8" else -4
            values = generator.integers(low, 5, (rows, self.depth))
            found.append(values.astype(ELEMENTS[kind]))
        return found[0], found[1]

    def wide_operands(
        self, generator: np.random.Generator
    ) -> tuple[npt.NDArray, npt.NDArray, npt.NDArray]:
        """A, B and C of many magnitudes, whose sums lose bits, or of any bytes for integers."""
        found = []
        shapes = ((self.rows, self.depth), (self.columns, self.depth), (self.rows, self.columns))
        for shape, kind in zip(shapes, (*self.types[1:], self.types[0]), strict=True):
            dtype = {**ELEMENTS, "f32": np.dtype(np.float32), "s32": np.dtype(np.int32)}[kind]
            if kind in ("s8", "u8", "s32"):
                info = np.iinfo(dtype)
                found.append(generator.integers(info.min, info.max, shape, dtype, endpoint=True))
                continue
            power = generator.integers(-4, 4, shape)
            found.append((generator.normal(size=shape) * 2.0**power).astype(dtype))
        return found[0], found[1], found[2]

    def addend(self, generator: np.random.Generator) -> npt.NDArray:
        """C [64, n] of small whole numbers in the type of D."""
        values = generator.integers(-50, 50, (self.rows, self.columns))
        return values.astype({"f32": np.float32, "f16": np.float16, "s32": np.int32}[self.types[0]])

    def expected(self, a: npt.NDArray, b: npt.NDArray, c: npt.NDArray) -> npt.NDArray:
        """What the kernel stores, as a matrix, for exact sums."""
        left, right = a.astype(np.float64) * self.signs[0], b.astype(np.float64) * self.signs[1]
        base = c.astype(np.float64) if self.scale_d in ("1", "%p0") else 0
        return (left @ right.T + base).astype(c.dtype)

    def run(self, launch: Launcher, a: npt.NDArray, b: npt.NDArray, c: npt.NDArray) -> npt.NDArray:
        """D [64, n] from the operands."""
        return self.run_many(launch, a, b, c, 1)[0]

    def run_many(
        self, launch: Launcher, a: npt.NDArray, b: npt.NDArray, c: npt.NDArray, ctas: int
    ) -> list[npt.NDArray]:
        """D of every CTA from the operands."""
        out = np.zeros((ctas, self.registers, self.threads), np.uint32)
        left = self.a_fragments(a) if self.a == "r" else self.a_place.image(a)
        arguments = [left, self.b_place.image(b), self.fragments(c), out]
        launch(self.text, "k", ctas, self.threads, arguments, self.shared)
        return [self.matrix(registers, c.dtype) for registers in out]

    def a_fragments(self, a: npt.NDArray) -> npt.NDArray[np.uint32]:
        """Registers [4 * step + register, thread] of A."""
        per = 4 // self.element
        thread = np.arange(self.threads)
        warp, group, quad = thread // 32, thread % 32 // 4, thread % 4
        found = np.zeros((4 * self.steps, self.threads, per), a.dtype)
        for register in range(4 * self.steps):
            step, r = divmod(register, 4)
            row = 16 * warp + group + 8 * (r % 2)
            for i in range(per):
                k = step * 8 * per + per * quad + i + 4 * per * (r // 2)
                found[register, :, i] = a[row, k]
        return found.view(np.uint32)[..., 0]

    def fragments(self, c: npt.NDArray) -> npt.NDArray[np.uint32]:
        """Registers [register, thread] of accumulators."""
        rows, columns = _accumulator_places(self.columns, self.threads)
        per = 4 // c.dtype.itemsize
        values = c[rows, columns].reshape(self.registers, per, self.threads)
        return np.ascontiguousarray(values.transpose(0, 2, 1)).view(np.uint32)[..., 0]

    def matrix(self, registers: npt.NDArray[np.uint32], dtype: np.dtype) -> npt.NDArray:
        """The matrix of accumulator registers."""
        rows, columns = _accumulator_places(self.columns, self.threads)
        per = 4 // dtype.itemsize
        values = registers.view(dtype).reshape(self.registers, self.threads, per)
        found = np.zeros((self.rows, self.columns), dtype)
        found[rows, columns] = values.transpose(0, 2, 1).reshape(-1, self.threads)
        return found


PARTS = {
    "proxy fence": "fence.proxy.async.shared::cta;",
    "barrier": "bar.sync 0;",
    "fence": "wgmma.fence.sync.aligned;",
    "descriptors": "",
    "commit": "wgmma.commit_group.sync.aligned;",
    "in flight": "",
    "wait": "wgmma.wait_group.sync.aligned 0;",
}
"""The parts of the text that a test may replace, to break the kernel or to look at it."""


def _accumulator_places(columns: int, threads: int) -> tuple[npt.NDArray, npt.NDArray]:
    """Row and column of accumulator elements, shaped [element, thread]."""
    element, thread = np.arange(columns // 2)[:, None], np.arange(threads)
    row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (element // 2 % 2)
    column = 8 * (element // 4) + 2 * (thread % 4) + element % 2
    return row, column


PRODUCT_KERNELS = {
    "f16": ProductKernel(64, steps=2),
    "bf16": ProductKernel(24, ("f32", "bf16", "bf16"), steps=2),
    "f16_into_f16": ProductKernel(32, ("f16", "f16", "f16")),
    "narrow": ProductKernel(8, steps=3),
    "wide": ProductKernel(256),
    "panels": ProductKernel(128, steps=6),
    "swizzle_64": ProductKernel(24, steps=3, width=64),
    "swizzle_32": ProductKernel(24, steps=3, width=32),
    "plain": ProductKernel(24, steps=3, width=0),
    "mn": ProductKernel(72, steps=2, a="mn", b="mn"),
    "mn_64": ProductKernel(72, steps=2, width=64, a="mn", b="mn"),
    "mn_32": ProductKernel(24, steps=2, width=32, a="mn", b="mn"),
    "mn_plain": ProductKernel(24, steps=2, width=0, a="mn", b="mn"),
    "mn_narrow": ProductKernel(8, ("f32", "bf16", "bf16"), b="mn"),
    "a_in_registers": ProductKernel(40, steps=2, a="r"),
    "a_in_registers_b_mn": ProductKernel(128, ("f32", "bf16", "bf16"), steps=2, a="r", b="mn"),
    "tf32": ProductKernel(24, ("f32", "tf32", "tf32"), steps=2),
    "tf32_in_registers": ProductKernel(16, ("f32", "tf32", "tf32"), steps=2, a="r"),
    "e4m3": ProductKernel(24, ("f32", "e4m3", "e4m3"), steps=2, width=64),
    "e5m2_by_e4m3": ProductKernel(16, ("f16", "e5m2", "e4m3"), steps=2),
    "e4m3_in_registers": ProductKernel(16, ("f32", "e4m3", "e5m2"), steps=2, a="r"),
    "s8": ProductKernel(24, ("s32", "s8", "s8"), steps=2),
    "u8": ProductKernel(240, ("s32", "u8", "u8")),
    "s8_by_u8": ProductKernel(16, ("s32", "s8", "u8"), width=32),
    "s8_saturating": ProductKernel(16, ("s32", "s8", "s8"), suffix=".satfinite"),
    "two_warpgroups": ProductKernel(24, steps=3, width=64, groups=2),
    "two_warpgroups_mn": ProductKernel(24, steps=2, width=64, a="mn", groups=2),
    "overwriting": ProductKernel(16, scale_d="0"),
    "by_predicate": ProductKernel(16, scale_d="%p0"),
    "by_negated_predicate": ProductKernel(16, scale_d="!%p0"),
    "negated_a": ProductKernel(16, signs=(-1, 1)),
    "negated_b": ProductKernel(16, signs=(1, -1)),
}
"""Every type, order in memory and modifier, by name."""
