"""Machine code: the listing of nvdisasm, what ptxas says, and occupancy."""

from __future__ import annotations

from pathlib import Path

import pytest

from phobos.cli.compile import main
from phobos.explain.machine import machines
from phobos.explain.records import Explanation, Kernel, Machine, Mix
from phobos.explain.sass import DISASSEMBLER, disassemble, parse_listing
from phobos.explain.text import explanation_text
from phobos.targets.ptx.chips import chip
from phobos.targets.ptx.cuda_tools import find_cuda_tool
from phobos.targets.ptx.occupancy import Occupancy, occupancy
from tests.support.example_cases import EXAMPLES

LISTING = """\
\t.section\t.text.k,"ax",@progbits
k:
.text.k:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   LDG.E.128 R4, [R2.64] ;
.L_x_0:
        /*0020*/              @!PT LDS RZ, [RZ] ;
\t//## File "k.ph", line 7
        /*0030*/              @P0 HMMA.16816.F32 R12, R16.reuse, R20, R12 ;
        /*0040*/                   IADD3 R0, R0, 0x1, RZ ;
        /*0050*/              @!P0 BRA `(.L_x_0) ;
        /*0060*/                   BRA.U !UP1, `(.L_x_1) ;
        /*0070*/                   EXIT ;
.L_x_2:
        /*0080*/                   BRA `(.L_x_2);
        /*0090*/                   NOP;
"""


def test_a_listing_is_read() -> None:
    code = parse_listing(LISTING)["k"]
    assert code.opcodes == "MOV LDG HMMA IADD3 BRA BRA EXIT BRA".split()
    assert sorted(code.loops()) == [(1, 5), (2, 4)]
    assert code.lines == [0, 0, 7, 7, 7, 7, 7, 7]


LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 8192 bytes smem, 400 bytes cmem[0]
ptxas info    : Compiling entry function 'plain' for 'sm_80'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers
"""


def test_the_words_of_ptxas_are_read() -> None:
    mixes = {"k": (Mix(None, 1, (("EXIT", 1),)),)}
    found = machines(LOG, mixes, {"k": (128, 1024), "plain": (64, 0)}, chip("sm_80"))
    one = found["k"]
    assert (one.registers, one.stack, one.spill_stores, one.spill_loads) == (40, 16, 24, 32)
    assert (one.shared, one.mixes) == (9216, mixes["k"])
    assert (found["plain"].registers, found["plain"].shared) == (10, 0)


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "name", "expected"),
    [
        (256, 32, 0, "sm_80", Occupancy(8, 1.0, "threads")),
        (32, 32, 0, "sm_80", Occupancy(32, 0.5, "CTAs")),
        (128, 168, 0, "sm_80", Occupancy(3, 0.1875, "registers")),
        (128, 255, 0, "sm_90", Occupancy(2, 0.125, "registers")),
        (128, 32, 48 * 1024, "sm_80", Occupancy(3, 0.1875, "shared memory")),
        (96, 0, 0, "sm_86", Occupancy(16, 1.0, "threads")),
    ],
)
def test_occupancy(
    threads: int, registers: int, shared: int, name: str, expected: Occupancy
) -> None:
    assert occupancy(threads, registers, shared, chip(name)) == expected


def test_without_a_disassembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phobos.explain.sass.find_cuda_tool", lambda _: None)
    said = disassemble(b"")
    assert isinstance(said, str)
    assert "pip install nvidia-cuda-nvdisasm" in said


def test_what_is_no_machine_code() -> None:
    if find_cuda_tool(DISASSEMBLER) is None:
        pytest.skip("needs nvdisasm")
    said = disassemble(b"not a cubin")
    assert isinstance(said, str)
    assert "cannot read" in said


def test_explain_with_machine_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    if find_cuda_tool("ptxas") is None or find_cuda_tool(DISASSEMBLER) is None:
        pytest.skip("needs ptxas and nvdisasm")
    source, output = EXAMPLES / "gemm_fp16tc_fp32acc.ph", tmp_path / "gemm.cubin"
    arguments = [str(source), "--explain", "--emit", "cubin", "--chip", "sm_80", "-o", str(output)]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert output.read_bytes().startswith(b"\x7fELF")
    assert "registers a thread, no spills, 8192 bytes of shared memory" in said
    loop = said.rpartition("    the loop of line 19: ")[2]
    for kind in ("HMMA", "LDSM", "LDGSTS"):
        assert kind in loop


def test_the_few_products_are_told_among_many_kinds() -> None:
    others = tuple((f"KIND{i}", 9) for i in range(20))
    mix = Mix(None, 200, (*others, ("HGMMA", 4), ("QMMA", 2), ("GMMAX", 1)))
    machine = Machine(90, 0, 0, 0, 0, 5, 1.0, "registers", (mix,))
    kernel = Kernel("k", None, 128, machine=machine)
    said = " ".join(explanation_text(Explanation("k.ph", "sm_90a", 32, 4, (kernel,))).split())
    assert "KIND13 4%, HGMMA 2%, QMMA 1%, 7 others" in said


def test_explain_writes_no_files_of_its_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = tmp_path / "saxpy.ph"
    source.write_text((EXAMPLES / "saxpy_fp32.ph").read_text())
    assert main([str(source), "--explain"]) == 0
    assert "kernel saxpy (line 10)" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["saxpy.ph"]


@pytest.mark.parametrize("arguments", [["--emit", "tile"], ["-o", "-"]])
def test_what_does_not_go_together(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([str(EXAMPLES / "saxpy_fp32.ph"), "--explain", *arguments])
    assert left.value.code == 2
    assert "--explain" in capsys.readouterr().err


def test_json_and_errors(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = tmp_path / "wrong.ph"
    source.write_text("kernel k(X: tensor<f32>[N]) {\n  X[0] = y\n}\n")
    assert main([str(source), "--explain"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "`y` is not defined" in captured.err
