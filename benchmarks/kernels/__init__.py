"""Benchmarks of single kernels, by pytest-benchmark; run by ``make bench-kernels``."""
