"""Record what a GPU answers to the instruction forms that the emulator is compared with.

    python tools/record_gpu_answers.py OUT_FOLDER

Needs a GPU that runs sm_90a, its driver, NumPy and ml_dtypes. Writes `gpu_answers.json`, a digest
of the results of each form that must agree bit for bit, and `gpu_approximations.npz`, results of
the approximate forms; both belong in tests/unit/emulator/data. With `--samples`, the first results
of every form are written to `samples.npz`, for looking into a difference.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.unit.emulator.form_table import all_forms  # noqa: E402
from tests.unit.emulator.forms import (  # noqa: E402
    APPROXIMATE,
    COUNT,
    THREADS,
    Form,
    digest,
    module_text,
    operands_of,
    result_array,
)
from tests.unit.emulator.matrix_forms import (  # noqa: E402
    MATRIX_FORMS,
    WARP,
    WARPS,
    fragments_of,
    matrix_module,
)
from tests.unit.emulator.warpgroup_forms import PRODUCT_FORMS  # noqa: E402
from tests.unit.emulator.warpgroup_forms import answer as product_answer  # noqa: E402

SAMPLES = 2500
"""Results of a form that `--samples` keeps."""


class Driver:
    """The few calls of the CUDA driver that running a kernel takes."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(100)
        self._call("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()

    def _call(self, name: str, *args: object) -> None:
        code = getattr(self._cuda, name)(*args)
        if code:
            raise RuntimeError(f"{name} failed with error {code}")

    def load(self, ptx: str) -> ctypes.c_void_p:
        """A module from PTX text."""
        module = ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), ptx.encode() + b"\0")
        return module

    def launch(
        self,
        module: ctypes.c_void_p,
        name: str,
        grid: int,
        block: int,
        arrays: Sequence,
        count: int | None = None,
        shared: int = 0,
    ) -> None:
        """Run a kernel on copies of arrays, and a number if given; copy the last array back."""
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        pointers = []
        for array in arrays:
            pointer = ctypes.c_uint64()
            self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(array.nbytes))
            size = ctypes.c_size_t(array.nbytes)
            self._call("cuMemcpyHtoD_v2", pointer, array.ctypes.data_as(ctypes.c_void_p), size)
            pointers.append(pointer)
        values = [*pointers, *([] if count is None else [ctypes.c_uint32(count)])]
        table = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in values)
        )
        self._call("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, shared, None, table, None)
        last = arrays[-1]
        size = ctypes.c_size_t(last.nbytes)
        self._call("cuMemcpyDtoH_v2", last.ctypes.data_as(ctypes.c_void_p), pointers[-1], size)
        for pointer in pointers:
            self._call("cuMemFree_v2", pointer)


def answer(driver: Driver, module: ctypes.c_void_p, number: int, form: Form) -> np.ndarray:
    """The results of one form."""
    result = result_array(form)
    grid = -(-COUNT // THREADS)
    driver.launch(module, f"form_{number}", grid, THREADS, [*operands_of(form), result], COUNT)
    return result[:COUNT]


def _answer_matrices(
    driver: Driver, digests: dict[str, str], samples: dict[str, np.ndarray]
) -> None:
    module = driver.load(matrix_module(MATRIX_FORMS))
    for number, form in enumerate(MATRIX_FORMS):
        operands = fragments_of(form)
        shape = (WARPS, form.registers[0], WARP)
        result = np.zeros(shape, dtype=np.uint64 if form.is_wide else np.uint32)
        name = f"matrix_{number}"
        driver.launch(module, name, WARPS, WARP, [*operands, result], WARPS)
        samples[form.suffix] = result
        if form.is_exact:
            digests[form.suffix] = digest(result)


def _answer_products(
    driver: Driver, digests: dict[str, str], samples: dict[str, np.ndarray]
) -> None:
    def launch(text: str, name: str, grid: int, block: int, arrays: list, shared: int) -> None:
        driver.launch(driver.load(text), name, grid, block, arrays, shared=shared)

    for name in PRODUCT_FORMS:
        samples[name] = product_answer(name, launch)
        digests[name] = digest(samples[name])


def main() -> None:
    """Run all forms and write the answers."""
    out = Path(sys.argv[1])
    driver = Driver()
    forms = all_forms()
    module = driver.load(module_text(forms))
    digests: dict[str, str] = {}
    approximate: dict[str, np.ndarray] = {}
    samples: dict[str, np.ndarray] = {}
    for number, form in enumerate(forms):
        result = answer(driver, module, number, form)
        samples[form.line] = result[:SAMPLES]
        if form.is_exact:
            digests[form.line] = digest(result)
        else:
            approximate[form.line] = result[:APPROXIMATE]
    _answer_matrices(driver, digests, samples)
    _answer_products(driver, digests, samples)
    document = {"gpu": driver.name, "operands": COUNT, "digests": digests}
    (out / "gpu_answers.json").write_text(json.dumps(document, indent=0) + "\n")
    np.savez_compressed(out / "gpu_approximations.npz", **approximate)  # type: ignore[arg-type]
    if "--samples" in sys.argv:
        np.savez_compressed(out / "samples.npz", **samples)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
