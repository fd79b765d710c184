"""Tensor cores: fragments, element formats and the arithmetic of matrix products."""
