"""Trial runs: how inputs come about, and what the report says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.runtime import trial as trial_module
from phobos.runtime.device import BoundScalar, Launch
from phobos.runtime.inputs import Inputs, make_inputs, save
from phobos.runtime.module import Module
from phobos.runtime.trial import Trial, run_trial, summary
from phobos.targets.ptx.contract import (
    TYPE_BYTES,
    Dimension,
    KernelContract,
    ScalarParameter,
    TensorParameter,
)
from tests.support.launching import SAXPY, NotingDevice, contract_of


def inputs(
    kernel: KernelContract = SAXPY,
    dims: dict[str, int] | None = None,
    scalars: dict[str, float] | None = None,
    files: dict[str, Path] | None = None,
    seed: int = 0,
) -> Inputs:
    return make_inputs(kernel, dims=dims or {}, scalars=scalars or {}, files=files or {}, seed=seed)


def saved(folder: Path, name: str, array: np.ndarray) -> Path:
    path = folder / f"{name}.npy"
    save(array, path)
    return path


def one_tensor(type_name: str, *dims: str) -> KernelContract:
    shape = tuple(Dimension(dim, None) for dim in dims)
    return KernelContract("k", 32, (TensorParameter("t", type_name, shape),))


# Inputs ------------------------------------------------------------------------------------------


def test_random_data_depends_on_seed_and_name_alone() -> None:
    first, again = inputs(dims={"N": 50}), inputs(dims={"N": 50})
    other = inputs(dims={"N": 50}, seed=1)
    x, y = first.values["x"].value, first.values["y"].value
    np.testing.assert_array_equal(x, again.values["x"].value)
    assert not np.array_equal(x, y)
    assert not np.array_equal(x, other.values["x"].value)
    assert first.values["x"].origin == "random, seed 0"
    reordered = replace(SAXPY, parameters=SAXPY.parameters[::-1])
    np.testing.assert_array_equal(x, inputs(reordered, {"N": 50}).values["x"].value)


@pytest.mark.parametrize("type_name", TYPE_BYTES)
def test_random_data_of_every_type(type_name: str) -> None:
    array = inputs(one_tensor(type_name, "M", "N"), {"M": 20, "N": 30}).values["t"].value
    assert array.shape == (20, 30)
    assert array.dtype.itemsize == TYPE_BYTES[type_name]
    numbers = array.astype(np.float64)
    assert np.isfinite(numbers).all()
    assert len(np.unique(numbers)) > (1 if type_name == "bool" else 10)
    assert np.abs(numbers).max() <= 100


def test_extents_come_from_loaded_arrays(tmp_path: Path) -> None:
    path = saved(tmp_path, "x", np.arange(12, dtype=np.float32))
    made = inputs(files={"x": path})
    assert made.extents == {"N": 12}
    assert made.values["out"].value.shape == (12,)
    np.testing.assert_array_equal(made.values["x"].value, np.arange(12))
    assert str(path) in made.values["x"].origin


def test_missing_extents_name_the_flag() -> None:
    with pytest.raises(PhobosError) as caught:
        inputs()
    text = str(caught.value)
    assert "the extent `N` of `saxpy` cannot be inferred" in text
    assert "give --dim N=NUMBER" in text
    with pytest.raises(PhobosError, match="--dim M=NUMBER --dim N=NUMBER"):
        inputs(one_tensor("f32", "M", "N"))


def test_extents_that_contradict(tmp_path: Path) -> None:
    x = saved(tmp_path, "x", np.zeros(12, np.float32))
    y = saved(tmp_path, "y", np.zeros(13, np.float32))
    with pytest.raises(PhobosError, match=r"`N` is 12 by .*x\.npy and 13 in .*y\.npy"):
        inputs(files={"x": x, "y": y})
    with pytest.raises(PhobosError, match=r"`N` is 20 by --dim and 12 in .*x\.npy"):
        inputs(files={"x": x}, dims={"N": 20})


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"dims": {"M": 4}}, "--dim M: `saxpy` has no extent of that name"),
        ({"dims": {"n": 4}}, "did you mean `N`"),
        ({"dims": {"BLOCK": 64}}, "give it as --set BLOCK=64"),
        ({"dims": {"N": -1}}, "cannot be negative"),
        ({"scalars": {"x": 1.0}}, "--arg x: `saxpy` has no scalar of that name"),
        ({"files": {"alpha": Path("a.npy")}}, "--load alpha: `saxpy` has no tensor"),
        ({"dims": {"N": 2**60}}, "does not fit in memory"),
    ],
)
def test_wrong_names_and_numbers(arguments: dict[str, Any], part: str) -> None:
    with pytest.raises(PhobosError) as caught:
        inputs(**arguments)
    assert part in str(caught.value)


def test_float_scalars_are_random_and_integer_ones_are_asked_for() -> None:
    made = inputs(dims={"N": 4})
    assert made.values["alpha"].value == inputs(dims={"N": 4}).values["alpha"].value
    assert "--arg alpha=NUMBER sets it" in made.values["alpha"].origin
    assert inputs(dims={"N": 4}, scalars={"alpha": 3}).values["alpha"].value == 3.0
    kernel = replace(SAXPY, parameters=(ScalarParameter("rows", "i32"),))
    with pytest.raises(PhobosError, match="give --arg rows=NUMBER"):
        inputs(kernel)
    with pytest.raises(PhobosError, match=r"0\.5 is not an integer"):
        inputs(kernel, scalars={"rows": 0.5})


def test_extension_types_survive_a_file(tmp_path: Path) -> None:
    array = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    made = inputs(one_tensor("bf16", "M", "N"), files={"t": saved(tmp_path, "t", array)})
    assert made.values["t"].value.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(made.values["t"].value, array)


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    def error(array: np.ndarray | bytes) -> str:
        path = tmp_path / "x.npy"
        if isinstance(array, bytes):
            path.write_bytes(array)
        else:
            save(array, path)
        with pytest.raises(PhobosError) as caught:
            inputs(files={"x": path})
        return str(caught.value)

    assert "holds f64, and `x` must hold f32" in error(np.zeros(3))
    assert "astype('float32')" in error(np.zeros(3))
    assert "holds complex128" in error(np.zeros(3, complex))
    assert "has shape [2, 2], and `x` needs 1 axes" in error(np.zeros((2, 2), np.float32))
    assert "is no .npy file of numbers" in error(b"hello")
    assert "is no .npy file of numbers" in error(b"")
    big_endian = inputs(files={"x": saved(tmp_path, "b", np.arange(3, dtype=">f4"))})
    assert big_endian.values["x"].value.dtype == np.float32
    with pytest.raises(PhobosError, match="No such file"):
        inputs(files={"x": tmp_path / "missing.npy"})


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.array([object()]), allow_pickle=True)
    with pytest.raises(PhobosError, match=r"is no \.npy file of numbers"):
        inputs(files={"x": path})


# The report --------------------------------------------------------------------------------------


Report = Callable[..., Sequence[str]]


class SaxpyDevice(NotingDevice):
    """Computes saxpy with NumPy."""

    def launch(self, launch: Launch) -> None:
        super().launch(launch)
        x, y, out = (tensor.view.host for tensor in launch.tensors)
        alpha = launch.arguments[3]
        assert isinstance(alpha, BoundScalar)
        assert x is not None
        assert y is not None
        assert out is not None
        out[:] = alpha.value * x + y


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Report:
    device = SaxpyDevice()
    monkeypatch.setattr(trial_module, "choose_device", lambda _: device)

    def run(**fields: Any) -> Sequence[str]:
        lines: list[str] = []
        module = Module("ptx", contract_of(SAXPY))
        run_trial(module, Trial(**fields), lines.append)
        return lines

    return run


def test_the_report_tells_what_was_done(report: Report, tmp_path: Path) -> None:
    x = saved(tmp_path, "x", np.arange(100, dtype=np.float32))
    y = saved(tmp_path, "y", np.ones(100, np.float32))
    out = tmp_path / "out.npy"
    lines = report(scalars={"alpha": 2.0}, loads={"x": x, "y": y}, saves={"out": out})
    assert lines == [
        "Kernel saxpy of test.ph, compiled for sm_80",
        "  BLOCK = 16 (compiled in)",
        "  N = 100",
        f"  x: f32[100]: loaded from {x}",
        f"  y: f32[100]: loaded from {y}",
        "  out: f32[100]: random, seed 0",
        "  alpha = 2.0 (given)",
        "Running 7 x 1 x 1 CTAs of 256 threads on a device for tests",
        "out: f32[100]: min 1, max 199, mean 100, first elements 1 3 5 7 ...",
        f"  saved to {out}",
    ]
    np.testing.assert_array_equal(np.load(out), 2 * np.arange(100) + 1)


def test_an_input_can_be_saved_too(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    report(dims={"N": 4}, saves={"x": path})
    np.testing.assert_array_equal(np.load(path), inputs(dims={"N": 4}).values["x"].value)


def test_an_empty_launch_says_so(report: Report) -> None:
    lines = report(dims={"N": 0})
    assert "Nothing to do: an extent is 0, so that the grid is empty." in lines
    assert lines[-1] == "out: f32[0]: no elements"


def test_timing_is_reported_with_the_bandwidth(report: Report) -> None:
    line = report(dims={"N": 1000}, is_timed=True)[-1]
    assert line == (
        "Time: median 250 ms of 10 launches, least 250 ms; 0.0 GB/s if each element is moved once"
    )


def test_wrong_saves(report: Report, tmp_path: Path) -> None:
    with pytest.raises(PhobosError, match="--save outt: `saxpy` has no tensor of that name"):
        report(dims={"N": 4}, saves={"outt": tmp_path / "o.npy"})
    with pytest.raises(PhobosError, match="cannot write"):
        report(dims={"N": 4}, saves={"out": tmp_path / "no" / "o.npy"})


def test_only_written_tensors_are_summarised(report: Report) -> None:
    lines = report(dims={"N": 4})
    assert [line for line in lines if line.startswith(("x:", "y:"))] == []


def test_summaries() -> None:
    assert summary(np.array([1, 2], np.int8)) == "min 1, max 2, mean 1.5, first elements 1 2"
    assert summary(np.array([np.nan, 1, np.inf], np.float32)) == (
        "min 1, max 1, mean 1, 2 not finite, first elements nan 1 inf"
    )
    assert summary(np.array([np.nan], np.float32)) == (
        "no finite element, 1 not finite, first elements nan"
    )
    assert summary(np.array([True, False])) == "min 0, max 1, mean 0.5, first elements 1 0"
