"""Runs PTX on the CPU with NumPy, and checks what a GPU does not.

phobos.emulator.emulate(ptx, "saxpy", grid=4, block=256, args=[x, y, out, np.float32(2)])
"""

from phobos.emulator.errors import EmulatorError, Finding, FindingKind
from phobos.emulator.launch import CHECKS, DEFAULT_CHECKS, emulate, known_checks
from phobos.emulator.profiling import LineCounts, Profile, profile_table
from phobos.emulator.tensor_map import (
    TensorMap,
    TensorMapArgument,
    decode_tensor_map,
    encode_tensor_map,
)

__all__ = [
    "CHECKS",
    "DEFAULT_CHECKS",
    "EmulatorError",
    "Finding",
    "FindingKind",
    "LineCounts",
    "Profile",
    "TensorMap",
    "TensorMapArgument",
    "decode_tensor_map",
    "emulate",
    "encode_tensor_map",
    "known_checks",
    "profile_table",
]
