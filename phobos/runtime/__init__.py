"""Launching compiled kernels: arguments, devices, module loading, the kernel cache.

Everything launches from the contract alone (`phobos.targets.ptx.contract`). NumPy and the CUDA
bindings are imported when a launch needs them and not before.
"""
