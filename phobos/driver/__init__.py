"""The compile driver: source text to PTX and its launch contract.

`compile_text` runs the compiler and gives any level of the way; `compile_module` gives a
`phobos.runtime.module.Module` whose kernels can be launched, and uses the kernel cache.
"""

from phobos.driver.options import CompileOptions, make_options

__all__ = ["CompileOptions", "make_options"]
