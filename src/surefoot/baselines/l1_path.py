r"""Quantile regression with an l1 penalty, at one strength after another.

.. math:: \min_{\theta, t} \sum_i w_i \psi(\theta^\top x_i + t - y_i) + \lambda \|\theta\|_1

Its dual is a linear program in the slopes u of the rows' costs, of which theta are the multipliers:

.. math:: \min_u y^\top u \quad\text{s.t.}\quad |X^\top u| \le \lambda, \; 1^\top u = 0, \;
          -b w \le u \le h w

Another strength changes nothing but bounds, so that HiGHS goes on from its last basis.
"""

from typing import Any

import highspy
import numpy as np

from surefoot.ambiguity import AffineRows
from surefoot.baselines.linear_program import Vertex, add_rows, quiet_highs, solve_program
from surefoot.typing import FloatArray

# Feasibility in HiGHS, and by how much a column must be too steep to become a row of the program.
FEASIBILITY, STEEP = 1e-10, 1e-9
# So many columns become rows at a time, the steepest first: most of many columns never do.
NEW_ROWS = 30


def largest_strength(rows: AffineRows) -> float:
    """Return a strength that zeroes theta: that of the steepest column at the best constant."""
    X, y, pieces = rows.contexts, rows.outcomes, rows.pieces
    slopes = rows.weights * (rows.constant_order()[1] if rows.intercept else pieces.slope_at(-y))
    if rows.intercept:  # slopes sum to zero, so that digits of far columns can be kept
        X = X - X.mean(axis=0)
        if pieces.two:  # of tied rows in the middle one takes what is left, and not each a share
            order = np.argsort(y, kind="stable")
            high, low = pieces.up * rows.weights[order], -pieces.down * rows.weights[order]
            level = np.cumsum(high) - high + np.cumsum(low[::-1])[::-1]
            middle = max(int(np.searchsorted(level, 0.0, side="right")) - 1, 0)
            slopes[order] = np.where(np.arange(len(y)) < middle, high, low)
            slopes[order[middle]] -= slopes.sum()
    return float(np.abs(X.T @ slopes).max())


def l1_path(rows: AffineRows, strengths: FloatArray) -> list[Vertex]:
    """Return a solution for each strength; falling ones are found quickest.

    Examples
    --------
    >>> from surefoot.costs import Pieces
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 3.0])
    >>> rows = AffineRows(X, y, np.full(3, 1 / 3), True, Pieces.kinked(1.0, 1.0), 0.0 * y, np.ones(1))
    >>> [vertex.theta.round(12) for vertex in l1_path(rows, np.array([1.0, 0.1]))]
    [array([0.]), array([1.])]
    """
    X, y, pieces, constant = rows.contexts, rows.outcomes, rows.pieces, int(rows.intercept)
    if not pieces.two:  # slopes between the outermost lines have a cost of their own
        return [solve_program(rows, float(l1)) for l1 in strengths]
    n, s = X.shape
    # Centred and scaled columns: the strengths take the scale over, the intercept the centre.
    centre = X.mean(axis=0) if constant else np.zeros(s)
    scale = np.abs(X - centre).max(axis=0)
    # A constant column is nothing but rounding after the intercept has taken its value.
    still = scale <= 1e-13 * np.abs(X).max(axis=0)
    scale = np.where(still, 1.0, scale)
    columns = np.where(still, 0.0, (X - centre) / scale).T
    unit, mass = float(np.abs(y).max()) or 1.0, rows.weights * n / pieces.steepest
    highs, every = quiet_highs(FEASIBILITY), np.arange(n, dtype=np.int32)
    highs.setOptionValue("presolve", "off")  # it would forget the last basis
    highs.addVars(n, -pieces.down * mass, pieces.up * mass)
    highs.changeColsCost(n, every, y / unit)
    if constant:
        highs.addRow(0.0, 0.0, n, every, np.ones(n))
    used, vertices = np.zeros(0, dtype=np.int64), []
    for l1 in strengths:
        most = n * l1 / scale / pieces.steepest
        for place, j in enumerate(used):
            highs.changeRowBounds(constant + place, -most[j], most[j])
        while (slopes := _solved(highs)) is not None:
            excess = np.abs(columns @ slopes) - most
            excess[used] = -np.inf
            new = np.argsort(-excess)[:NEW_ROWS]
            new = new[excess[new] > STEEP]
            if not len(new):
                break
            add_rows(highs, np.tile(every, (len(new), 1)), columns[new], -most[new], most[new])
            used = np.append(used, new)
        if slopes is None:
            vertices.append(solve_program(rows, float(l1)))
            continue
        duals, theta = unit * np.array(highs.getSolution().row_dual), np.zeros(s)
        theta[used] = duals[constant:] / scale[used]
        level = float(duals[0] - centre @ theta) if constant else 0.0
        vertices.append(Vertex(theta, level, slopes * pieces.steepest / n))
    return vertices


def _solved(highs: Any) -> FloatArray | None:
    """Return the slopes of the best solution, None where HiGHS finds none."""
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(highs.getSolution().col_value)
