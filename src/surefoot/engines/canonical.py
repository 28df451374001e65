"""The coordinates in which a free affine problem is easiest to solve.

Two changes of variables leave the worst case as it is. Parameters of columns that cannot move are
free, so movable columns may be projected off them (centring is the special case of an intercept).
The penalty of the movable parameters is their Euclidean norm, so movable columns may be rotated: along
the principal axes each coordinate gets a step of its own, and n < s rows need only n coordinates.
"""

from dataclasses import dataclass

import numpy as np

from surefoot.ambiguity import AffineForm, WassersteinForm
from surefoot.typing import BoolArray, FloatArray

# Directions with less than this share of the largest variance are rounding, not data.
RANK_SHARE = 1e-13
# A direction of columns without a penalty whose size is a smaller share of the largest is rounding.
BASIS_SHARE = 1e-13
# Steps along a principal axis go with 1/sqrt(variance + this share of the largest variance).
DAMPING_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class Canonical:
    """Rows in canonical coordinates: first the movable ones, then those without a penalty.

    Attributes
    ----------
    rows
        Shape (rows, coordinates), C-contiguous.
    n_penalised
        How many leading coordinates pay the norm.
    movable
        Which columns of the form they came from.
    metric
        Shape (coordinates,): relative step sizes.
    spans_constant
        Whether some combination of the unpenalised coordinates is the constant 1.
    """

    rows: FloatArray
    n_penalised: int
    movable: BoolArray
    metric: FloatArray
    spans_constant: bool
    rotation: FloatArray
    from_basis: FloatArray
    projection: FloatArray
    constant: FloatArray

    def parameters(self, form: WassersteinForm, coordinates: FloatArray) -> tuple[FloatArray, float]:
        """Return (theta, intercept) in the columns of the form."""
        penalised = self.rotation @ coordinates[: self.n_penalised]
        unpenalised = self.from_basis @ coordinates[self.n_penalised :] - self.projection @ penalised
        theta = np.zeros(len(self.movable))
        theta[self.movable] = penalised
        theta[~self.movable] = unpenalised[int(form.intercept) :]
        return theta, float(unpenalised[0]) if form.intercept else 0.0


def canonical(form: WassersteinForm, *, penalised: bool = True) -> Canonical:
    """Return the canonical coordinates of a form with free support; at radius zero unpenalised."""
    weights = form.weights
    # At radius zero no column has a penalty, so that all of them may be made orthonormal.
    moving = form.movable if penalised or not lopsided(form) else np.zeros_like(form.movable)
    free = bool(moving.all())
    movable = form.contexts if free else form.contexts[:, moving]
    raw = form.contexts[:, ~moving]
    if form.intercept:
        raw = np.column_stack([np.ones(len(raw)), raw])
    basis, from_basis = _orthonormal(raw, weights, constant=form.intercept)
    projection = from_basis @ ((basis * weights[:, None]).T @ movable)
    if free and form.intercept:  # raw is the constant alone: this is centring
        movable = movable - projection
    elif basis.shape[1]:
        movable = movable - raw @ projection
    rotation, variances, typical = _axes(movable, weights)
    rows = np.empty((len(weights), len(variances) + basis.shape[1]))
    np.matmul(movable, rotation, out=rows[:, : len(variances)])
    rows[:, len(variances) :] = basis
    damping = DAMPING_SHARE * typical + np.finfo(np.float64).tiny
    constant = basis.T @ weights
    return Canonical(
        rows=rows,
        n_penalised=len(variances),
        movable=moving,
        metric=np.concatenate([1.0 / np.sqrt(variances + damping), np.ones(basis.shape[1])]),
        spans_constant=bool(np.abs(basis @ constant - 1.0).max(initial=0.0) < 1e-9)
        and basis.shape[1] > 0,
        rotation=rotation,
        from_basis=from_basis,
        projection=projection,
        constant=constant,
    )


def _orthonormal(
    raw: FloatArray, weights: FloatArray, *, constant: bool
) -> tuple[FloatArray, FloatArray]:
    """Basis of the column space, orthonormal under the weights, and the map that makes it.

    Columns are centred (if the first is constant) and count alike, whatever their units.
    """
    if raw.shape[1] == 0:
        return raw, np.zeros((0, 0))
    mean = weights @ raw * (np.arange(raw.shape[1]) > 0) if constant else np.zeros(raw.shape[1])
    centred = raw - mean
    # What centring leaves of a constant column is rounding.
    centred[:, np.abs(centred).max(axis=0) <= 1e-13 * np.abs(raw).max(axis=0)] = 0.0
    from_basis = orthonormal_map(centred, weights)
    basis = centred @ from_basis
    if constant:
        from_basis[0] -= mean @ from_basis
    return basis, from_basis


def lopsided(form: AffineForm) -> bool:
    """Whether some direction of the columns varies so much less than others that steps would crawl."""
    centre = form.weights @ form.contexts if form.intercept else 0.0
    columns = (form.contexts - centre) * np.sqrt(form.weights)[:, None]
    sizes = np.linalg.svd(columns, compute_uv=False)
    sizes = sizes[sizes > BASIS_SHARE * sizes.max(initial=0.0)]
    return bool(len(sizes) and sizes.min() ** 2 < DAMPING_SHARE * sizes.max() ** 2)


def orthonormal_map(columns: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the map to a basis of the columns that is orthonormal under the weights."""
    units = np.sqrt(weights @ columns**2)
    units = np.where(units > 0.0, units, np.inf)
    scaled = columns / units * np.sqrt(weights)[:, None]
    _, sizes, right = np.linalg.svd(scaled, full_matrices=False)
    kept = sizes > sizes[0] * BASIS_SHARE
    return np.asarray(right[kept].T / sizes[kept] / units[:, None])


def _axes(columns: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Rotation, second moments along the new axes, and the largest of them but for the mean's.

    Without an intercept the mean of the rows can be far longer than their spread. It then gets an
    axis of its own, so that the spread's axes are found among numbers of their own size.
    """
    mean = weights @ columns
    length = float(np.linalg.norm(mean))
    spread = float(weights @ np.einsum("ij,ij->i", columns, columns)) - length**2
    if length**2 <= max(spread, 0.0) or columns.shape[1] == 1:
        rotation, variances = _principal_axes(columns, weights)
        return rotation, variances, float(variances.max(initial=0.0))
    axis = mean / length
    along = columns @ axis
    rest = columns - np.outer(along, axis)
    rotation, variances = _principal_axes(rest, weights)
    rotation -= np.outer(axis, axis @ rotation)
    moments = np.append(variances, weights @ along**2)
    return np.column_stack([rotation, axis]), moments, float(variances.max(initial=0.0))


def _principal_axes(columns: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rotation to the principal axes of the weighted columns, and the variances along them.

    From the smaller of the two Gram matrices; directions without variance are dropped.
    """
    n, s = columns.shape
    # A plain product of a matrix with its own transpose takes half the work, so scale by a number
    # where the weights are equal.
    equal = np.ptp(weights) == 0.0
    scaled = columns if equal else columns * np.sqrt(weights)[:, None]
    factor = float(weights[0]) if equal else 1.0
    variances, vectors = np.linalg.eigh(factor * (scaled.T @ scaled if n > s else scaled @ scaled.T))
    kept = variances > RANK_SHARE * float(variances.max(initial=0.0))
    variances, vectors = variances[kept], vectors[:, kept]
    if n > s:
        return vectors, variances
    return np.sqrt(factor) * (scaled.T @ vectors) / np.sqrt(variances), variances
