"""Benchmarks: every figure in the docs comes from one of these scripts and its committed result."""
