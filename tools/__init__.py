"""What developers run: the demonstration, the GPU run, the benchmarks."""
