"""The lowering from distributed tile IR to `ptx`: one forward sweep, one file a family of ops.

`state` holds what a sweep carries, `registers` says how a type lives in registers, and the other
modules each give a table `HANDLERS`: op class -> function that emits its instructions.
A family is imported when a kernel has an op that it lowers.
"""
