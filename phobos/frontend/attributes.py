"""The attributes of a kernel: what may be written, and what it is worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from phobos.diagnostics import Location, Note, did_you_mean
from phobos.frontend import ast
from phobos.frontend.checker import Checker, constant_int, is_poison
from phobos.frontend.coerce import to_condition
from phobos.frontend.grids import grid_text
from phobos.frontend.printer import print_expression
from phobos.frontend.scopes import NamedConstant, Poisoned
from phobos.frontend.typed import KernelSettings, Launch, Literal
from phobos.frontend.types import Dim
from phobos.record import Record, record

MAX_THREADS = 1024
MAX_CTAS = 32
MAX_REGISTERS = 255
CLUSTER_SIZES = (1, 2, 4, 8)
BARE_PIPELINE = -1
_TENSOR_CORE_FORMS = ("wmma", "sync", "f16", "bf16", "tf32", "tf32x3")
_NO_TENSOR_CORE_FORMS = {
    "wgmma": "products are made by wgmma without an attribute where the chip has it: sm_90a does",
    "mma": "products are made by mma without an attribute; on sm_90a `@tensorcore(sync)` does",
}
"""Instructions that are no form, and how to have them."""
_BY_WMMA = ("f16", "bf16", "tf32")
"""What f32 operands of `wmma` products can be rounded to; f16 if nothing is named."""
_AXES = ("x", "y", "z")
_ONE_AXIS = "`@launch(threads, ctas, registers)`: the threads of a CTA lie along x alone"

Overrides = Mapping[str, int | float]


@dataclass(slots=True)
class AttributeContext:
    """What the rules of one kernel's attributes read and fill in."""

    checker: Checker
    settings: KernelSettings
    overrides: Overrides
    dims: dict[str, Dim] = field(default_factory=dict)
    """The dims that the parameters name."""
    places: dict[str, Location] = field(default_factory=dict)
    """Where each attribute that may stand once was first written."""


@record
class AttributeRule(Record):
    """How an attribute is written and what it does; `repeats` if it may stand several times."""

    usage: str
    apply: Callable[[AttributeContext, ast.Attribute], None]
    repeats: bool = False


def declare_constants(context: AttributeContext, attributes: Sequence[ast.Attribute]) -> None:
    """Checks the `@autotune` attributes, whose names the parameters and the body use."""
    for attribute in attributes:
        if attribute.name == "autotune":
            _autotune(context, attribute)


def apply_attributes(context: AttributeContext, attributes: Sequence[ast.Attribute]) -> None:
    """Checks all other attributes; the parameters have been declared."""
    for attribute in attributes:
        rule = _RULES.get(attribute.name)
        if rule is None:
            _unknown(context, attribute)
            continue
        first = context.places.setdefault(attribute.name, attribute.span)
        if first is not attribute.span and not rule.repeats:
            context.checker.error(
                attribute.span,
                f"`@{attribute.name}` is given twice",
                notes=(Note("it is first given here", first),),
            )
            continue
        if attribute.name != "autotune":
            rule.apply(context, attribute)
    _check_cluster(context)


def _check_cluster(context: AttributeContext) -> None:
    """Refuses what would take the CTAs of a cluster apart."""
    if (context.settings.cluster or 1) > 1 and "swizzle" in context.settings.flags:
        context.checker.error(
            context.places["cluster"],
            "a kernel has `@cluster` or `@swizzle`, not both: the CTAs of a cluster are neighbours,"
            " and `@swizzle` numbers them anew",
            notes=(Note("`@swizzle` is given here", context.places["swizzle"]),),
        )


def _unknown(context: AttributeContext, attribute: ast.Attribute) -> None:
    help = did_you_mean(attribute.name, _RULES)
    context.checker.error(
        attribute.name_span,
        f"there is no attribute `@{attribute.name}`",
        help=help or f"the attributes are {', '.join('@' + name for name in _RULES)}",
    )


# Arguments ---------------------------------------------------------------------------------------


def _wrong_argument(
    context: AttributeContext, attribute: ast.Attribute, place: Location, message: str
) -> None:
    usage = _RULES[attribute.name].usage
    context.checker.error(place, message, help=f"write `{usage}`")


def _positional(
    context: AttributeContext, attribute: ast.Attribute, at_most: int
) -> list[ast.Expression] | None:
    """The arguments of an attribute that takes no names, or None after an error."""
    found: list[ast.Expression] = []
    for argument in attribute.args:
        if not isinstance(argument, ast.PositionalArgument):
            _wrong_argument(
                context,
                attribute,
                argument.span,
                f"`@{attribute.name}` takes no argument called `{argument.name}`",
            )
            return None
        found.append(argument.value)
    if len(found) > at_most:
        plural = "" if at_most == 1 else "s"
        counted = f"at most {at_most} argument{plural}" if at_most else "no arguments"
        _wrong_argument(
            context,
            attribute,
            attribute.args[at_most].span,
            f"`@{attribute.name}` takes {counted}, not {len(found)}",
        )
        return None
    return found


def _named(context: AttributeContext, attribute: ast.Attribute) -> list[ast.NamedArgument]:
    """The `name = value` arguments of an attribute; reports others, and names given twice."""
    found: dict[str, ast.NamedArgument] = {}
    for argument in attribute.args:
        if not isinstance(argument, ast.NamedArgument):
            _wrong_argument(
                context,
                attribute,
                argument.span,
                f"the arguments of `@{attribute.name}` are written `name = value`",
            )
        elif argument.name in found:
            context.checker.error(argument.span, f"`{argument.name}` is given twice")
        else:
            found[argument.name] = argument
    if not attribute.args:
        _wrong_argument(
            context, attribute, attribute.span, f"`@{attribute.name}` names what it is about"
        )
    return list(found.values())


def _integer(
    context: AttributeContext,
    node: ast.Expression,
    what: str,
    low: int,
    high: int | None,
    help: str | None = None,
) -> int | None:
    """A constant integer in a range, or None after an error."""
    value = context.checker.expression(node)
    if is_poison(value):
        return None
    known = constant_int(value)
    if known is None:
        context.checker.error(
            node.span,
            f"{what} is a compile-time integer",
            help="use a number or a name bound by `@autotune`",
        )
        return None
    if known < low or (high is not None and known > high):
        limits = f"at least {low}" if high is None else f"{low} to {high}"
        context.checker.error(node.span, f"{what} is {limits}, not {known}", help=help)
        return None
    return known


# Rules -------------------------------------------------------------------------------------------


def _autotune(context: AttributeContext, attribute: ast.Attribute) -> None:
    if not attribute.args:
        _wrong_argument(context, attribute, attribute.span, "`@autotune` binds no constant")
    for argument in attribute.args:
        if not isinstance(argument, ast.ChoiceArgument):
            _wrong_argument(
                context, attribute, argument.span, "`@autotune` lists the values of a constant"
            )
            if isinstance(argument, ast.NamedArgument):
                poisoned = Poisoned(argument.name, argument.name_span)
                context.checker.declare(argument.name, poisoned, argument.name_span)
            continue
        values = tuple(literal.value for literal in argument.values)
        if len(values) == 2 and values[0] > values[1]:
            context.checker.error(
                argument.span,
                f"two values are bounds, of which the lower comes first, not {values[0]}",
                help=f"write `{argument.name} in [{values[1]}, {values[0]}]`",
            )
        value = _chosen_value(context, argument, values[0])
        symbol = NamedConstant(argument.name, value, argument.name_span)
        context.checker.declare(argument.name, symbol, argument.name_span)
        context.settings.constants[argument.name] = value
        context.settings.autotune[argument.name] = values


def _chosen_value(context: AttributeContext, argument: ast.ChoiceArgument, first: int) -> int:
    """The value that the caller chose for a constant, or the first that is listed."""
    chosen = context.overrides.get(argument.name, first)
    limit = 1 << (context.checker.index_bits - 1)
    if isinstance(chosen, bool) or not isinstance(chosen, int):
        context.checker.error(
            argument.span, f"the value chosen for `{argument.name}` is {chosen}, not an integer"
        )
        return first
    if not -limit <= chosen < limit:
        context.checker.error(
            argument.span,
            f"{chosen} does not fit index, which holds {-limit} to {limit - 1}"
            f" at {context.checker.index_bits} bits",
        )
        return first
    return chosen


def _launch(context: AttributeContext, attribute: ast.Attribute) -> None:
    args = _positional(context, attribute, 3)
    if args is None:
        return
    if not args:
        _wrong_argument(context, attribute, attribute.span, "`@launch` gives a number of threads")
        return
    limits = (
        ("the number of threads", MAX_THREADS, None),
        ("the smallest number of CTAs", MAX_CTAS, _ONE_AXIS),
        ("the largest number of registers", MAX_REGISTERS, _ONE_AXIS),
    )
    values = [
        _integer(context, node, what, 1, high, help)
        for node, (what, high, help) in zip(args, limits, strict=False)
    ]
    threads, min_ctas, max_regs = (*values, None, None)[:3]
    if threads is not None:
        context.settings.threads = threads
        context.settings.launch = Launch(threads, min_ctas, max_regs)


def _aligned(context: AttributeContext, attribute: ast.Attribute) -> None:
    for argument in _named(context, attribute):
        dim = context.dims.get(argument.name)
        if dim is None:
            help = did_you_mean(argument.name, context.dims)
            context.checker.error(
                argument.name_span,
                f"no parameter has an axis called `{argument.name}`",
                help=help or f"the axes are {', '.join(context.dims) or 'all unnamed'}",
            )
            continue
        multiple = _integer(context, argument.value, "the size of a tile", 1, None)
        if multiple is None:
            continue
        if argument.name in context.settings.aligned:
            context.checker.error(argument.span, f"`{argument.name}` is aligned twice")
        elif dim.extent is None:
            context.settings.aligned[argument.name] = multiple
        elif dim.extent % multiple:
            context.checker.error(
                argument.span,
                f"`{argument.name}` is {dim.extent}, which is not a multiple of {multiple}",
            )


def _require(context: AttributeContext, attribute: ast.Attribute) -> None:
    args = _positional(context, attribute, 1)
    if args is None:
        return
    if not args:
        _wrong_argument(context, attribute, attribute.span, "`@require` states a condition")
        return
    condition = to_condition(context.checker, context.checker.expression(args[0]))
    if is_poison(condition):
        return
    if not isinstance(condition, Literal):
        context.checker.error(
            args[0].span,
            "`@require` is about compile-time constants alone",
            help="use numbers and names bound by `@autotune`",
        )
        return
    text = print_expression(args[0])
    if not condition.value:
        values = ", ".join(f"{n} = {v}" for n, v in context.settings.constants.items())
        context.checker.error(args[0].span, f"the constants {values} do not meet this requirement")
    context.settings.requirements.append(text)


def _grid(context: AttributeContext, attribute: ast.Attribute) -> None:
    for argument in _named(context, attribute):
        if argument.name not in _AXES:
            context.checker.error(
                argument.name_span,
                f"a grid has the axes x, y and z, not `{argument.name}`",
                help=did_you_mean(argument.name, _AXES),
            )
            continue
        text = grid_text(context.checker, argument.value, context.dims, context.settings.constants)
        if text is not None:
            context.settings.grid[argument.name] = text


def _pipeline(context: AttributeContext, attribute: ast.Attribute) -> None:
    args = _positional(context, attribute, 1)
    if args is None:
        return
    stages = _integer(context, args[0], "the number of stages", 1, None) if args else BARE_PIPELINE
    context.settings.pipeline = stages


def _tensorcore(context: AttributeContext, attribute: ast.Attribute) -> None:
    args = _positional(context, attribute, 2)
    if args is None:
        return
    words = [_tensorcore_form(context, argument) for argument in args]
    if len(words) == 2 and None not in words and not (words[0] == "wmma" and words[1] in _BY_WMMA):
        context.checker.error(
            args[1].span,
            "`@tensorcore` takes one form, or `wmma` and what f32 operands are rounded to",
            help=f"as in {', '.join(f'`@tensorcore(wmma, {form})`' for form in _BY_WMMA)}",
        )
    context.settings.tensorcore = " ".join(word for word in words if word is not None)


def _tensorcore_form(context: AttributeContext, argument: ast.Expression) -> str | None:
    """One word in the brackets of `@tensorcore`; None after an error."""
    form = argument.name if isinstance(argument, ast.Name) else None
    if form in _TENSOR_CORE_FORMS:
        return form
    help = None
    if form is not None:
        help = _NO_TENSOR_CORE_FORMS.get(form) or did_you_mean(form, _TENSOR_CORE_FORMS)
    context.checker.error(
        argument.span,
        "`@tensorcore` has no such form",
        help=help or f"the forms are {', '.join(_TENSOR_CORE_FORMS)}",
    )
    return None


def _cluster(context: AttributeContext, attribute: ast.Attribute) -> None:
    # After an error it has one CTA, so that what speaks of clusters stays silent.
    context.settings.cluster = 1
    args = _positional(context, attribute, 1)
    if args is None:
        return
    if not args:
        _wrong_argument(context, attribute, attribute.span, "`@cluster` gives a number of CTAs")
        return
    size = _integer(context, args[0], "the number of CTAs of a cluster", 1, max(CLUSTER_SIZES))
    if size is not None and size not in CLUSTER_SIZES:
        sizes = ", ".join(map(str, CLUSTER_SIZES[:-1]))
        context.checker.error(
            args[0].span, f"a cluster has {sizes} or {CLUSTER_SIZES[-1]} CTAs, not {size}"
        )
    elif size is not None:
        context.settings.cluster = size


def _flag(context: AttributeContext, attribute: ast.Attribute) -> None:
    if _positional(context, attribute, 0) is not None:
        context.settings.flags.append(attribute.name)


_RULES: dict[str, AttributeRule] = {
    "autotune": AttributeRule("@autotune(BLOCK in [16, 8192])", _autotune, repeats=True),
    "launch": AttributeRule("@launch(256)` or `@launch(256, 2, 128)", _launch),
    "aligned": AttributeRule("@aligned(N = 64)", _aligned, repeats=True),
    "require": AttributeRule("@require(BLOCK <= 4096)", _require, repeats=True),
    "grid": AttributeRule("@grid(x = ceildiv(N, BLOCK))", _grid),
    "pipeline": AttributeRule("@pipeline(3)", _pipeline),
    "tensorcore": AttributeRule("@tensorcore(f16)", _tensorcore),
    "cluster": AttributeRule("@cluster(4)", _cluster),
    "dynshared": AttributeRule("@dynshared", _flag),
    "persistent": AttributeRule("@persistent", _flag),
    "registers": AttributeRule("@registers", _flag),
    "swizzle": AttributeRule("@swizzle", _flag),
    "fast_math": AttributeRule("@fast_math", _flag),
}

ATTRIBUTE_NAMES = frozenset(_RULES)
"""The attributes that a kernel may have."""
