"""Reads a list of passes as users write it: `NAME,NAME{option=value other=1,2}`.

This is xDSL's notation with four comforts: the word `default` stands for the passes that
`phobos-compile` runs, our own passes need no `ph-` in front, a flag needs no value, and what is
wrong is said with the names that would be right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TypeVar

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, ArgSpecConvertible, ParameterListType, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError
from xdsl.utils.hints import type_repr

from phobos.diagnostics import PhobosError, did_you_mean
from phobos.faults import diagnose
from phobos.pipeline import DEFAULT_PIPELINE
from phobos.targets.ptx.chips import chip

DEFAULT = "default"
"""The word that stands for the passes of `phobos-compile`."""

_PREFIX = "ph-"

Convertible = TypeVar("Convertible", bound=ArgSpecConvertible)

PassFactories = Mapping[str, Callable[[], type[ModulePass]]]
"""Pass name -> factory of the pass's class."""


def parse_passes(text: str, available: PassFactories) -> tuple[ModulePass, ...]:
    """The passes of a list, in order.

    Raises PhobosError on a wrong name or option, and on text that is no list of passes.
    """
    try:
        return tuple(_make(spec, available) for spec in _expand(text))
    except ArgSpecParseError as fault:  # not an Exception, so that nobody else would catch it
        raise diagnose(fault) from None


def full_name(name: str, available: PassFactories) -> str:
    """A pass's name, where our own passes may be called without their prefix."""
    return _PREFIX + name if _PREFIX + name in available else name


def _expand(text: str) -> Iterable[ArgSpec]:
    for spec in parse_pipeline(text):
        if spec.name == DEFAULT:
            yield from parse_pipeline(DEFAULT_PIPELINE)
        else:
            yield spec


def _make(spec: ArgSpec, available: PassFactories) -> ModulePass:
    name = full_name(spec.name, available)
    if name not in available:
        raise PhobosError.at(
            None,
            f"there is no pass `{spec.name}`",
            help=did_you_mean(spec.name, (*available, DEFAULT)),
        )
    kind = available[name]()
    made = from_spec(kind, ArgSpec(name, _with_flags(kind, spec)), "pass")
    if name.startswith(_PREFIX) and "chip" in spec.parameters:
        chip(getattr(made, "chip", ""))  # said here, before any pass runs, if there is none
    return made


def from_spec(kind: type[Convertible], spec: ArgSpec, what: str) -> Convertible:
    """An instance made from `NAME{option=value}`; `what` is the word for it in errors.

    Raises PhobosError if an option is unknown or its value of the wrong type.
    """
    try:
        return kind.from_spec(spec)
    except ValueError as fault:
        options = ", ".join(f"{option.name}: {type_repr(option.type)}" for option in fields(kind))
        raise PhobosError.at(
            None,
            f"wrong options for {what} `{spec.name}`: {fault}",
            help=f"its options are {options}" if options else "it has no options",
        ) from fault


def _with_flags(kind: type[ModulePass], spec: ArgSpec) -> dict[str, ParameterListType]:
    """A pass's options, where a flag that is only named means true."""
    flags = {field.name for field in fields(kind) if field.type in (bool, "bool")}
    options = spec.normalize_parameter_names().parameters
    return {
        name: (True,) if name in flags and not values else values
        for name, values in options.items()
    }
