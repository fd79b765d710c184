"""Dominance: the tree, and the check that finds uses before definitions."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Block, Operation, Region

from phobos.diagnostics import PhobosError
from phobos.dialects import ptx
from phobos.dialects.ptx import B32, PRED, InstructionBuilder
from phobos.ir.dominance import DominatorTree, check_dominance
from phobos.ir.locations import location_attr
from tests.unit.ptx.programs import RandomKernel


def _graph(edges: dict[str, str]) -> tuple[Region, dict[str, Block]]:
    """A region with a block for each letter, and branches to one or two others."""
    entry = ptx.EntryOp.make("k", ())
    build = InstructionBuilder(entry.body)
    blocks = {name: build.block(name=name) for name in edges}
    condition = build.true()
    build.bra(blocks[next(iter(edges))])
    for name, targets in edges.items():
        build.at(blocks[name])
        match [blocks[target] for target in targets]:
            case []:
                build.ret()
            case [target]:
                build.bra(target)
            case [first, second]:
                build.cond_bra(condition, first, second)
    return entry.body, blocks


def _dominators(region: Region, block: Block) -> set[Block]:
    """By definition: what cannot be avoided on the way to a block."""
    unavoidable = set()
    for candidate in region.blocks:
        seen = {candidate}
        pending = [region.blocks[0]] if candidate is not region.blocks[0] else []
        while pending:
            current = pending.pop()
            if current not in seen:
                seen.add(current)
                assert current.last_op is not None
                pending.extend(current.last_op.successors)
        if block not in seen or block is candidate:
            unavoidable.add(candidate)
    return unavoidable


GRAPHS = {
    "diamond": {"a": "bc", "b": "d", "c": "d", "d": ""},
    "loop": {"a": "b", "b": "cd", "c": "b", "d": ""},
    "nested loops": {"a": "b", "b": "c", "c": "cd", "d": "be", "e": ""},
    "irreducible": {"a": "bc", "b": "cd", "c": "b", "d": ""},
    "unreachable": {"a": "b", "b": "", "c": "b"},
    "crossing": {"a": "bc", "b": "de", "c": "ef", "d": "g", "e": "g", "f": "g", "g": ""},
}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_tree_says_what_cannot_be_avoided(name: str):
    region, _ = _graph(GRAPHS[name])
    tree = DominatorTree(region)
    for below in tree.order:
        expected = _dominators(region, below)
        assert {above for above in tree.order if tree.dominates(above, below)} == expected


@pytest.mark.parametrize("name", GRAPHS)
def test_preorder_visits_dominators_first(name: str):
    region, blocks = _graph(GRAPHS[name])
    tree = DominatorTree(region)
    visited = list(tree.preorder())
    assert len(visited) == len(tree.order)
    seen: set[Block] = set()
    for block, depth in visited:
        parent = tree.parent[block]
        assert parent is None or parent in seen
        assert depth == 0 if parent is None else depth > 0
        seen.add(block)
    assert (blocks.get("c") in seen) == (name != "unreachable")


def test_unreachable_blocks_are_left_out():
    region, blocks = _graph(GRAPHS["unreachable"])
    tree = DominatorTree(region)
    assert blocks["c"] not in tree.position
    assert tree.predecessors[blocks["b"]] == [blocks["a"]]


def test_random_kernels_pass():
    for seed in range(10):
        check_dominance(RandomKernel(seed).module)


def test_a_use_before_its_definition_is_found():
    entry = ptx.EntryOp.make("k", ())
    build = InstructionBuilder(entry.body, location_attr("a.ph", 4, 2))
    first = build.sreg("tid.x")
    second = build.emit(ptx.AddOp, "s32", first, first)
    third = build.emit(ptx.AddOp, "s32", first, second)
    build.ret()
    addition = second.owner
    assert isinstance(addition, Operation)
    addition.operands[1] = third
    with pytest.raises(PhobosError, match=r"a.ph:4:2: error: .*`ptx.add` uses the result of"):
        check_dominance(entry)


def test_a_use_in_a_sibling_branch_is_found():
    region, blocks = _graph(GRAPHS["diamond"])
    build = InstructionBuilder(region)
    made = _before_the_branch(blocks["b"], ptx.SregOp, "tid.x")
    use = ptx.AddOp.create(operands=(made, made), result_types=(B32,))
    for name, is_error in (("c", True), ("d", True), ("b", False)):
        block = blocks[name]
        assert block.last_op is not None
        block.insert_op_before(use, block.last_op)
        if is_error:
            with pytest.raises(PhobosError, match="does not come before it on every path"):
                check_dominance(_entry(build))
        else:
            check_dominance(_entry(build))
        use.detach()


def _before_the_branch(block: Block, cls: type[ptx.Instruction], suffix: str):
    op = cls.create(result_types=(B32,), properties={"suffix": ptx.SuffixAttr(suffix)})
    assert block.last_op is not None
    block.insert_op_before(op, block.last_op)
    return op.results[0]


def _entry(build: InstructionBuilder) -> Operation:
    entry = build.body.parent
    assert entry is not None
    return entry


def test_an_argument_of_another_block_is_found():
    entry = ptx.EntryOp.make("k", ())
    build = InstructionBuilder(entry.body)
    left, right = build.block([PRED], "left"), build.block(name="right")
    build.cond_bra(build.true(), left, right, (build.true(),))
    build.at(left)
    build.ret()
    build.at(right)
    build.cond_bra(left.args[0], right, right)
    with pytest.raises(PhobosError, match="uses argument 0 of a block"):
        check_dominance(entry)


def test_nested_regions_see_what_is_around_them_and_nothing_else():
    i1 = IntegerType(1)
    condition = arith.ConstantOp.from_int_and_width(1, i1)
    inner = arith.ConstantOp.from_int_and_width(0, i1)
    use = arith.AndIOp(condition, condition)
    body = Block([inner, use, scf.YieldOp()])
    module = ModuleOp([condition, scf.IfOp(condition, (), Region(body))])
    check_dominance(module)
    after = arith.AndIOp(condition, inner)
    module.body.block.add_op(after)
    with pytest.raises(PhobosError, match=r"`arith\.andi` uses the result of `arith\.constant`"):
        check_dominance(module)
