"""`ph-ptx-verify`: what a chip lacks is refused with a reason and a place."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith

from phobos.diagnostics import PhobosError
from phobos.dialects import ptx
from phobos.dialects.ptx import B32, InstructionBuilder
from phobos.ir.locations import location_attr
from phobos.targets.ptx.assembler import assemble
from phobos.targets.ptx.printer import print_module
from phobos.transforms.ptx_verify import verify_module


def _kernel(**bounds) -> tuple[ptx.EntryOp, InstructionBuilder]:
    location = location_attr("a.ph", 3, 5)
    entry = ptx.EntryOp.make("k", [ptx.Parameter("x", "u64")], location=location, **bounds)
    return entry, InstructionBuilder(entry.body, location)


def _verify(entry: ptx.EntryOp, chip: str = "sm_75", *others: ptx.SharedOp, **options) -> None:
    verify_module(ptx.PtxModuleOp.make("m", chip, [*others, entry]), **options)


def test_an_instruction_that_the_chip_lacks():
    entry, build = _kernel()
    build.emit(ptx.ReduxOp, "sync.add.u32", build.sreg("tid.x"), -1)
    build.ret()
    with pytest.raises(PhobosError) as caught:
        _verify(entry)
    assert str(caught.value) == (
        "a.ph:3:5: error: `redux.sync.add.u32` does not exist on sm_75\n"
        "help: sm_80, sm_86, sm_89, sm_90 and sm_120 have it"
    )


def test_an_instruction_that_one_chip_has():
    entry, build = _kernel()
    build.emit_multi(ptx.LdOp, "global.v8.b32", build.param(0, "u64"))
    build.ret()
    with pytest.raises(PhobosError, match="help: sm_120 has it"):
        _verify(entry, "sm_90")


def test_several_violations_are_reported_at_once():
    entry, build = _kernel(maxntid=(64, 32))
    thread = build.sreg("tid.x")
    build.emit(ptx.ReduxOp, "sync.add.u32", thread, -1)
    build.location = location_attr("a.ph", 9, 1)
    build.emit_multi(ptx.ElectOp, "sync", thread)
    build.ret()
    with pytest.raises(PhobosError) as caught:
        _verify(entry)
    messages = [diagnostic.message for diagnostic in caught.value.diagnostics]
    assert messages == [
        "a block of 2048 threads; the limit is 1024",
        "`redux.sync.add.u32` does not exist on sm_75",
        "`elect.sync` does not exist on sm_75",
    ]


def test_an_instruction_without_a_form():
    entry, build = _kernel()
    thread = build.sreg("tid.x")
    build.insert(ptx.AddOp.create(operands=(thread, thread), result_types=(B32,)))
    build.ret()
    with pytest.raises(PhobosError, match="`add` is no form of `add`; its forms are"):
        _verify(entry)


def test_parameters_and_variables_that_are_not_there():
    entry, build = _kernel()
    build.param(3, "u32")
    build.emit_multi(ptx.StOp, "shared.b32", build.symbol("tile"), 0)
    build.ret()
    with pytest.raises(PhobosError) as caught:
        _verify(entry)
    messages = [diagnostic.message for diagnostic in caught.value.diagnostics]
    assert messages == ["`k` has no parameter 3", "there is no variable `tile`"]


def test_what_was_not_lowered():
    entry, build = _kernel()
    build.insert(arith.ConstantOp.from_int_and_width(1, 32))
    build.ret()
    with pytest.raises(PhobosError, match=r"`arith\.constant` is no PTX instruction"):
        _verify(entry)


def test_too_much_shared_memory():
    entry, build = _kernel()
    build.ret()
    shared = [ptx.SharedOp.make("a", 40_000), ptx.SharedOp.make("b", 10_000)]
    with pytest.raises(PhobosError, match=r"take 50000 bytes; the limit is 49152"):
        _verify(entry, "sm_80", *shared)


def test_too_many_parameters():
    entry = ptx.EntryOp.make("k", [ptx.Parameter(f"p{i}", "u64") for i in range(4096)])
    InstructionBuilder(entry.body).ret()
    with pytest.raises(PhobosError, match=r"take 32768 bytes; the limit is 32764"):
        _verify(entry)


@pytest.mark.parametrize("name", ["WARP_SZ", "b\u00e9", "2nd", "_", "a.b"])
def test_names_that_ptx_cannot_have(name: str):
    entry = ptx.EntryOp.make("k", [ptx.Parameter(name, "u32")])
    InstructionBuilder(entry.body).ret()
    with pytest.raises(PhobosError, match="is no name that PTX can have"):
        _verify(entry)


@pytest.mark.parametrize("name", ["add", "exit", "x1", "_x", "$x", "WARP_SZ_"])
def test_names_that_ptx_can_have(name: str):
    entry = ptx.EntryOp.make(name, [ptx.Parameter(name, "u32")])
    InstructionBuilder(entry.body).ret()
    module = ptx.PtxModuleOp.make("m", "sm_80", [entry])
    verify_module(module)
    assemble(print_module(module), "sm_80")


def test_definitions_come_before_uses():
    entry, build = _kernel()
    thread = build.sreg("tid.x")
    added = build.emit(ptx.AddOp, "s32", thread, thread)
    reading, addition = thread.owner, added.owner
    assert isinstance(reading, ptx.SregOp)
    assert isinstance(addition, ptx.AddOp)
    reading.detach()
    entry.body.blocks[0].insert_op_after(reading, addition)
    build.ret()
    with pytest.raises(PhobosError, match="does not come before it on every path"):
        _verify(entry)


def test_locations_can_be_required():
    entry, build = _kernel()
    build.ret()
    _verify(entry, require_locations=True)
    other, bare = _kernel()
    bare.insert(ptx.RetOp.create())
    with pytest.raises(PhobosError, match=r"`ptx\.ret` does not know where it comes from"):
        _verify(other, require_locations=True)


def test_an_unknown_chip_is_suggested():
    entry, build = _kernel()
    build.ret()
    with pytest.raises(PhobosError, match="did you mean `sm_120`"):
        _verify(entry, "sm_12")
