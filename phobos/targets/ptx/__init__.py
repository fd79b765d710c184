"""NVIDIA GPUs: chips, legality, PTX text in and out, and the launch contract."""
