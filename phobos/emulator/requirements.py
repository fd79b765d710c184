"""Which chip and which ISA version an instruction needs: the emulator's own check of PTX.

The table says what each form adds to the plainest form of its opcode. It is kept apart from the
tables that the compiler prints by, so that the one checks the other; ptxas is the judge of both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from phobos.emulator.decode import Operands

Version = tuple[int, int]

_CHIP = re.compile(r"sm_(\d+)([af]?)")

FLOORS: Mapping[str, Version] = {
    "sm_75": (6, 3),
    "sm_80": (7, 0),
    "sm_86": (7, 1),
    "sm_87": (7, 4),
    "sm_89": (7, 8),
    "sm_90": (7, 8),
    "sm_90a": (8, 0),
    "sm_100": (8, 6),
    "sm_100a": (8, 6),
    "sm_100f": (8, 8),
    "sm_103": (8, 8),
    "sm_103a": (8, 8),
    "sm_120": (8, 7),
    "sm_120a": (8, 7),
    "sm_120f": (8, 8),
}
"""The lowest `.version` that a `.target` may stand with."""


@dataclass(frozen=True, slots=True)
class Need:
    """What instructions of `opcode` need whose suffix has all of `parts`.

    `chips` lists alternatives: `80+` is every chip from there on, `90a` that chip alone. A part
    that ends in `*` stands for every part that starts so. `operands`, if given, is the number of
    operands that the row is for.
    """

    opcode: str
    parts: tuple[str, ...]
    chips: str
    version: Version
    on_sm_89: Version | None = None
    operands: int | None = None

    def version_on(self, chip: int | None) -> Version:
        """The version needed on a chip, by its number; one form came later to sm_89."""
        return self.on_sm_89 if chip == 89 and self.on_sm_89 else self.version


_ACCELERATED = "100a 100f 103a 120a 120f"


def _need(form: str, chips: str, version: str) -> Need:
    opcode, *parts = form.split(" ")
    major, minor = version.split(".")
    return Need(opcode, tuple(parts), chips, (int(major), int(minor)))


NEEDS: tuple[Need, ...] = (
    # Memory.
    _need("ld v8", "100+", "8.8"),
    _need("st v8", "100+", "8.8"),
    *(
        _need(f"{op} v4 {kind}", "100+", "8.8")
        for op in ("ld", "st")
        for kind in ("b64", "u64", "s64", "f64")
    ),
    _need("cvta param", "70+", "7.7"),
    _need("isspacep param", "70+", "7.7"),
    _need("ld b128", "70+", "8.3"),
    _need("st b128", "70+", "8.3"),
    _need("ld L1::*", "70+", "7.4"),
    _need("st L1::*", "70+", "7.4"),
    _need("ld L2::64B", "75+", "7.4"),
    _need("ld L2::128B", "75+", "7.4"),
    _need("ld L2::256B", "80+", "7.4"),
    _need("ld L2::cache_hint", "80+", "7.4"),
    _need("st L2::cache_hint", "80+", "7.4"),
    _need("ld cluster", "90+", "7.8"),
    _need("st cluster", "90+", "7.8"),
    _need("ld shared::cta", "70+", "7.8"),
    _need("st shared::cta", "70+", "7.8"),
    _need("ld shared::cluster", "90+", "7.8"),
    _need("st shared::cluster", "90+", "7.8"),
    _need("ld mmio", "70+", "8.2"),
    _need("createpolicy", "80+", "7.4"),
    _need("prefetch L2::*", "80+", "7.4"),
    _need("prefetch tensormap", "90+", "8.0"),
    _need("applypriority", "80+", "7.4"),
    _need("discard", "80+", "7.4"),
    _need("fence cluster", "90+", "7.8"),
    _need("fence proxy alias", "70+", "7.5"),
    _need("fence proxy async", "90+", "8.0"),
    _need("fence mbarrier_init", "90+", "8.0"),
    # Atomics.
    _need("atom bf16", "90+", "7.8"),
    _need("atom bf16x2", "90+", "7.8"),
    _need("red bf16", "90+", "7.8"),
    _need("red bf16x2", "90+", "7.8"),
    _need("atom b128", "90+", "8.3"),
    *(_need(f"{op} {v}", "90+", "8.1") for op in ("atom", "red") for v in ("v2", "v4", "v8")),
    # Asynchronous copies and barriers in memory.
    _need("cp async", "80+", "7.0"),
    _need("cp async L2::*", "80+", "7.4"),
    _need("cp async bulk", "90+", "8.0"),
    _need("cp async bulk shared::cta global mbarrier::complete_tx::bytes", "90+", "8.6"),
    _need("mbarrier", "80+", "7.0"),
    _need("mbarrier shared::cta", "80+", "7.8"),
    _need("mbarrier test_wait parity", "80+", "7.1"),
    _need("mbarrier try_wait", "90+", "7.8"),
    *(_need(f"mbarrier {word}", "90+", "8.0") for word in ("expect_tx", "complete_tx")),
    *(_need(f"mbarrier {word}", "80+", "8.0") for word in ("release", "acquire")),
    *(_need(f"mbarrier {word}", "90+", "8.0") for word in ("cluster", "shared::cluster")),
    *(_need(f"mbarrier {op} relaxed", "90+", "8.6") for op in ("arrive", "test_wait", "try_wait")),
    _need("mapa", "90+", "7.8"),
    _need("getctarank", "90+", "7.8"),
    _need("barrier cluster", "90+", "7.8"),
    *(_need(f"barrier cluster {x}", "90+", "8.0") for x in ("release", "relaxed", "acquire")),
    *(_need(f"{op} shared::cluster", "90+", "7.8") for op in ("atom", "red", "cvta", "isspacep")),
    _need("barrier cta", "70+", "7.8"),
    _need("griddepcontrol", "90+", "7.8"),
    _need("elect", "90+", "8.0"),
    _need("setmaxnreg", "90a 100a 100f 103a 120a 120f", "8.0"),
    _need("wgmma", "90a", "8.0"),
    _need("wgmma s8 u8", "90a", "8.4"),
    _need("tcgen05", "100a 100f 103a", "8.6"),
    _need("mov b128", "70+", "8.3"),
    # Warps.
    _need("redux", "80+", "7.0"),
    _need("redux f32", "100a 100f 103a", "8.6"),
    # Integers.
    *(
        _need(f"{op} {kind}", "90+", "8.0")
        for op in ("min", "max", "add")
        for kind in ("u16x2", "s16x2", "relu")
    ),
    _need("bmsk", "70+", "7.6"),
    _need("szext", "70+", "7.6"),
    _need("lop3 or", "70+", "8.2"),
    _need("lop3 and", "70+", "8.2"),
    _need("cvt pack", "72+", "6.5"),
    # Floats.
    *(_need(f"{op} NaN", "80+", "7.0") for op in ("min", "max")),
    *(_need(f"{op} xorsign", "86+", "7.2") for op in ("min", "max")),
    *(_need(f"{op} f32x2", "100+", "8.6") for op in ("add", "sub", "mul", "fma")),
    *(Need(op, ("f32",), "100+", (8, 8), operands=4) for op in ("min", "max")),
    _need("tanh", "75+", "7.0"),
    # Halves.
    *(
        _need(f"{op} {kind}", "90+", "7.8")
        for op in ("add", "sub", "mul", "setp", "set")
        for kind in ("bf16", "bf16x2")
    ),
    *(_need(f"fma {kind}", "80+", "7.0") for kind in ("bf16", "bf16x2", "relu")),
    *(_need(f"{op} {kind}", "80+", "7.0") for op in ("neg", "abs") for kind in ("bf16", "bf16x2")),
    *(_need(f"abs {kind}", "53+", "6.5") for kind in ("f16", "f16x2")),
    *(
        _need(f"{op} {kind}", "80+", "7.0")
        for op in ("min", "max")
        for kind in ("f16", "f16x2", "bf16", "bf16x2")
    ),
    *(_need(f"ex2 {kind}", "75+", "7.0") for kind in ("f16", "f16x2")),
    *(_need(f"{op} {kind}", "90+", "7.8") for op in ("ex2", "tanh") for kind in ("bf16", "bf16x2")),
    # Conversions; those between bf16 and others are settled in `_cvt_need`.
    _need("cvt tf32", "80+", "7.0"),
    _need("cvt rn tf32", "90+", "7.8"),
    _need("cvt rz tf32", "90+", "7.8"),
    _need("cvt rn satfinite tf32", "100+", "8.6"),
    _need("cvt relu", "80+", "7.0"),
    _need("cvt f16x2 f32", "80+", "7.0"),
    _need("cvt bf16x2 f32", "80+", "7.0"),
    _need("cvt bf16x2 e4m3x2", "100a 100f 103a 120a 120f", "9.2"),
    _need("cvt bf16x2 e5m2x2", "100a 100f 103a 120a 120f", "9.2"),
    *(_need(f"cvt {kind}", _ACCELERATED, "8.6") for kind in ("e2m1x2", "e2m3x2", "e3m2x2")),
    _need("cvt ue8m0x2", _ACCELERATED, "8.6"),
    # Matrices.
    _need("ldmatrix", "75+", "6.5"),
    _need("ldmatrix shared::cta", "75+", "7.8"),
    _need("ldmatrix b8", _ACCELERATED, "8.6"),
    _need("ldmatrix b8x16*", _ACCELERATED, "8.6"),
    _need("stmatrix", "90+", "7.8"),
    _need("stmatrix b8", _ACCELERATED, "8.6"),
    _need("movmatrix", "75+", "7.8"),
)

_BY_OPCODE: dict[str, list[Need]] = {}
for _row in NEEDS:
    _BY_OPCODE.setdefault(_row.opcode, []).append(_row)


SPECIAL_REGISTER_NEEDS: Mapping[str, tuple[str, Version]] = {
    **dict.fromkeys(
        (
            "cluster_ctarank",
            "cluster_nctarank",
            "is_explicit_cluster",
            *(
                f"{name}.{axis}"
                for name in ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
                for axis in "xyz"
            ),
        ),
        ("90+", (7, 8)),
    ),
    "aggr_smem_size": ("90+", (8, 1)),
}
"""Chips and version of the special registers that not every chip has."""


class Requirements:
    """What one module may use: its `.target` and `.version`."""

    def __init__(self, chip: str, version: Version) -> None:
        self.chip = chip
        self.version = version
        match = _CHIP.fullmatch(chip)
        self._number = int(match.group(1)) if match else None
        self._suffix = match.group(2) if match else ""

    def check(self, operands: Operands) -> None:
        """Refuse an instruction that the chip or the version lacks.

        Raises:
            PhobosError: It says which chip or version would do.
        """
        instruction = operands.instruction
        count = len(instruction.operands)
        needs = needs_of(instruction.opcode, instruction.suffix, count)
        for need in needs:
            if not self.has_chip(need.chips):
                operands.refuse(
                    f"does not exist on {self.chip}; it needs {_chips_in_words(need.chips)}"
                )
        for need in needs:
            self._check_version(operands, "", need.version_on(self._number))

    def check_special_register(self, operands: Operands, name: str) -> None:
        """Refuse a special register that the chip or the version lacks."""
        chips, version = SPECIAL_REGISTER_NEEDS.get(name, ("0+", (0, 0)))
        if not self.has_chip(chips):
            operands.refuse(
                f"`%{name}` does not exist on {self.chip}; it needs {_chips_in_words(chips)}"
            )
        self._check_version(operands, f"`%{name}` ", version)

    def _check_version(self, operands: Operands, what: str, version: Version) -> None:
        if self.version < version:
            have, wanted = (".".join(map(str, v)) for v in (self.version, version))
            operands.refuse(f"{what}needs .version {wanted}, but the module has .version {have}")

    def has_chip(self, chips: str) -> bool:
        """Whether the chip is one of those that a row lists."""
        if self._number is None:
            return True
        own = f"{self._number}{self._suffix}"
        return any(
            self._number >= int(entry[:-1]) if entry.endswith("+") else own == entry
            for entry in chips.split(" ")
        )


@lru_cache(maxsize=4096)
def needs_of(opcode: str, suffix: tuple[str, ...], operands: int) -> tuple[Need, ...]:
    """Every row that applies to an instruction with a number of operands."""
    found = [
        need
        for need in _BY_OPCODE.get(opcode, ())
        if _applies(need, suffix) and need.operands in (None, operands)
    ]
    if opcode == "cvt":
        found += _cvt_needs(suffix)
    if opcode == "mbarrier" and {"arrive", "noComplete"}.intersection(suffix) == {"arrive"}:
        # An arrival that counts for several; the form that never completes a phase is older.
        found += [Need("mbarrier", (), "90+", (7, 8))] if operands == 3 else []
    if opcode == "fence" and suffix[:1] in (("acquire",), ("release",)):
        # Fences that do no more than that are newer than the others.
        found.append(Need("fence", (), "90+", (8, 6)))
    if opcode == "mma":
        found += _mma_needs(suffix)
    if opcode == "wmma" and not {"bf16", "tf32", "f64", "m16n16k8"}.isdisjoint(suffix):
        found.append(Need("wmma", (), "80+", (7, 0)))
    return tuple(found)


def _applies(need: Need, suffix: tuple[str, ...]) -> bool:
    return all(
        any(part.startswith(wanted[:-1]) for part in suffix)
        if wanted.endswith("*")
        else wanted in suffix
        for wanted in need.parts
    )


def _cvt_needs(suffix: tuple[str, ...]) -> list[Need]:
    types = suffix[-2:]
    found: list[Need] = []
    if len(types) < 2:
        return found
    if "satfinite" in suffix and types[0] in ("f16", "bf16", "f16x2", "bf16x2", "tf32"):
        found.append(Need("cvt", (), "75+", (8, 1)))
    if "bf16" in types:
        other = types[0] if types[1] == "bf16" else types[1]
        plain = other == "f32" and not ("ftz" in suffix and types[0] == "f32")
        version = (7, 1) if types[1] == "bf16" else (7, 0)
        found.append(Need("cvt", (), "80+" if plain else "90+", version if plain else (7, 8)))
    if not {"e4m3x2", "e5m2x2"}.isdisjoint(types):
        found.append(Need("cvt", (), "89+", (7, 8), on_sm_89=(8, 1)))
    return found


def _mma_needs(suffix: tuple[str, ...]) -> list[Need]:
    shape = next((part for part in suffix if re.fullmatch(r"m\d+n\d+k\d+", part)), "")
    types = set(suffix)
    if "block_scale" in types:
        return [Need("mma", (), "120a 120f", (8, 7))]
    if "kind::f8f6f4" in types:
        if types.isdisjoint({"e3m2", "e2m3", "e2m1"}):
            return [Need("mma", (), _ACCELERATED, (8, 6))]
        return [Need("mma", (), "120a 120f", (8, 7))]
    if not {"e4m3", "e5m2"}.isdisjoint(types):
        plain = shape == "m16n8k32" and "f32" in types
        return [Need("mma", (), "89+", (8, 4) if plain else (8, 7))]
    if "f64" in types:
        small = shape == "m8n8k4"
        return [Need("mma", (), "80+" if small else "90+", (7, 0) if small else (7, 8))]
    if shape == "m8n8k128":
        return [
            Need("mma", (), "80+" if "and" in types else "75+", (7, 1 if "and" in types else 0))
        ]
    if shape == "m16n8k256":
        return [Need("mma", (), "80+", (7, 1 if "and" in types else 0))]
    if shape == "m8n8k4":
        return [Need("mma", (), "70+", (6, 4))]
    old = shape in ("m8n8k16", "m8n8k32") or (shape == "m16n8k8" and "f16" in types)
    return [Need("mma", (), "75+" if old else "80+", (6, 5) if old else (7, 0))]


def _chips_in_words(chips: str) -> str:
    words = [
        f"sm_{entry[:-1]} or newer" if entry.endswith("+") else f"sm_{entry}"
        for entry in chips.split(" ")
    ]
    return words[0] if len(words) == 1 else "one of " + ", ".join(words)
