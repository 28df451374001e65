r"""The best policy of least squares in a ball of order 2, by one equation in one unknown.

Where the worst case (sqrt(E[r^2]) + rho N(theta))^2 is least, its policy is that of ridge regression
with the penalty lambda = rho sqrt(E[r^2]) / N(theta). Both norms are known for every penalty once the
columns have been decomposed, so that a search for the penalty is all there is to do. Where no positive
penalty solves the equation, the policy of least norm that meets every row is the best one.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import optimize

from surefoot.certificates.squares import Squares, squares_lower, squares_of
from surefoot.engines.autodiff_forms import FormBatch, trained_parameters
from surefoot.policies import LinearParameters
from surefoot.problem import GeneralForm
from surefoot.typing import FloatArray

# Penalties to look at, in units of the largest second moment of the columns, and how close to come.
SMALLEST_PENALTY, LARGEST_PENALTY, PENALTY_TOL = 1e-13, 1e13, 1e-13
# Directions in which columns have a smaller share of their largest length are rounding.
RANK_SHARE = 1e-13


def best_squares(form: GeneralForm) -> tuple[LinearParameters, FloatArray]:
    """Return the best policy in the user's units, and slopes that prove it.

    The form is one for which ``why_not_squares`` has no reason.
    """
    squares = squares_of(form)
    lengths = np.linalg.norm(squares.free, axis=0)
    free = squares.free / np.where(lengths > 0.0, lengths, 1.0)
    inverse = np.linalg.pinv(free, rcond=RANK_SHARE) if free.size else free.T

    def without_free(columns: FloatArray) -> FloatArray:
        left = columns - free @ (inverse @ columns)
        return np.asarray(left - free @ (inverse @ left))

    rows, target = without_free(squares.penalised), without_free(squares.target)
    theta, residuals = _ridge(squares, rows, target)
    errors = squares.target - squares.penalised @ theta
    fixed = (inverse @ errors) / np.where(lengths > 0.0, lengths, 1.0)
    return _user_parameters(form, theta, fixed), residuals


def _ridge(squares: Squares, rows: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return theta of the penalised columns, and slopes that prove most of what is known."""
    if not rows.size or squares.radius == 0.0:
        return np.zeros(rows.shape[1]), -target
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    kept = sizes > RANK_SHARE * max(float(sizes.max(initial=0.0)), 1e-300)
    left, sizes, right = left[:, kept], sizes[kept], right[kept]
    along = left.T @ target
    outside = target - left @ along
    beyond = float(np.linalg.norm(outside))

    def norms(penalty: float) -> tuple[float, float]:
        """Return sqrt(E[r^2]) and N(theta) of ridge regression."""
        shares = penalty / (sizes**2 + penalty)
        theta = float(np.linalg.norm(along * (1.0 - shares) / sizes)) if sizes.size else 0.0
        return math.hypot(beyond, float(np.linalg.norm(along * shares))), math.hypot(
            theta, squares.still
        )

    def excess(logarithm: float) -> float:
        root, norm = norms(math.exp(logarithm))
        return math.exp(logarithm) * norm - squares.radius * root

    unit = float(sizes.max(initial=0.0)) ** 2
    if unit == 0.0:
        return np.zeros(rows.shape[1]), -target
    ends = math.log(SMALLEST_PENALTY * unit), math.log(LARGEST_PENALTY * unit)
    if excess(ends[0]) >= 0.0:
        penalty = 0.0 if beyond <= RANK_SHARE * float(np.linalg.norm(target)) else math.exp(ends[0])
    elif excess(ends[1]) <= 0.0:
        penalty = math.inf
    else:
        penalty = math.exp(float(optimize.brentq(excess, *ends, xtol=PENALTY_TOL)))
    if math.isinf(penalty):
        return np.zeros(rows.shape[1]), -target
    theta = right.T @ (along * sizes / (sizes**2 + penalty))
    # Where every row is met residuals are nothing, and this is the direction in which they vanish.
    slopes = [-(left @ (along / (sizes**2 + penalty)))]
    if penalty > 0.0:
        slopes[0] = slopes[0] * penalty - outside
    return theta, max((*slopes, -target), key=lambda one: squares_lower(squares, one))


def _user_parameters(form: GeneralForm, theta: FloatArray, fixed: FloatArray) -> LinearParameters:
    count, constant = form.n_features, int(getattr(form.policy, "intercept", True))
    moving = form.movable[:count] & (form.radius > 0.0)
    full = np.zeros(count)
    full[moving] = theta / form.scale[:count][moving]
    full[~moving] = fixed[constant:]
    return LinearParameters(full[:, None], fixed[:constant] if constant else np.zeros(1))


def closed_squares(batch: FormBatch, numbers: Sequence[int], trained: Any) -> Any:
    """Return policies of a batch with the best ones of some of its problems in their places."""
    leaves, tree = batch.engine.jax.tree.flatten(trained)
    leaves = [np.array(leaf) for leaf in leaves]
    for k in numbers:
        form = batch.forms[k]
        policy = trained_parameters(form, best_squares(form)[0])
        best = {"policy": policy, "auxiliary": np.zeros(0)}
        for leaf, one in zip(leaves, batch.engine.jax.tree.leaves(best), strict=True):
            leaf[k] = one
    return tree.unflatten(leaves)
