"""How far results may be off: bounds that hold for what hardware does, and are 0 where they can."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.emulator.tensor.products import multiply_floats
from tools.fuzz import elementwise, folds, functions
from tools.fuzz.scalars import Doubles
from tools.fuzz.values import Kind, Value, errors


def _tile(type_: str, data: Doubles) -> Value:
    return Value(type_, Kind.TILE, data)


def _on_tensor_cores(a: Doubles, b: Doubles, c: Doubles, step: int) -> Doubles:
    """`c + a @ b`, with so many columns of a in an instruction."""
    total = c[None]
    for start in range(0, a.shape[1], step):
        part = slice(start, start + step)
        total = multiply_floats(a[None, :, part], b[None, part], total, "f32")
    return total[0]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("step", [4, 8, 16])
def test_a_product_with_an_addend(seed: int, step: int) -> None:
    generator = np.random.default_rng(seed)
    depth = int(generator.choice([1, 2, 3, 16, 48]))
    size = 2.0 ** generator.integers(-40, 40)
    a = generator.standard_normal((16, depth)).astype(np.float16).astype(np.float64)
    b = generator.standard_normal((depth, 16)).astype(np.float16).astype(np.float64)
    c = (generator.standard_normal((16, 16)) * size).astype(np.float32).astype(np.float64)
    product = folds.contract(_tile("f16", a), _tile("f16", b), "f32")
    total = elementwise.binary("+", "f32", _tile("f32", c), product)
    found = _on_tensor_cores(a, b, c, step)
    assert np.all(np.abs(found - total.data) <= errors(total))
    alone = _on_tensor_cores(a, b, np.zeros((16, 16)), step)
    assert np.all(np.abs(alone - product.data) <= errors(product))
    # Not everything is right: the bound is some units in the last place of what is added up.
    units = 2.0**-23 * (np.abs(a) @ np.abs(b) + np.abs(c))
    assert np.all(errors(total) <= 2 * (depth + 2) * units + 1e-30)


@pytest.mark.parametrize("step", [4, 8, 16])
def test_whole_numbers_are_exact(step: int) -> None:
    generator = np.random.default_rng(1)
    a, b, c = (generator.integers(-9, 10, (16, 16)).astype(np.float64) for _ in range(3))
    product = folds.contract(_tile("bf16", a), _tile("bf16", b), "f32")
    total = elementwise.binary("+", "f32", product, _tile("f32", c))
    assert total.error is None
    assert np.array_equal(_on_tensor_cores(a, b, c, step), total.data)


def test_an_addend_that_is_off() -> None:
    ones = np.ones((1, 1))
    product = folds.contract(_tile("f16", ones), _tile("f16", ones), "f32")
    addend = Value("f32", Kind.TILE, ones, np.full((1, 1), 2.0**-20))
    total = elementwise.binary("+", "f32", addend, product)
    # That of the addend, and what is cut from a sum that is a whole number no more.
    assert 2.0**-20 < errors(total)[0, 0] < 2.0**-20 + 2.0**-19


@pytest.mark.parametrize(("type_", "digits"), [("f32", 24), ("f64", 53)])
def test_a_product_that_is_added_unrounded(type_: str, digits: int) -> None:
    limits = np.finfo("f4" if type_ == "f32" else "f8")
    largest, smallest = float(limits.max), float(limits.smallest_subnormal)
    a = np.array([0.1, 3.0, smallest, largest, 0.0])
    b = np.array([0.3, 0.5, 0.5, largest, np.inf])
    if type_ == "f32":
        a, b = (values.astype(np.float32).astype(np.float64) for values in (a, b))
    with np.errstate(all="ignore"):
        product = elementwise.binary(
            "*", type_, _tile(type_, a), _tile(type_, b), is_contracted=True
        )
    # Half a unit in the last place of 0.03, nothing, what was lost, and any number.
    assert errors(product).tolist() == [2.0 ** (-6 - digits), 0, smallest, np.inf, 0]


def test_zero_times_what_may_be_no_number() -> None:
    zero, one = np.zeros(2), np.ones(2)
    wild = Value("f16", Kind.TILE, one, np.array([np.inf, 0.5]))
    with np.errstate(all="ignore"):
        product = elementwise.binary("*", "f16", _tile("f16", zero), wild)
    assert errors(product).tolist() == [np.inf, 0]


def test_the_operands_of_fma_may_be_off() -> None:
    one = np.ones(1)
    off = Value("f64", Kind.TILE, one, np.full(1, 0.25))
    total = functions.apply("fma", "f64", [_tile("f64", 3 * one), off, _tile("f64", one)])
    assert 0.75 < errors(total)[0] < 0.75 + 1e-14
