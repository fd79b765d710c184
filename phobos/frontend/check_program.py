"""Checks a whole program: its declarations, and each kernel with its attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from phobos.diagnostics import PhobosError, did_you_mean
from phobos.frontend import ast
from phobos.frontend.attributes import AttributeContext, apply_attributes, declare_constants
from phobos.frontend.check_expressions import check_expression
from phobos.frontend.check_functions import check_uncalled, declare_dim
from phobos.frontend.check_statements import check_block
from phobos.frontend.check_types import resolve_stored, resolve_tensor_type
from phobos.frontend.checker import Checker, Rules, declared_here
from phobos.frontend.exits import structure
from phobos.frontend.options import FrontendOptions
from phobos.frontend.scopes import NamedConstant, Poisoned
from phobos.frontend.typed import (
    Block,
    Kernel,
    KernelSettings,
    Parameter,
    Program,
    Role,
    TensorParameter,
    Variable,
)

_RULES = Rules(check_expression, check_block)


def check_program(program: ast.Program, options: FrontendOptions) -> Program:
    """The checked form of a program; raises PhobosError with all errors that were found."""
    checker = Checker(options.sources, options.index_bits, _RULES)
    _declare_all(checker, program)
    chosen = _choose_kernels(checker, program, options.kernel)
    kernels = [_check_kernel(checker, kernel, options.constants) for kernel in chosen]
    _check_overrides(checker, kernels, options.constants)
    for function in program.functions:
        if id(function) not in checker.called:
            check_uncalled(checker, function)
    checker.report.raise_if_errors()
    return Program(tuple(kernel for kernel in kernels if kernel is not None))


def _declare_all(checker: Checker, program: ast.Program) -> None:
    for declaration in program.declarations:
        checker.declare_global(declaration)


def _choose_kernels(
    checker: Checker, program: ast.Program, name: str | None
) -> Sequence[ast.Kernel]:
    names = [kernel.name for kernel in program.kernels]
    if not names:
        checker.report.error(
            None,
            "the program has no kernel",
            help="a kernel looks like `kernel name(x: tensor<f32>[N]) { ... }`",
        )
    if name is None:
        return program.kernels
    chosen = [kernel for kernel in program.kernels if kernel.name == name]
    if names and not chosen:
        help = did_you_mean(name, names) or f"its kernels are {', '.join(names)}"
        checker.report.error(None, f"the program has no kernel `{name}`", help=help)
    return chosen


def _check_overrides(
    checker: Checker, kernels: Sequence[Kernel], overrides: Mapping[str, int | float]
) -> None:
    known = {name: None for kernel in kernels for name in kernel.settings.constants}
    for name in overrides:
        if name in known:
            continue
        listed = f"the constants are {', '.join(known)}" if known else "it has none"
        checker.report.error(
            None,
            f"the program has no `@autotune` constant `{name}`",
            help=did_you_mean(name, known) or listed,
        )


# One kernel --------------------------------------------------------------------------------------


def _check_kernel(
    checker: Checker, kernel: ast.Kernel, overrides: Mapping[str, int | float]
) -> Kernel:
    checker.settings = settings = KernelSettings()
    context = AttributeContext(checker, settings, overrides)
    with checker.nested_scope(checker.program_scope):
        declare_constants(context, kernel.attributes)
        parameters = _parameters(context, kernel.params)
        apply_attributes(context, kernel.attributes)
        body = checker.block(kernel.body)
    return Kernel(
        kernel.name, kernel.name_span.start, parameters, settings, _structured(checker, body)
    )


def _structured(checker: Checker, body: Block) -> Block:
    try:
        return structure(body)
    except PhobosError as error:
        for diagnostic in error.diagnostics:
            checker.report.add(diagnostic)
        return Block(())


def _parameters(context: AttributeContext, params: Sequence[ast.Param]) -> tuple[Parameter, ...]:
    found: list[tuple[ast.Param, Parameter]] = []
    checker = context.checker
    for param in params:
        parameter = _parameter(context, param)
        if parameter is None:
            _declare_poisoned(checker, param)
            continue
        checker.declare(param.name, parameter, param.name_span)
        found.append((param, parameter))
    for param, parameter in found:
        if isinstance(parameter, TensorParameter):
            _declare_dims(context, param, parameter)
    return tuple(parameter for _, parameter in found)


def _declare_poisoned(checker: Checker, param: ast.Param) -> None:
    """Declares a parameter that has an error, and its dims, so that their uses stay silent."""
    checker.declare(param.name, Poisoned(param.name, param.name_span), param.name_span)
    for dim in param.type.dims if isinstance(param.type, ast.ShapedType) else ():
        if isinstance(dim, ast.DimName) and checker.scope.local(dim.name) is None:
            checker.scope.declare(dim.name, Poisoned(dim.name, dim.span))


def _parameter(context: AttributeContext, param: ast.Param) -> Parameter | None:
    checker = context.checker
    match param.type:
        case ast.ScalarType():
            scalar = resolve_stored(checker, param.type, "a parameter")
            if scalar is None:
                return None
            return Variable(param.name, scalar, Role.PARAMETER, param.name_span)
        case ast.ShapedType(kind=ast.ShapedKind.TENSOR):
            type_ = resolve_tensor_type(checker, param.type)
            return None if type_ is None else TensorParameter(param.name, type_, param.name_span)
        case ast.ShapedType():
            checker.error(
                param.type.span,
                "a kernel takes tensors and scalars; a tile exists only inside a CTA",
                help=f"write `{param.name}: tensor<{param.type.element.name}>[...]`",
            )
            return None


def _declare_dims(context: AttributeContext, param: ast.Param, tensor: TensorParameter) -> None:
    """Declares the names of a tensor's extents; the first tensor that has a name gives it."""
    checker = context.checker
    assert isinstance(param.type, ast.ShapedType)
    for axis, dim in enumerate(tensor.type.dims):
        if dim.name is None or dim.name in context.dims:
            continue
        context.dims[dim.name] = dim
        earlier = checker.scope.local(dim.name)
        if earlier is None or isinstance(earlier, Poisoned):
            declare_dim(checker, dim.name, tensor, axis, param)
        elif not isinstance(earlier, NamedConstant):
            checker.error(
                param.type.dims[axis].span,
                f"`{dim.name}` names both an extent and a parameter",
                notes=(*declared_here(dim.name, earlier),),
            )
