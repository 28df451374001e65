"""Least squares with an l1 penalty for a whole path of penalties, compiled: coordinate descent.

References
----------
Friedman, Hastie and Tibshirani (2010), "Regularization paths for generalized linear models via
coordinate descent", J. Stat. Softw. 33.
"""

import numpy as np

from surefoot.engines.compiling import kernel

# Sweeps over all coefficients, and over those that are not zero after each of them, at most.
SWEEPS, ACTIVE_SWEEPS = 30, 10


@kernel(reassociate=True)
def _sweep(gram, slopes, beta, penalty, zeros_stay):
    """Take each coefficient to its best value given the others, in place; return the largest change."""
    largest = 0.0
    for j in range(len(beta)):
        before, own = beta[j], gram[j, j]
        if own <= 0.0 or (zeros_stay and before == 0.0):
            continue
        target = slopes[j] + own * before
        after = 0.0
        if target > penalty:
            after = (target - penalty) / own
        elif target < -penalty:
            after = (target + penalty) / own
        change = after - before
        if change != 0.0:
            beta[j] = after
            for k in range(len(beta)):
                slopes[k] -= change * gram[j, k]
            largest = max(largest, abs(change))
    return largest


@kernel(reassociate=True)
def _descend(gram, slopes, beta, penalty, zeros_stay, tolerance):
    """Minimise beta'G beta / 2 - c'beta + penalty |beta|_1 in place; slopes are c - G beta."""
    for _ in range(SWEEPS):
        if _sweep(gram, slopes, beta, penalty, zeros_stay) <= tolerance:
            return
        for _ in range(ACTIVE_SWEEPS):
            if _sweep(gram, slopes, beta, penalty, True) <= tolerance:
                break


@kernel(reassociate=True)
def lasso_path(gram, products, penalties, most_columns, tolerance):
    """Return coefficients for each penalty, and below them those of the same columns without a penalty.

    Where more columns would be used than ``most_columns``, both stay what they were.

    Parameters
    ----------
    gram, products
        G = X'X, shape (s, s), and c = X'y, shape (s,), both over the number of rows.
    penalties
        From large to small, shape (k,).
    most_columns
        How many columns may be used.
    tolerance
        Changes of coefficients that are nothing.

    Returns
    -------
    Shape (2 k, s).
    """
    s, count = len(products), len(penalties)
    path = np.zeros((2 * count, s))
    beta, slopes = np.zeros(s), products.copy()
    free, free_slopes = np.zeros(s), products.copy()
    for k in range(count):
        _descend(gram, slopes, beta, penalties[k], False, tolerance)
        used = 0
        for j in range(s):
            if beta[j] != 0.0:
                used += 1
        if used > most_columns:
            for later in range(max(k, 1), count):
                for j in range(s):
                    path[later, j] = path[k - 1, j] if k > 0 else 0.0
                    path[count + later, j] = path[count + k - 1, j] if k > 0 else 0.0
            break
        for j in range(s):
            free[j], free_slopes[j] = beta[j], slopes[j]
        _descend(gram, free_slopes, free, 0.0, True, tolerance)
        for j in range(s):
            path[k, j], path[count + k, j] = beta[j], free[j]
    return path
