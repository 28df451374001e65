"""Engines: the updates, as readable formulas and as compiled kernels."""
