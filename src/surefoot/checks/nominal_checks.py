"""What nominals must keep."""

import numpy as np
from scipy.stats import rankdata

from surefoot.checks.demands import close, demand, numbers_of
from surefoot.nominals import Nominal
from surefoot.typing import FloatArray

# Draws by which two ways of drawing are compared, and how many standard errors their means may differ.
DRAWS, MOST_ERRORS = 400, 8.0


def _sizes(nominal: Nominal) -> tuple[int, int]:
    """Return the sizes of contexts and outcomes."""
    sizes = nominal.n_columns, nominal.n_products
    for name, size in zip(("n_columns", "n_products"), sizes, strict=True):
        whole = isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 1
        demand(whole, f"{name} must be a whole number >= 1, got {size!r}")
    return sizes


def _drawn(nominal: Nominal, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
    """Return contexts and outcomes of the sizes promised."""
    drawn, (columns, products) = nominal.sample(rng, size), _sizes(nominal)
    pair = isinstance(drawn, tuple) and len(drawn) == 2
    demand(pair, f"sample must return a pair (contexts, outcomes), got {type(drawn).__name__}")
    X, y = (
        numbers_of(part, f"{name} of sample")
        for part, name in zip(drawn, ("contexts", "outcomes"), strict=True)
    )
    sizes, shapes = ((size, columns), (size, products)), (X.shape, y.shape)
    demand(shapes == sizes, f"sample must return shapes {sizes}, got {shapes}")
    demand(bool(np.isfinite(X).all() and np.isfinite(y).all()), "draws must be finite")
    return X, y


def _nominal_samples(nominal: Nominal) -> None:
    """Draws have the sizes promised, repeat from the generator handed in, and are the caller's own."""
    for size in (1, 7):
        X, y = _drawn(nominal, np.random.default_rng(0), size)
        for again, drawn in zip(nominal.sample(np.random.default_rng(0), size), (X, y), strict=True):
            close(again, drawn, "draws must depend on the generator alone")
    kept = [X.copy(), y.copy()]
    for drawn in (X, y):
        if drawn.flags.writeable:
            drawn += 1.0
    for again, drawn in zip(nominal.sample(np.random.default_rng(0), 7), kept, strict=True):
        close(again, drawn, "draws must not be changed by what is done to earlier ones")


def _nominal_draws(nominal: Nominal) -> None:
    """Draws come anew from the generator, and are of one distribution however many are asked for."""
    rng = np.random.default_rng(0)
    many, more = (np.hstack(_drawn(nominal, rng, DRAWS)) for _ in range(2))
    if (many == many[0]).all():  # one row, which is always the same
        return
    other = np.hstack(_drawn(nominal, np.random.default_rng(1), DRAWS))
    for again in (more, other):
        demand(not np.array_equal(again, many), "draws must come anew from the generator handed in")
    ones = np.vstack([np.hstack(_drawn(nominal, rng, 1)) for _ in range(DRAWS)])
    # Ranks have moments, whatever the tails; equal numbers share theirs.
    ranks = rankdata(np.vstack([many, ones]), axis=0) / (2.0 * DRAWS)
    apart = np.abs(ranks[:DRAWS].mean(axis=0) - ranks[DRAWS:].mean(axis=0))
    most = MOST_ERRORS * np.sqrt(1.0 / 12.0 * 2.0 / DRAWS)
    demand(bool((apart < most).all()), "draws one by one must be distributed as those at a time")


def _nominal_names(nominal: Nominal) -> None:
    """Names of columns, where they are known, are one text for each."""
    names, columns = nominal.names, _sizes(nominal)[0]
    if names is not None:
        texts = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
        demand(texts and len(names) == columns, f"names must be {columns} texts or None, got {names!r}")


NOMINAL_CHECKS = (_nominal_samples, _nominal_draws, _nominal_names)
