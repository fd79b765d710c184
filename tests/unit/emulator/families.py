"""The table in docs/emulator.md: instruction families against what an H200 answered."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np

from phobos.emulator import emulate
from tests.unit.emulator.form_table import all_forms
from tests.unit.emulator.forms import (
    APPROXIMATE,
    COUNT,
    THREADS,
    Form,
    digest,
    kernel_text,
    operands_of,
    result_array,
)
from tests.unit.emulator.matrix_forms import (
    MATRIX_FORMS,
    WARP,
    WARPS,
    MatrixForm,
    fragments_of,
    matrix_kernel,
)
from tests.unit.emulator.warpgroup_forms import PRODUCT_FORMS, answer

DATA = Path(__file__).parent / "data"

FAMILIES: dict[str, tuple[str, ...]] = {
    "integer sums and products": (
        "add",
        "sub",
        "mul",
        "mad",
        "mul24",
        "mad24",
        "sad",
        "neg",
        "abs",
        "min",
        "max",
    ),
    "carries": ("addc", "subc", "madc"),
    "integer division": ("div", "rem"),
    "bits and fields": ("popc", "clz", "brev", "bfind", "bfe", "bfi", "bmsk", "szext", "fns"),
    "logic and shifts": ("and", "or", "xor", "not", "cnot", "shl", "shr", "shf", "lop3", "prmt"),
    "dot products of bytes": ("dp4a", "dp2a"),
    "selection": ("selp", "slct"),
    "comparisons": ("setp", "set", "testp"),
    "float sums, products, fma": ("add", "sub", "mul", "fma"),
    "float division and roots": ("div", "rcp", "sqrt"),
    "float minimum and maximum": ("min", "max"),
    "float signs": ("neg", "abs", "copysign"),
    "conversions": ("cvt",),
    "narrow loads and stores": ("ld",),
    "atomic operations": ("atom", "red"),
    "shuffles": ("shfl",),
    "votes, matches, elections": ("vote", "match", "elect"),
    "reductions of a warp or CTA": ("redux", "bar"),
    "lane masks": ("mov",),
    "matrices in shared memory": ("ldmatrix", "stmatrix", "movmatrix"),
    "asynchronous copies": ("cp",),
}
_FLOAT_FAMILIES = frozenset(name for name in FAMILIES if name.startswith("float"))
_FLOATS = frozenset({"f16", "bf16", "f16x2", "bf16x2", "f32", "f64"})
_SHARED_OPCODES = frozenset({"add", "sub", "mul", "neg", "abs", "min", "max", "div"})


@cache
def run(form: Form, count: int = COUNT) -> np.ndarray:
    """The emulator's results of a form."""
    text = f".version 8.1\n.target sm_90\n.address_size 64\n{kernel_text(form, 'k')}"
    result = result_array(form, count)
    operands = [values[:count] for values in operands_of(form)]
    grid = -(-count // THREADS)
    emulate(text, "k", grid, THREADS, [*operands, result, np.uint32(count)])
    return result[:count]


@cache
def run_matrix(form: MatrixForm) -> np.ndarray:
    """The emulator's D fragments of a matrix form, shaped [warp, register, lane]."""
    text = f".version 8.7\n.target sm_90\n.address_size 64\n{matrix_kernel(form, 'k')}"
    shape = (WARPS, form.registers[0], WARP)
    result = np.zeros(shape, dtype=np.uint64 if form.is_wide else np.uint32)
    emulate(text, "k", WARPS, WARP, [*fragments_of(form), result, np.uint32(WARPS)])
    return result


@cache
def run_product(name: str) -> np.ndarray:
    """The emulator's results of a form of `wgmma`, as bit patterns."""
    return answer(name, emulate)


def digests() -> dict[str, str]:
    """What the GPU answered to the exact forms."""
    return json.loads((DATA / "gpu_answers.json").read_text())["digests"]


def approximations() -> dict[str, np.ndarray]:
    """What the GPU answered to the approximate forms."""
    return dict(np.load(DATA / "gpu_approximations.npz"))


def members(family: str, forms: Iterable[Form]) -> list[Form]:
    """The exact forms of a family."""
    wants_float = family in _FLOAT_FAMILIES
    found = []
    for form in forms:
        is_float = form.operands[0] in _FLOATS
        matters = form.opcode in _SHARED_OPCODES
        if form.opcode in FAMILIES[family] and (not matters or is_float == wants_float):
            found.append(form)
    return found


def name_of(form: Form) -> str:
    """The mnemonic of an approximate form."""
    return form.line.split(" ")[0]


def ordered(bits: np.ndarray) -> np.ndarray:
    """Integers in the order of the floats with these patterns."""
    signed = bits.view(f"i{bits.itemsize}").astype(np.int64)
    return np.where(signed < 0, -(signed & np.iinfo(f"i{bits.itemsize}").max), signed)


def ulp_distance(form: Form, own: np.ndarray, theirs: np.ndarray) -> int:
    """The largest distance in units of the last place.

    The coarse f64 forms count in the upper half of the pattern, sines on |x| <= pi only.
    """
    if form.result.endswith("x2"):
        own, theirs = own.view(np.uint16), theirs.view(np.uint16)
    if form.line.startswith(("rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64")):
        own, theirs = ((x >> np.uint64(32)).astype(np.uint32) for x in (own, theirs))
    return int(np.abs(ordered(own) - ordered(theirs)).max())


def absolute_distance(form: Form, own: np.ndarray, theirs: np.ndarray) -> float:
    """The largest absolute distance in f32 where the operand is between 2**-20 and 8."""
    x = operands_of(form)[0][: len(own)].view(np.float32)
    near = (np.abs(x) <= 8) & (np.abs(x) >= 2.0**-20)
    return float(np.nanmax(np.abs(own.view(np.float32)[near] - theirs.view(np.float32)[near])))


ABSOLUTE = frozenset({"sin", "cos", "lg2"})
"""Functions whose error the PTX manual bounds absolutely."""


def exact_rows() -> list[str]:
    """One row a family of exact forms."""
    forms = [form for form in all_forms() if form.is_exact]
    wanted = digests()
    rows = []
    for family in FAMILIES:
        own = members(family, forms)
        good = sum(digest(run(form)) == wanted[form.line] for form in own)
        kinds = ", ".join(
            f"`{op}`" for op in FAMILIES[family] if any(form.opcode == op for form in own)
        )
        rows.append(f"| {family} | {kinds} | {len(own)} | {_verdict(good, len(own))} |")
    exact = [form for form in MATRIX_FORMS if form.is_exact]
    good = sum(digest(run_matrix(form)) == wanted[form.suffix] for form in exact)
    rows.append(f"| matrix products | `mma.sync` | {len(exact)} | {_verdict(good, len(exact))} |")
    good = sum(digest(run_product(name)) == wanted[name] for name in PRODUCT_FORMS)
    verdict = _verdict(good, len(PRODUCT_FORMS))
    rows.append(f"| products of warpgroups | `wgmma` | {len(PRODUCT_FORMS)} | {verdict} |")
    return rows


def _verdict(good: int, total: int) -> str:
    return "pass" if good == total else f"{total - good} fail"


def approximate_rows() -> list[str]:
    """One row an approximate form, with the largest distance from the hardware."""
    answers = approximations()
    rows = []
    for form in all_forms():
        if form.is_exact:
            continue
        own, theirs = run(form, APPROXIMATE), answers[form.line]
        if form.opcode in ABSOLUTE:
            distance = f"{absolute_distance(form, own, theirs):.1e} absolute"
        else:
            distance = f"{ulp_distance(form, own, theirs)} ulp"
        rows.append(f"| `{name_of(form)}` | {distance} |")
    return rows


def tables() -> tuple[str, str]:
    """Both tables as Markdown."""
    exact = ["| family | instructions | forms | equal |", "| --- | --- | --- | --- |"]
    approximate = ["| instruction | largest distance |", "| --- | --- |"]
    return "\n".join([*exact, *exact_rows()]), "\n".join([*approximate, *approximate_rows()])


def filled(page: str) -> str:
    """The page of the documentation with both tables brought up to date."""
    for name, table in zip(("exact", "approximate"), tables(), strict=True):
        opening, closing = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, rest = page.split(opening)
        page = f"{before}{opening}{table}\n{closing}{rest.split(closing)[1]}"
    return page
