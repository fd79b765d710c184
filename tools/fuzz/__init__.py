"""A differential fuzzer: random programs, on their syntax tree and through the compiler."""
