"""What nominals must keep."""

import numpy as np

from surefoot.checks.demands import close, demand
from surefoot.nominals import Nominal


def _nominal_samples(nominal: Nominal) -> None:
    """Draws have the sizes promised, repeat from the generator handed in, and are the caller's own."""
    for size in (1, 7):
        X, y = nominal.sample(np.random.default_rng(0), size)
        sizes = (size, nominal.n_columns), (size, nominal.n_products)
        shapes = X.shape, y.shape
        demand(shapes == sizes, f"sample must return shapes {sizes}, got {shapes}")
        demand(bool(np.isfinite(X).all() and np.isfinite(y).all()), "draws must be finite")
        for again, drawn in zip(nominal.sample(np.random.default_rng(0), size), (X, y), strict=True):
            close(again, drawn, "draws must depend on the generator alone")
    kept = [X.copy(), y.copy()]
    for drawn in (X, y):
        if drawn.flags.writeable:
            drawn += 1.0
    for again, drawn in zip(nominal.sample(np.random.default_rng(0), 7), kept, strict=True):
        close(again, drawn, "draws must not be changed by what is done to earlier ones")


NOMINAL_CHECKS = (_nominal_samples,)
