"""Quantile regression as a linear program: any vertex, its slopes, and what is known of others."""

from typing import Any, NamedTuple

import highspy
import numpy as np
from scipy import sparse
from scipy.linalg import lstsq
from scipy.optimize import linprog

from surefoot.ambiguity import AffineRows
from surefoot.costs import Pieces
from surefoot.exceptions import SurefootError
from surefoot.typing import FloatArray, IntArray

# A slope, a residual or a gradient this close to its bound (relatively) is taken to be there.
BOUND_TOL = 1e-7


class Vertex(NamedTuple):
    """A policy of least cost, and slopes that prove it: one for each row, in [-b w, h w]."""

    theta: FloatArray
    intercept: float
    slopes: FloatArray


def quiet_highs(feasibility: float) -> Any:
    """Return an empty program for HiGHS, which says nothing and keeps to so much of feasibility."""
    highs: Any = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        highs.setOptionValue(name, feasibility)
    return highs


def add_rows(
    highs: Any, columns: IntArray, entries: FloatArray, lower: FloatArray, upper: FloatArray
) -> None:
    """Add rows to a program: ``columns`` and ``entries`` have one row for each."""
    starts = np.arange(0, columns.size, columns.shape[1], dtype=np.int32)
    highs.addRows(len(columns), lower, upper, columns.size, starts,
                  columns.astype(np.int32).ravel(), entries.ravel())  # fmt: skip


def solve_program(rows: AffineRows, l1: float) -> Vertex:
    r"""Return a vertex of the linear program, whichever HiGHS meets first.

    .. math:: \min \sum_i w_i (h p_i + b q_i) + \lambda \sum_j (\theta^+_j + \theta^-_j)
              \quad\text{s.t.}\quad X (\theta^+ - \theta^-) + t - p + q = y

    A cost of more than two lines has a bounded p or q for each of its segments.

    Theta is split in two even where lambda = 0: HiGHS took 13 times as long with free columns
    (n = 500, s = 1000).

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 3.0])
    >>> rows = AffineRows(X, y, np.full(3, 1 / 3), True, Pieces.kinked(1.0, 1.0), 0.0 * y, np.ones(1))
    >>> vertex = solve_program(rows, 0.0)
    >>> bool(abs(X[:, 0] * vertex.theta[0] + vertex.intercept - y).max() < 1e-9)
    True
    """
    X, y, weights, pieces, intercept = (
        rows.contexts, rows.outcomes, rows.weights, rows.pieces, rows.intercept
    )  # fmt: skip
    n, s = X.shape
    # Columns and outcomes in their own units keep the tolerances of HiGHS relative.
    scale = np.abs(X).max(axis=0)
    scale[scale == 0] = 1.0
    unit = float(np.abs(y).max()) or 1.0
    eye, ones = sparse.eye_array(n), np.ones((n, 1 if intercept else 0))
    origin, segments = segments_of(pieces)
    signs = [-one.side * eye for one in segments]
    matrix = sparse.hstack([X / scale, -X / scale, ones, *signs], format="csc")
    penalties = l1 / scale
    mass = weights * n  # of order one, for the same reason
    objective = np.concatenate([
        n * penalties, n * penalties, np.zeros(ones.shape[1]), *[one.slope * mass for one in segments],
    ]) / pieces.steepest  # fmt: skip
    lowest, highest = np.zeros(len(objective)), np.full(len(objective), np.inf)
    lowest[2 * s : 2 * s + ones.shape[1]] = -np.inf
    for k, one in enumerate(segments):
        first = 2 * s + ones.shape[1] + k * n
        highest[first : first + n] = one.width / unit
    bounds, target = np.column_stack([lowest, highest]), (y + origin) / unit
    result = linprog(objective, A_eq=matrix, b_eq=target, bounds=bounds, method="highs")
    if result.x is None:
        raise SurefootError(f"The linear program was not solved: {result.message}")
    theta = unit * (result.x[:s] - result.x[s : 2 * s]) / scale
    constant = unit * float(result.x[2 * s]) if intercept else 0.0
    slopes = -np.asarray(result.eqlin.marginals) * pieces.steepest / n
    return Vertex(theta, constant, slopes)


class Segment(NamedTuple):
    """A stretch of a piecewise linear cost, seen from its lowest point.

    ``side`` is 1 to the right of that point and -1 to the left, ``slope`` what a unit of way costs.
    """

    side: float
    slope: float
    width: float


def segments_of(pieces: Pieces) -> tuple[float, list[Segment]]:
    """Return where a cost is least, and its stretches to the right and to the left of that point.

    >>> origin, segments = segments_of(Pieces.kinked(up=0.2, down=1.0))
    >>> segments == [(1.0, 0.2, np.inf), (-1.0, 1.0, np.inf)]
    True
    """
    kinks, slopes = pieces.kinks, pieces.slopes
    first = next(k for k, slope in enumerate(slopes) if slope > 0.0)  # the first line that rises
    right = [
        Segment(1.0, slopes[k], float(kinks[k] - kinks[k - 1]) if k < len(kinks) else np.inf)
        for k in range(first, len(slopes))
    ]
    left = [
        Segment(-1.0, -slopes[k], float(kinks[k] - kinks[k - 1]) if k > 0 else np.inf)
        for k in range(first - 1, -1, -1)
    ]
    return float(kinks[first - 1]), [*right, *left]


def is_unique(rows: AffineRows, l1: float, vertex: Vertex) -> bool | None:
    """Return whether the policy is the only optimal one: True or False if proved, None if open.

    Every optimal policy fits the rows exactly whose slope is strictly between its bounds, and has
    zeros where the gradient is strictly below the strength. If that leaves one policy it is the
    only one. Without a penalty, dependent columns always leave more than one.
    """
    X, pieces = rows.contexts, rows.pieces
    n, s = X.shape
    matrix = np.hstack([X, np.ones((n, int(rows.intercept)))])
    if l1 == 0 and (n < matrix.shape[1] or np.linalg.matrix_rank(matrix) < matrix.shape[1]):
        return False
    if not pieces.two:  # a slope between two lines in the middle may be strictly between or not
        return None
    slopes = vertex.slopes / rows.weights
    tol = BOUND_TOL * pieces.steepest
    fitted = (slopes > -pieces.down + tol) & (slopes < pieces.up - tol)
    used = np.ones(matrix.shape[1], dtype=bool)
    used[:s] = np.abs(X.T @ vertex.slopes) >= l1 * (1.0 - BOUND_TOL)
    system = matrix[np.ix_(fitted, used)]
    if len(system) < system.shape[1]:
        return None
    return True if np.linalg.matrix_rank(system) == system.shape[1] else None


def least_norm(X: FloatArray, decisions: FloatArray, *, intercept: bool) -> tuple[FloatArray, float]:
    """Return the policy of least ||theta||_2 with these decisions (nearest ones, if none has them).

    >>> least_norm(np.array([[1.0, 1.0]]), np.array([2.0]), intercept=False)[0].round(12)
    array([1., 1.])
    """
    # The mean of the equations settles the intercept, and leaves theta to the centred ones.
    centre = X.mean(axis=0) if intercept else np.zeros(X.shape[1])
    level = float(decisions.mean()) if intercept else 0.0
    # A complete orthogonal factorisation: many times faster than singular values, and as exact.
    # Centred rows always depend on each other: what rounding leaves of that is cut off.
    cutoff = 10.0 * max(X.shape) * np.finfo(np.float64).eps
    theta = lstsq(X - centre, decisions - level, cond=cutoff, lapack_driver="gelsy")[0]
    return theta, level - float(centre @ theta) if intercept else 0.0
