"""What CUDA, C, Python, NumPy and Triton call things, and what is written here instead."""

from __future__ import annotations

TYPES: dict[str, str] = {
    "float": "f32",
    "double": "f64",
    "half": "f16",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float64": "f64",
    "int": "i32",
    "int8": "i8",
    "int32": "i32",
    "int64": "i64",
    "uint": "u32",
    "char": "i8",
    "long": "i64",
    "usize": "index",
    "size_t": "index",
}
"""Types by other names."""

FIELDS: dict[str, str] = {
    "threadIdx": "ctx.thread",
    "blockDim": "ctx.threads",
    "blockIdx": "ctx.block",
    "gridDim": "ctx.blocks",
}
"""CUDA's variables, and the fields of `ctx`."""

FUNCTIONS: dict[str, str] = {
    **{name: f"{type_}(x)" for name, type_ in TYPES.items()},
    "__syncthreads": "barrier()",
    "syncthreads": "barrier()",
    "debug_barrier": "barrier()",
    "__shfl_sync": "shuffle(x, lane)",
    "__shfl_xor_sync": "shuffle_xor(x, mask)",
    "__shfl_up_sync": "shuffle_up(x, n)",
    "__shfl_down_sync": "shuffle_down(x, n)",
    "__ballot_sync": "ballot(p)",
    "__any_sync": "any<over ctx.lane>(p)",
    "__all_sync": "all<over ctx.lane>(p)",
    "__popc": "popcount(x)",
    "__clz": "clz(x)",
    "__brev": "brev(x)",
    "__dp4a": "dp4a(a, b, c)",
    "__byte_perm": "byteperm(a, b, selector)",
    "__float_as_int": "bitcast<i32>(x)",
    "__int_as_float": "bitcast<f32>(x)",
    "__ldg": "A[i]",
    "atomicAdd": "atomic_add(t, i, value)",
    "atomicMax": "atomic_max(t, i, value)",
    "atomicMin": "atomic_min(t, i, value)",
    "atomicAnd": "atomic_and(t, i, value)",
    "atomicOr": "atomic_or(t, i, value)",
    "atomicXor": "atomic_xor(t, i, value)",
    "atomicExch": "atomic_exchange(t, i, value)",
    "atomicCAS": "atomic_cas(t, i, expected, desired)",
    "printf": 'print("x is {}", x)',
    "device_print": 'print("x is {}", x)',
    "fmod": "x % y",
    "fmodf": "x % y",
    "fabs": "abs(x)",
    "fabsf": "abs(x)",
    "fmax": "max(a, b)",
    "fmaxf": "max(a, b)",
    "fmin": "min(a, b)",
    "fminf": "min(a, b)",
    "maximum": "max(a, b)",
    "minimum": "min(a, b)",
    "relu": "max(x, 0)",
    "zeros": "full(0.0, R, C)",
    "ones": "full(1.0, R, C)",
    "arange": "iota(n)",
    "len": "extent(A, axis)",
    "concatenate": "cat<0>(a, b)",
    "permute": "transpose(t)",
    "matmul": "dot(a, b)",
    "mean": "sum<over 1>(t) / f32(n)",
}
"""Functions, and the calls that do what they do."""

METHODS: dict[str, str] = {
    "sum": "sum<over 0>(t)",
    "prod": "prod<over 0>(t)",
    "max": "max<over 0>(t)",
    "min": "min<over 0>(t)",
    "any": "any<over 0>(t)",
    "all": "all<over 0>(t)",
    "argmax": "argmax<over 0>(t)",
    "argmin": "argmin<over 0>(t)",
    "cumsum": "cumsum(t)",
    "T": "transpose(t)",
    "transpose": "transpose(t)",
    "reshape": "reshape(t, R, C)",
    "view": "reshape(t, R, C)",
    "flatten": "flat(t)",
    "ravel": "flat(t)",
    "to": "f16(t)",
    "astype": "f16(t)",
    "load": "A[i :+ 64]",
    "store": "A[i :+ 64] = t",
    "program_id": "ctx.block.x",
    "num_programs": "ctx.blocks.x",
    "shape": "extent(A, axis)",
    "size": "extent(A, axis)",
}
"""What stands behind a point elsewhere, and is a call or a slice here."""


def spelling(name: str, table: dict[str, str]) -> str | None:
    """A line of help that says how something is written here, if it has another name."""
    known = table.get(name)
    return None if known is None else f"what you call `{name}` is written `{known}` here"
