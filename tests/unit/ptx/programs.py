"""Random kernels of integer instructions, loops and branches, and how to run them."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import B16, B32, B64, PRED, RegisterType
from phobos.emulator import emulate
from phobos.targets.ptx.printer import print_module

THREADS = 64
RESULTS = 4
"""Values that each thread stores."""

_CONSTANTS = (0, 1, 2, 3, 4, 7, 8, 10, 16, 31, 32, 255, -1, -2, -8, 1 << 31)
_BINARY: dict[RegisterType, list[tuple[type[ptx.Instruction], str]]] = {
    B32: [
        *((cls, t) for cls in (ptx.AddOp, ptx.SubOp) for t in ("u32", "s32")),
        *((cls, t) for cls in (ptx.MinOp, ptx.MaxOp) for t in ("u32", "s32")),
        *((ptx.MulOp, f"{part}.{t}") for part in ("lo", "hi") for t in ("u32", "s32")),
        *((cls, "b32") for cls in (ptx.AndOp, ptx.OrOp, ptx.XorOp)),
    ],
    B64: [
        *((cls, t) for cls in (ptx.AddOp, ptx.SubOp) for t in ("u64", "s64")),
        (ptx.MulOp, "lo.s64"),
        *((cls, "b64") for cls in (ptx.AndOp, ptx.OrOp, ptx.XorOp)),
    ],
    PRED: [(cls, "pred") for cls in (ptx.AndOp, ptx.OrOp, ptx.XorOp)],
}


class RandomKernel:
    """Builds a kernel that stores a few values computed from the thread and its input."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        names = ("inputs", "outputs", "n")
        parameters = [ptx.Parameter(name, "u64") for name in names[:2]]
        self.entry = ptx.EntryOp.make("k", [*parameters, ptx.Parameter("n", "u32")])
        self.build = ptx.InstructionBuilder(self.entry.body)
        self.values: dict[RegisterType, list[SSAValue]] = {B32: [], B64: [], PRED: [], B16: []}
        self.counters: list[SSAValue] = []
        """Counters of the loops around, each below 4."""
        self._prologue()
        self._statements(depth=0, count=self.random.randint(4, 10))
        self._epilogue()

    def _prologue(self) -> None:
        build = self.build
        thread = build.sreg("tid.x")
        self.output = build.emit(ptx.MadOp, "wide.u32", thread, RESULTS * 8, build.param(1, "u64"))
        self.inputs = build.emit(ptx.CvtaOp, "to.global.u64", build.param(0, "u64"))
        address = build.emit(ptx.MadOp, "wide.u32", thread, 8, self.inputs)
        loaded = build.emit(ptx.LdOp, "global.nc.b64", address)
        self.values[B32] += [
            thread,
            build.param(2, "u32"),
            build.emit(ptx.CvtOp, "u32.u64", loaded),
        ]
        self.values[B64] += [loaded]
        self.values[PRED] += [build.emit(ptx.SetpOp, "lt.u32", thread, 17)]

    def _epilogue(self) -> None:
        for index in range(RESULTS):
            value = self._pick(B64 if index % 2 else B32)
            if value.type == B32:
                value = self.build.emit(ptx.CvtOp, "u64.u32", value)
            self.build.emit_multi(ptx.StOp, "global.b64", self.output, value, offset=8 * index)
        self.build.ret()

    def _pick(self, register: RegisterType) -> SSAValue:
        """A value that dominates the current place, often a recent one, or a constant."""
        choices = self.values[register]
        if register != PRED and self.random.random() < 0.3:
            return self.build.imm(self.random.choice(_CONSTANTS), register)
        if self.random.random() < 0.5:
            return choices[-1]
        return self.random.choice(choices)

    def _statements(self, depth: int, count: int) -> None:
        for _ in range(count):
            roll = self.random.random()
            if depth < 2 and roll < 0.12:
                self._loop(depth)
            elif depth < 2 and roll < 0.24:
                self._branch(depth)
            else:
                self._instruction()

    def _instruction(self) -> None:
        makers: list[Callable[[], SSAValue]] = [
            self._binary,
            self._binary,
            self._divide,
            self._shift,
            self._compare,
            self._convert,
            self._select,
            self._multiply_add,
            self._negate,
            self._load,
        ]
        value = self.random.choice(makers)()
        assert isinstance(value.type, RegisterType)
        self.values[value.type].append(value)

    def _binary(self) -> SSAValue:
        register = self.random.choice((B32, B32, B64, PRED))
        cls, suffix = self.random.choice(_BINARY[register])
        return self.build.emit(cls, suffix, self._pick(register), self._pick(register))

    def _divide(self) -> SSAValue:
        register, kind = self.random.choice(((B32, "u32"), (B32, "s32"), (B64, "s64")))
        cls = self.random.choice((ptx.DivOp, ptx.RemOp))
        divisor = self.random.choice((1, 2, 3, 7, 8, 10, 64, 1000, -3, -4))
        return self.build.emit(cls, kind, self._pick(register), self.build.imm(divisor, register))

    def _shift(self) -> SSAValue:
        register = self.random.choice((B32, B64))
        cls, kind = self.random.choice(((ptx.ShlOp, "b"), (ptx.ShrOp, "u"), (ptx.ShrOp, "s")))
        amount = self.random.choice((0, 1, 2, 4, 31, 33, 64))
        return self.build.emit(cls, f"{kind}{register.bits}", self._pick(register), amount)

    def _compare(self) -> SSAValue:
        register, kind = self.random.choice(((B32, "s32"), (B32, "u32"), (B64, "s64")))
        compare = self.random.choice(("eq", "ne", "lt", "le", "gt", "ge"))
        return self.build.emit(
            ptx.SetpOp, f"{compare}.{kind}", self._pick(register), self._pick(register)
        )

    def _convert(self) -> SSAValue:
        suffix, source = self.random.choice(
            (("u64.u32", B32), ("s64.s32", B32), ("u32.u64", B64), ("s32.s8", B32))
        )
        return self.build.emit(ptx.CvtOp, suffix, self._pick(source))

    def _select(self) -> SSAValue:
        register = self.random.choice((B32, B64))
        left, right = self._pick(register), self._pick(register)
        return self.build.emit(ptx.SelpOp, f"b{register.bits}", left, right, self._pick(PRED))

    def _multiply_add(self) -> SSAValue:
        if self.random.random() < 0.5:
            return self.build.emit(
                ptx.MadOp, "wide.s32", self._pick(B32), self._pick(B32), self._pick(B64)
            )
        return self.build.emit(
            ptx.MadOp, "lo.s32", self._pick(B32), self._pick(B32), self._pick(B32)
        )

    def _load(self) -> SSAValue:
        """A load of the input at an index below 63, which counts along a loop if there is one."""
        build = self.build
        index = build.emit(ptx.AndOp, "b32", self._pick(B32), 31)
        if self.counters:
            index = build.emit(ptx.AddOp, "s32", index, self.random.choice(self.counters))
        if self.random.random() < 0.3:
            address = build.emit(ptx.MadOp, "wide.s32", index, 8, self.inputs)
        else:
            wide = build.emit(ptx.MulOp, "wide.s32", index, self.random.choice((1, 2)))
            offset = build.emit(ptx.ShlOp, "b64", wide, 2)
            address = build.emit(ptx.AddOp, "s64", self.inputs, offset)
        return build.emit(ptx.LdOp, "global.b32", address, offset=self.random.choice((0, 4)))

    def _negate(self) -> SSAValue:
        if self.random.random() < 0.5:
            return self.build.emit(ptx.NotOp, "pred", self._pick(PRED))
        return self.build.emit(ptx.NegOp, "s32", self._pick(B32))

    def _scoped(self, depth: int) -> None:
        """Statements in a block of their own, whose values end with it."""
        self._statements(depth + 1, self.random.randint(1, 5))

    def _saved(self) -> dict[RegisterType, list[SSAValue]]:
        return {register: list(values) for register, values in self.values.items()}

    def _branch(self, depth: int) -> None:
        build = self.build
        condition = self._pick(PRED)
        then_block, else_block = build.block(name="then"), build.block(name="else")
        joined = build.block([B32, B64], "join")
        saved = self._saved()
        build.cond_bra(condition, then_block, else_block)
        for block in (then_block, else_block):
            build.at(block)
            self.values = {register: list(values) for register, values in saved.items()}
            self._scoped(depth)
            build.bra(joined, self._pick(B32), self._pick(B64))
        build.at(joined)
        self.values = saved
        self.values[B32].append(joined.args[0])
        self.values[B64].append(joined.args[1])

    def _loop(self, depth: int) -> None:
        build = self.build
        loop, after = build.block([B32, B32, B64], "loop"), build.block([B64], "after")
        trips = self.random.randint(1, 4)
        build.bra(loop, build.imm(0, B32), self._pick(B32), self._pick(B64))
        build.at(loop)
        saved = self._saved()
        self.values[B32] += loop.args[:2]
        self.values[B64].append(loop.args[2])
        self.counters.append(loop.args[0])
        self._scoped(depth)
        self.counters.pop()
        following = build.emit(ptx.AddOp, "s32", loop.args[0], 1)
        again = build.emit(ptx.SetpOp, "lt.s32", following, trips)
        carried = (following, self._pick(B32), self._pick(B64))
        build.cond_bra(again, loop, after, carried, (self._pick(B64),))
        build.at(after)
        self.values = saved
        self.values[B64].append(after.args[0])

    @property
    def module(self) -> ptx.PtxModuleOp:
        """The module around the kernel."""
        parent = self.entry.parent_op()
        if isinstance(parent, ptx.PtxModuleOp):
            return parent
        return ptx.PtxModuleOp.make("m", "sm_80", [self.entry])


def run_kernel(module: ptx.PtxModuleOp, seed: int = 0) -> np.ndarray:
    """What the kernel stores on the emulator, for inputs drawn from a seed."""
    rng = np.random.default_rng(seed)
    inputs = rng.integers(0, 1 << 64, THREADS, dtype=np.uint64)
    inputs[:4] = (0, 1, (1 << 64) - 1, 1 << 63)
    outputs = np.zeros((THREADS, RESULTS), dtype=np.uint64)
    emulate(print_module(module), "k", 1, THREADS, [inputs, outputs, np.uint32(37)])
    return outputs
