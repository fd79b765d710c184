"""Programs of loops that multiply tiles as tensor cores take them, in loops of all shapes."""

from __future__ import annotations

from collections.abc import Callable

from phobos.record import Record, record
from tools.fuzz.generator.terms import TensorParameter
from tools.fuzz.generator.writer import Writer

_STATIC_BYTES, _SHARED_BYTES = 40 << 10, 90 << 10
"""What a stage may take of shared memory that is static, and all stages of memory that is dynamic.

Of the chips with asynchronous copies, some have 99 KB.
"""
THREADS = (128, 128, 128, 128, 128, 256, 256, 64)
TENSOR_COPIES_CHIP = "sm_90a"


@record
class _Kind(Record):
    """Types of operands and sum, the forms of products, and what attribute they want."""

    operands: tuple[str, str]
    total: str
    forms: tuple[str, ...] = ("dot", "dot", "dot_t", "t_dot")
    attribute: str = ""
    contents: tuple[str, ...] = ("whole", "whole", "broad")

    @property
    def unit(self) -> int:
        """Elements that are 16 bytes."""
        return {"f16": 8, "bf16": 8, "f32": 4}.get(self.operands[0], 16)


_WHOLE = ("whole",)
"""Where sums keep fewer bits than the evaluator has a bound for."""
KINDS = (
    _Kind(("f16", "f16"), "f32"),
    _Kind(("f16", "f16"), "f32"),
    _Kind(("bf16", "bf16"), "f32"),
    _Kind(("f32", "f32"), "f32", ("dot", "dot", "dot_t"), "@tensorcore(tf32)", _WHOLE),
    _Kind(("i8", "i8"), "i32", ("dot_t",)),
    _Kind(("f8e4m3", "f8e5m2"), "f32", ("dot_t",), "", _WHOLE),
)


class ProductProgram:
    """Writes a kernel whose CTAs compute a tile of C each, from one loop or several.

    Most programs of sm_90a take tensor copies; the others lack one of the conditions: rows of whole
    16 bytes, operands as they are loaded, whole warpgroups and so on.
    """

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.kind = writer.pick(KINDS)
        self.form, self.inner = "", ""
        self.attributes = [self.kind.attribute] if self.kind.attribute else []
        self.is_stack = writer.chance(0.25)
        self.tile = writer.pick((64, 64, 64, 128)), writer.pick((32, 32, 64, 64, 128))
        self.depth = writer.pick((32, 32, 64)) * (1 if self.kind.unit < 16 else 2)
        if writer.chance(0.08):
            self.tile = writer.pick((8, 48, 96)), writer.pick((16, 48))
        while self._stage_bytes() > _STATIC_BYTES:
            self.depth //= 2
        stages = min(writer.pick((1, 1, 2, 3, 4)), _SHARED_BYTES // self._stage_bytes())
        self.attributes += [f"@pipeline({stages})", "@dynshared"] if stages > 1 else []
        self.attributes += ["@dynshared"] if stages <= 1 and writer.chance(0.6) else []

    def write(self) -> None:
        """The whole body."""
        writer, (rows, columns) = self.writer, self.tile
        writer.line(f"let row = ctx.block.x * {rows}{self._moved()}")
        writer.line(f"let column = ctx.block.y * {columns}")
        if self.is_stack:
            writer.line(f"let item = {writer.pick(('ctx.block.x', 'ctx.block.y', '1', '0'))}")
        units = "1, " if self.is_stack else ""
        zero = "0" if self.kind.total == "i32" else "0.0"
        writer.line(f"var acc: tile<{self.kind.total}>[{units}{rows}, {columns}] = {zero}")
        for _ in range(writer.pick((1, 1, 1, 2))):
            rule: Callable[[], None] = writer.pick(
                (self._loop, self._loop, self._loop, self._loop_in_loop, self._under_condition)
            )
            rule()
        self._store()

    def _stage_bytes(self) -> int:
        """What a stage of both operands takes, whose extents are padded to powers of two."""
        padded = sum(1 << (extent - 1).bit_length() for extent in self.tile)
        return padded * self.depth * 16 // self.kind.unit

    def _moved(self) -> str:
        """What rows begin behind: mostly nothing."""
        writer = self.writer
        if writer.chance(0.8):
            return ""
        return f" + {writer.pick((1, 3, 8, 64))}" if writer.chance(0.6) else " - 5"

    def _loop(self) -> None:
        """A loop along K that adds up products."""
        writer = self.writer
        a, b, inner = self._operands()
        counter = writer.fresh("k")
        first = "0" if writer.chance(0.85) else str(writer.pick((self.depth, self.depth // 2)))
        with writer.block(f"for {counter} in range({first}, {inner}, {self.depth})"):
            self._sum(a, b, counter)
            if writer.chance(0.1):
                writer.line("barrier()")
            if writer.chance(0.1):
                self._sum(a, b, counter)

    def _loop_in_loop(self) -> None:
        writer = self.writer
        rounds = writer.pick(("2", "3", "ctx.blocks.x"))
        with writer.block(f"for {writer.fresh('round')} in range({rounds})"):
            self._loop()
            if writer.chance(0.3):
                self._loop()

    def _under_condition(self) -> None:
        writer = self.writer
        counter = writer.fresh("round")
        with writer.block(f"for {counter} in range(3)"):
            with writer.block(f"if ({counter} + ctx.block.x) % 2 == 0"):
                self._loop()
            if writer.chance(0.4):
                self._loop()

    def _operands(self) -> tuple[str, str, str]:
        """Slices of two tensors, with `k` for the place along K, and the end of the loop."""
        writer, (rows, columns) = self.writer, self.tile
        self.form = writer.pick(self.kind.forms)
        inner = writer.pick((0, 1, 1, 2, 2, 3, 5)) * self.depth
        inner = max(self.kind.unit, inner + self.kind.unit * writer.pick((0, 0, 1, -1, 2)))
        extents = self._extent(rows, writer.grid[0]), self._extent(columns, writer.grid[1])
        along_k, along_row = f"k :+ {self.depth}", f"row :+ {rows}"
        along_column = f"column :+ {columns}"
        a = self._slice(
            0, (extents[0], inner), (along_row, along_k), is_turned=self.form == "t_dot"
        )
        b = self._slice(
            1, (inner, extents[1]), (along_k, along_column), is_turned=self.form == "dot_t"
        )
        return a, b, self.inner

    def _extent(self, length: int, blocks: int) -> int:
        """An extent that some tiles lie inside of, some in part and some behind."""
        writer, unit = self.writer, self.kind.unit
        extent = length * blocks - writer.pick((0, 0, 0, 1, 2, 5)) * unit
        if writer.chance(0.04):
            extent += 3
        return max(unit, extent)

    def _slice(
        self, side: int, extents: tuple[int, int], parts: tuple[str, str], *, is_turned: bool
    ) -> str:
        writer = self.writer
        if is_turned:
            extents, parts = (extents[1], extents[0]), (parts[1], parts[0])
        whole = (writer.pick((1, 2, 3)), *extents) if self.is_stack else extents
        type_ = self.kind.operands[side]
        tensor = self._tensor(type_, whole)
        if side == 0:
            self.inner = tensor.dims[-2 if is_turned else -1]
        unit = ("item :+ 1",) if self.is_stack else ()
        text = f"{tensor.name}[{', '.join((*unit, *parts))}]"
        if writer.chance(0.03):
            return f"pad({text}, 1)"
        can_compute = type_ in ("f16", "bf16", "f32")
        return f"({text} + 1)" if can_compute and writer.chance(0.02) else text

    def _tensor(self, type_: str, extents: tuple[int, ...]) -> TensorParameter:
        """One that there is, or a new one."""
        writer = self.writer
        for tensor in writer.tensors:
            if (tensor.type, tensor.extents) == (type_, extents) and writer.chance(0.6):
                return tensor
        return writer.tensor("x", type_, extents, writer.pick(self.kind.contents), is_input=True)

    def _sum(self, a: str, b: str, counter: str) -> None:
        writer = self.writer
        a, b = (text.replace("k :+", f"{counter} :+") for text in (a, b))
        if writer.chance(0.2):
            left = writer.fresh("left")
            writer.line(f"let {left} = {a}")
            a = left
        if writer.chance(0.2):
            right = writer.fresh("right")
            writer.line(f"let {right} = {b}")
            b = right
        product = f"{self.form}({a}, {b})"
        if writer.chance(0.8):
            writer.line(f"acc += {product}")
        elif writer.chance(0.5):
            writer.line(f"acc = {product} - acc")
        else:
            part = writer.fresh("part")
            writer.line(f"let {part} = {product}")
            writer.line(f"acc += {part} * 2")

    def _store(self) -> None:
        writer, (rows, columns) = self.writer, self.tile
        extents = tuple(
            max(1, length * blocks - writer.pick((0, 0, 1, 5)))
            for length, blocks in zip(self.tile, writer.grid, strict=True)
        )
        items = writer.grid[0] if self.is_stack else 1
        whole = (items, *extents) if self.is_stack else extents
        out = writer.tensor("out", self.kind.total, whole, "whole", is_input=False)
        place = "ctx.block.x :+ 1, " if self.is_stack else ""
        at = f"{out.name}[{place}ctx.block.x * {rows} :+ {rows}, column :+ {columns}]"
        writer.line(f"{at} {'=' if writer.chance(0.7) else '+='} acc")
