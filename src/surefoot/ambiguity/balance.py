"""Slopes that no policy can gain against: their products with some columns vanish.

If E[u x] = 0 over all columns (and E[u] = 0 with an intercept), slopes u need no move of any row to
prove E[v] - E[u y]. Parameters without a penalty, of columns that never move or at radius zero, ask for
such slopes.
"""

import numpy as np

from surefoot.ambiguity.form import AffineRows
from surefoot.typing import FloatArray

# Passes of "clip to the box, project on the columns" before the final exact repair.
PROJECTIONS = 50
# Steps of Newton's method to the shift that balances slopes. It is at the root after a few, or creeps
# from kink to kink, and then halvings of the interval lead there.
NEWTON_STEPS, HALVINGS = 20, 50
# A direction whose size is a smaller share of the largest is taken to depend on the others: no larger
# one, because a policy may use any that is not rounding...
RANK_SHARE = 1e-14
# ...and is looked for by singular values where a factor's diagonal falls below this share.
DOUBTFUL_SHARE = 1e-6
# Columns that depend on each other exactly leave directions of up to this share behind.
ROUNDED_SHARE = 2e-15
# A bound that leaves a direction out speaks of policies whose parameters, in spreads of the outcome for
# each spread of a column, are no larger than this.
LARGEST_PARAMETER = 1e8


def balanced(rows: AffineRows, slopes: FloatArray, columns: FloatArray) -> FloatArray:
    """Return slopes in [-b, h] whose weighted products with the columns (and with 1) vanish.

    The constant counts as a column when the intercept is free.
    """
    up, down, weights = rows.pieces.up, rows.pieces.down, rows.weights
    if columns.shape[1] == 0:
        return with_mean(slopes, weights, (-down, up), 0.0) if rows.intercept else slopes
    root = np.sqrt(weights)
    basis = _column_basis(_weighted(rows, columns))
    for _ in range(PROJECTIONS):
        slopes = _project(slopes, basis, root)
        outside = max((slopes - up).max(), (-down - slopes).max())
        if outside <= 0.0:
            break
        slopes = np.clip(slopes, -down, up)
    slopes = _project(slopes, basis, root)
    # Zero slopes balance and lie inside, so shrinking towards them repairs what is left.
    excess = max(slopes.max() / up, -slopes.min() / down, 1.0)
    return np.asarray(slopes / excess)


def balanced_value(rows: AffineRows, slopes: FloatArray) -> float:
    """Return E[v] - E[u y]: what slopes that balance with all columns prove without any move."""
    levels = rows.pieces.levels_at(slopes)
    return float(rows.weights @ levels) - float((rows.weights * slopes) @ rows.outcomes)


def left_out(rows: AffineRows, columns: FloatArray) -> float:
    """Return what a policy could gain by directions of the columns that balancing leaves out.

    Columns that differ by less than ``RANK_SHARE`` of their spread cannot be balanced in floating
    point. A policy can still tell them apart, by parameters beyond any that make sense: this is the
    gain of the largest that a bound speaks of, zero where no direction is left out.
    """
    if columns.shape[1] == 0:
        return 0.0
    matrix = _weighted(rows, columns)
    if _independent(np.linalg.qr(matrix)[1]):
        return 0.0
    sizes = np.linalg.svd(matrix, compute_uv=False)
    small = sizes[(sizes <= RANK_SHARE * sizes[0]) & (sizes > ROUNDED_SHARE * sizes[0])]
    return float(LARGEST_PARAMETER * small.max(initial=0.0) * rows.pieces.steepest)


def _weighted(rows: AffineRows, columns: FloatArray) -> FloatArray:
    """Return columns of unit size under the weights; centred ones, far from zero, keep their digits."""
    if rows.intercept:
        columns = np.column_stack([np.ones(len(columns)), columns - rows.weights @ columns])
    sizes = np.maximum(np.sqrt(rows.weights @ columns**2), np.finfo(np.float64).tiny)
    return np.asarray(columns / sizes * np.sqrt(rows.weights)[:, None])


def _independent(triangle: FloatArray) -> bool:
    """Whether the factor of some columns shows at a glance that none depends on the others."""
    sizes = np.abs(np.diag(triangle))
    return bool(len(sizes) == triangle.shape[1] and sizes.min() > DOUBTFUL_SHARE * sizes.max())


def _column_basis(matrix: FloatArray) -> FloatArray:
    """Orthonormal basis of the column space; dependent columns are dropped."""
    basis, triangle = np.linalg.qr(matrix)
    if _independent(triangle):
        return np.asarray(basis)
    left, sizes, _ = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left[:, sizes > RANK_SHARE * sizes[0]])


def _project(slopes: FloatArray, basis: FloatArray, root: FloatArray) -> FloatArray:
    weighted = root * slopes
    return np.asarray((weighted - basis @ (basis.T @ weighted)) / root)


def with_mean(
    slopes: FloatArray, weights: FloatArray, ends: tuple[float, float], wanted: float
) -> FloatArray:
    """Shift all slopes by one number, clipped to both ends, so that their weighted mean is as wanted.

    The mean is piecewise linear in the shift. It must be right to the last digits: no bound holds
    for slopes that do not balance.
    """
    (least, most), shift = ends, 0.0
    low, high = float(slopes.min() - most), float(slopes.max() - least)
    for number in range(NEWTON_STEPS + HALVINGS):
        shifted = np.clip(slopes - shift, least, most)
        mean = float(weights @ shifted) - wanted
        if abs(mean) <= 1e-15 * (most - least):
            break
        low, high = (shift, high) if mean > 0 else (low, shift)
        free = float(weights @ (np.abs(shifted - 0.5 * (most + least)) < 0.5 * (most - least)))
        guess = shift + mean / free if free > 0 else low
        newton = number < NEWTON_STEPS and low < guess < high
        shift = guess if newton else 0.5 * (low + high)
    return np.asarray(shifted)
