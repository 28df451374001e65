"""The coefficients of ridge regression, averaged over a grid of strengths, in one compiled call.

What ``forecasts/spectrum.py`` says of the linear models, for those who ask for coefficients alone.
"""

import math

import numpy as np

from surefoot.engines.compiling import kernel


@kernel()
def _standard(contexts, masses, constant):
    """Return the columns that vary, in standard deviations, which they are, and their spreads."""
    n, s = contexts.shape
    total = masses.sum()
    scaled, spreads, columns = np.empty((n, s)), np.empty(s), np.empty(s, dtype=np.int64)
    count = 0
    for j in range(s):
        mean, largest, square = 0.0, 0.0, 0.0
        for i in range(n):
            mean += masses[i] * contexts[i, j]
            largest = max(largest, abs(contexts[i, j]))
        mean /= total
        for i in range(n):
            square += masses[i] * (contexts[i, j] - mean) ** 2
        spread = math.sqrt(square / total)
        if spread > constant * largest:
            for i in range(n):
                scaled[i, count] = (contexts[i, j] - mean) / spread
            spreads[count], columns[count] = spread, j
            count += 1
    return np.ascontiguousarray(scaled[:, :count]), spreads[:count], columns[:count]


@kernel()
def _many_levels(scaled, looked_at):
    """Return 1 for columns with a value between the least and the largest, and 0 for flags."""
    found = np.zeros(scaled.shape[1])
    for j in range(scaled.shape[1]):
        some = scaled[:looked_at, j]
        least, most = some.min(), some.max()
        for value in some:
            if least < value < most:
                found[j] = 1.0
    return found


@kernel()
def _decomposed(features, outcomes, masses, rank):
    """Return U, S and V of the centred, weighted features, and the outcomes along U and beside it."""
    root, share = np.sqrt(masses), masses / masses.sum()
    centred = (features - share @ features) * root.reshape(-1, 1)
    squares, vectors = np.linalg.eigh(centred.T @ centred)
    kept = squares > rank * max(squares[-1], 1e-300)
    singular, right = np.sqrt(squares[kept]), np.ascontiguousarray(vectors[:, kept])
    left = centred @ right / singular
    outcome = (outcomes - share @ outcomes) * root
    projected = np.ascontiguousarray(left.T) @ outcome
    outside = outcome - left @ projected
    return singular, right, projected, outside @ outside


@kernel()
def average_coefficients(contexts, outcomes, masses, count, strengths, limits):
    """Return the coefficients of a linear forecast, averaged by the evidence of each strength.

    Parameters
    ----------
    contexts, outcomes, masses
        Shapes (n, s), (n,) and (n,).
    count
        How many observations the masses stand for.
    strengths
        How much each coefficient may differ, a, and how much all may have in common, b.
    limits
        Spreads of columns, in shares of their size, that are rounding; squared singular values, in
        shares of the largest, that are; the log probability below the best that is left out; and the
        rows that tell flags from numbers.
    """
    (each, common), (constant, rank, least, looked_at) = strengths, limits
    scaled, spreads, columns = _standard(contexts, masses, constant)
    theta = np.zeros(contexts.shape[1])
    if len(columns) == 0:
        return theta
    unit = math.sqrt(len(columns))
    singular, right, projected, outside = _decomposed(scaled / unit, outcomes, masses, rank)
    joint = _many_levels(scaled, looked_at)
    shared = singular * (joint @ right)
    keep = np.empty((len(each), len(singular)))
    evidence, pulls = np.empty((len(each), len(common))), np.empty((len(each), len(common)))
    for k in range(len(each)):
        logs, overlap, along, square = 0.0, 0.0, 0.0, outside
        for r in range(len(singular)):
            raised = each[k] * singular[r] ** 2
            keep[k, r] = 1.0 / (1.0 + raised)
            logs -= 0.5 * math.log1p(raised)
            overlap += keep[k, r] * shared[r] ** 2
            along += keep[k, r] * shared[r] * projected[r]
            square += keep[k, r] * projected[r] ** 2
        for m in range(len(common)):
            share = common[m] / (1.0 + common[m] * overlap)
            left = max(square - share * along**2, 1e-300)
            pulls[k, m] = share * along
            evidence[k, m] = logs - 0.5 * math.log1p(common[m] * overlap)
            evidence[k, m] -= 0.5 * (count - 1.0) * math.log(left)
    best, whole, level = evidence.max(), 0.0, 0.0
    inner = np.zeros(len(singular))
    for k in range(len(each)):
        for m in range(len(common)):
            if evidence[k, m] <= best + least:
                continue
            likely = math.exp(evidence[k, m] - best)
            whole += likely
            for r in range(len(singular)):
                weight = keep[k, r] * (projected[r] - pulls[k, m] * shared[r])
                inner[r] += likely * each[k] * weight * singular[r]
                level += likely * common[m] * weight * shared[r]
    found = (right @ inner + level * joint) / whole / unit
    for k in range(len(columns)):
        theta[columns[k]] = found[k] / spreads[k]
    return theta
