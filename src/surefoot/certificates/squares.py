r"""Both bounds of least squares in a ball of order 2: closed forms that are dual to each other.

With residuals r = theta'x + t - y, moves that cost ||dx||^2 + kappa dy^2 and N(theta)^2 =
||theta||^2 + 1 / kappa over the columns that may move, the worst case of w r^2 is

.. math:: w \, \bigl( \sqrt{E[r^2]} + \rho N(\theta) \bigr)^2

(Blanchet, Kang and Murthy 2019): the adversary moves every row along the same line, in proportion to
its residual. For every v with E[v^2] <= 1 and E[v x] = 0 over the parameters without a penalty (the
intercept, columns that stay), and g = E[v x] / rho over the others, ||g|| <= 1, no policy has a worst
case below

.. math:: w \, \bigl( \rho \sqrt{(1 - \|g\|^2) / \kappa} - E[v y] \bigr)_+^2

because both norms are at least their scalar products with v and with (-g, sqrt(1 - ||g||^2)). Unlike a
single distribution in the ball, that also says something where policies can meet every row.
"""

import math
from typing import NamedTuple

import numpy as np

from surefoot.ambiguity.form import FLOOR_SHARE
from surefoot.certificates.certificate import Certificate, make_certificate
from surefoot.costs import Quadratic
from surefoot.costs.quadratic import FARTHEST
from surefoot.policies import Linear, LinearParameters
from surefoot.problem import GeneralForm
from surefoot.typing import FloatArray

# Directions in which columns of length one are shorter than this are rounding.
RANK = 1e-14


# Residuals that are a smaller share of outcomes than this are rounding.
ROUNDING = 1e-12


class Squares(NamedTuple):
    """Least squares in a ball: rows times the roots of their weights.

    Attributes
    ----------
    penalised
        Columns that the adversary may move, each in units of its scale.
    free
        The constant and columns that stay: their parameters have no penalty.
    target
        Outcomes less what the policy is centred on.
    weight, radius, still
        w, rho and 1 / sqrt(kappa).
    """

    penalised: FloatArray
    free: FloatArray
    target: FloatArray
    weight: float
    radius: float
    still: float

    @property
    def gap_floor(self) -> float:
        """The size below which a gap stops being relative: a share of what a constant costs."""
        alone = self.target - _projected(self.free[:, :1], self.target)
        nothing = float(self.target @ self.target)
        return self.weight * max(FLOOR_SHARE * float(alone @ alone), ROUNDING**2 * nothing)


def why_not_squares(form: GeneralForm) -> str | None:
    """Return why a form is not least squares in a ball of order 2, or None."""
    policy = form.policy
    if not isinstance(form.cost, Quadratic) or form.n_decisions != 1:
        return "it needs the quadratic cost of one product"
    if not isinstance(policy, Linear) or policy.decisions is not None:
        return "it needs a linear policy without limits"
    if form.radius > 0.0 and (form.order != 2 or form.boxed):
        return "it needs a ball of order 2 without a support, or none"
    return None if form.exact_rows else "it needs a nominal of rows"


def squares_of(form: GeneralForm) -> Squares:
    """Return a form for which ``why_not_squares`` has no reason."""
    assert isinstance(form.cost, Quadratic)
    assert isinstance(form.policy, Linear)
    count = form.n_features
    features, root = form.contexts[:, :count], np.sqrt(form.weights)[:, None]
    fixed = form.contexts[:, count:].sum(axis=1)
    moving = form.movable[:count] & (form.radius > 0.0)
    constant = np.ones((len(root), int(form.policy.intercept)))
    return Squares(
        penalised=root * features[:, moving] / form.scale[:count][moving],
        free=root * np.hstack([constant, features[:, ~moving]]),
        target=root[:, 0] * (form.outcomes[:, 0] - fixed),
        weight=float(np.max(form.cost.weight)),
        radius=form.radius,
        still=1.0 / math.sqrt(form.outcome_cost) if form.outcomes_move else 0.0,
    )


def squares_certificate(
    form: GeneralForm, parameters: LinearParameters, slopes: FloatArray
) -> Certificate:
    """Certify a policy by the closed form of its worst case.

    ``slopes`` are v for the lower bound, one for each row; they are not trusted, and any will do.
    """
    squares = squares_of(form)
    upper, lower = squares_upper(form, squares, parameters), squares_lower(squares, slopes)
    return make_certificate(upper, lower, squares.gap_floor, "exact")


def squares_upper(form: GeneralForm, squares: Squares, parameters: LinearParameters) -> float:
    """Return the worst case of a policy, which is exact."""
    count, theta = form.n_features, parameters.theta[:, 0]
    decisions = form.contexts[:, :count] @ theta + parameters.intercept[0]
    residuals = decisions + form.contexts[:, count:].sum(axis=1) - form.outcomes[:, 0]
    norm = math.hypot(float(np.linalg.norm((theta * form.scale[:count])[form.movable[:count]])),
                      squares.still)  # fmt: skip
    root = math.sqrt(float(form.weights @ residuals**2))
    return squares.weight * (root + squares.radius * norm) ** 2


def squares_lower(squares: Squares, slopes: FloatArray) -> float:
    """Return what no policy can undercut, by slopes v times the roots of the weights."""
    v = np.asarray(slopes, dtype=np.float64)
    for _ in range(2):
        v = v - _projected(squares.free, v)
    size, rest = float(np.linalg.norm(v)), squares.radius * squares.still
    if not 0.0 < size < math.inf:
        return squares.weight * rest**2
    v = v / size
    gain, share, held = -float(v @ squares.target), 1.0, 1.0
    gradient_norm = float(np.linalg.norm(squares.penalised.T @ v)) / (squares.radius or 1.0)
    if gradient_norm > 0.0:
        # v is as long as the penalty of parameters lets it be, or as moves of the outcomes make best.
        best = gain / math.hypot(gain, rest * gradient_norm) if gain > 0.0 else 0.0
        share = min(1.0, best / gradient_norm)
        held = max(1.0 - (share * gradient_norm) ** 2, 0.0)
    value = share * (gain - _charge(squares, v)) + rest * math.sqrt(held)
    return squares.weight * max(value, rest) ** 2


def _charge(squares: Squares, v: FloatArray) -> float:
    """Return what rounding leaves of E[v x] over free columns, for parameters that are not absurd."""
    if not squares.free.size:
        return 0.0
    lengths = np.linalg.norm(squares.free, axis=0)
    columns = squares.free / np.where(lengths > 0.0, lengths, 1.0)
    best = float(np.abs(np.linalg.pinv(columns, rcond=RANK) @ squares.target).sum())
    size = max(float(np.linalg.norm(squares.target)), best)
    return float(np.abs(columns.T @ v).max()) * FARTHEST * size


def _projected(columns: FloatArray, vector: FloatArray) -> FloatArray:
    """Return the part of a vector that lies in the span of columns."""
    if not columns.size:
        return np.zeros_like(vector)
    lengths = np.linalg.norm(columns, axis=0)
    directions, sizes, _ = np.linalg.svd(
        columns / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False
    )
    basis = directions[:, sizes > RANK * len(sizes)]
    return np.asarray(basis @ (basis.T @ vector))
