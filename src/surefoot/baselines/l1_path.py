r"""The exact path of l1-penalised quantile regression, from the strength that zeroes theta down.

.. math:: \min_{\theta, t} \sum_i w_i \psi(\theta^\top x_i + t - y_i) + \lambda \|\theta\|_1

As lambda falls, the solution stays a vertex at which as many rows are fitted exactly as there are
columns in use (the intercept among them). The slopes u of the costs of those rows move linearly in
lambda, until one of them reaches its bound (-b w or h w) or the gradient of an idle column reaches
lambda; then the vertex moves along an edge until a residual or a parameter becomes zero. That is the
parametric simplex method (Li and Zhu, L1-norm quantile regression, 2008). One walk gives every
strength; a linear program has to be solved for each one.
"""

from dataclasses import dataclass

import numpy as np

from surefoot.baselines.basis import Basis
from surefoot.costs import Pieces
from surefoot.typing import FloatArray

# Parts of a direction below this share of its largest are rounding, not movement.
DIRECTION_TOL = 1e-11
# Rooms that differ by less than this share of the largest outcome are equal.
TIE_TOL = 1e-13
# The inverse is made afresh after so many exchanges.
REFRESH_EVERY = 250
# A walk took up to 4 (rows + columns) events in all trials; beyond this many times it goes in circles.
MOST_EVENTS = 40
# A point is accepted if its cost is this close to the dual bound, as a share of the best constant's.
GAP_TOL = 1e-7


class PathLostError(Exception):
    """Rounding or ties led the walk astray; the caller solves a linear program instead."""


@dataclass(frozen=True, eq=False)
class Vertex:
    """A solution at one strength.

    Attributes
    ----------
    theta, intercept
        The policy.
    slopes
        u, one for each row, in [-b w, h w]: a dual solution.
    """

    theta: FloatArray
    intercept: float
    slopes: FloatArray


def _shortest(room: FloatArray, closing: FloatArray, largest: float, slack: float) -> tuple[float, int]:
    """Return which part uses its room up first, and after what length; infinity if none closes.

    ``largest`` is the size of the direction, beside which ``closing`` may be rounding. Of parts that
    end within ``slack`` of each other the one that closes fastest is taken: it is the safest pivot.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = np.maximum(room, 0.0) / closing
    lengths[closing <= DIRECTION_TOL * largest] = np.inf
    length = float(lengths.min())
    if not np.isfinite(length):
        return np.inf, -1
    first = room <= length * closing + slack
    place = int(np.where(first & np.isfinite(lengths), closing, -np.inf).argmax())
    return length, place


class L1Path:
    """A walk down the strengths; ``descend`` goes on from where it stands.

    Parameters
    ----------
    X, y, weights
        Distinct rows; weights sum to one.
    pieces
        The slopes of the cost.
    intercept
        Whether there is one; it carries no penalty.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 3.0])
    >>> path = L1Path(X, y, np.full(3, 1 / 3), Pieces.kinked(up=1.0, down=1.0), intercept=True)
    >>> path.descend(path.strength).theta, path.descend(0.1).theta
    (array([0.]), array([1.]))
    """

    def __init__(
        self, X: FloatArray, y: FloatArray, weights: FloatArray, pieces: Pieces, *, intercept: bool
    ) -> None:
        n, s = X.shape
        # Centred and scaled columns: the penalty takes the scale over, the intercept the centre.
        self._centre = X.mean(axis=0) if intercept else np.zeros(s)
        columns = X - self._centre
        scale = np.abs(columns).max(axis=0)
        # A constant column is nothing but rounding after the intercept has taken its value.
        still = scale <= 1e-13 * np.abs(X).max(axis=0)
        self._scale = np.where(still, 1.0, scale)
        columns = np.where(still, 0.0, columns / self._scale)
        first = int(intercept)
        matrix = np.hstack([np.ones((n, first)), columns])
        self._first, self._y, self._pieces, self._weights = first, y, pieces, weights
        self._price = np.concatenate([np.zeros(first), 1.0 / self._scale])
        self._tiny = DIRECTION_TOL * self._price
        self._slack = TIE_TOL * float(np.abs(y).max())
        self._low, self._high = -pieces.down * weights, pieces.up * weights
        self._basis = Basis(matrix)
        self._parameters = np.zeros(matrix.shape[1])
        self._signs = np.zeros(matrix.shape[1])
        self._start()
        self._constant_cost = self._cost()
        self._events = 0

    def _start(self) -> None:
        """Stand where theta is zero: at the outcome quantile, or at zero without an intercept."""
        self._basis.size = 0
        if self._first:
            order = np.argsort(self._y, kind="stable")
            # The slopes sum to zero if rows below this one hold the upper bound, those above the lower.
            below = np.cumsum(self._high[order]) - self._high[order]
            above = np.cumsum(self._low[order][::-1])[::-1]
            place = max(int(np.searchsorted(below + above, 0.0, side="right")) - 1, 0)
            self._side = np.ones(len(order))
            self._side[order[place:]] = -1.0
            self._basis.grow(int(order[place]), 0)
        else:
            self._side = np.where(self._y < 0, 1.0, -1.0)
        self._strength = 0.0
        self._recompute()
        self._strength = float((np.abs(self._gradient[self._first :]) * self._scale).max())

    @property
    def strength(self) -> float:
        """Where the walk stands; at the start, a strength that zeroes theta."""
        return self._strength

    def _recompute(self) -> None:
        """Work out slopes, gradient, parameters and residuals from the basis alone."""
        basis = self._basis
        try:
            basis.refresh()
        except np.linalg.LinAlgError as error:
            raise PathLostError("The rows and columns in use depend on each other.") from error
        u = np.where(self._side > 0, self._high, self._low)
        u[basis.rows] = 0.0
        pull = self._price[basis.columns] * self._signs[basis.columns]
        u[basis.rows] = -(basis.column_block.T @ u + self._strength * pull) @ basis.inverse
        self._u, self._gradient = u, basis.matrix.T @ u
        self._parameters[:] = 0.0
        self._parameters[basis.columns] = basis.inverse @ self._y[basis.rows]
        self._residuals = basis.column_block @ self._parameters[basis.columns] - self._y
        self._residuals[basis.rows] = 0.0

    def descend(self, strength: float) -> Vertex:
        """Walk down to a strength and return the solution there."""
        most = MOST_EVENTS * sum(self._basis.matrix.shape)
        while self._strength > strength:
            if self._basis.size == len(self._y):
                # Every row is fitted exactly: smaller strengths change nothing but the dual scale.
                self._strength = strength
                break
            self._to_next_event(strength)
            if self._events > most:
                raise PathLostError(f"No end after {most} events.")
        self._recompute()
        self._check(strength)
        theta = self._parameters[self._first :] / self._scale
        constant = float(self._parameters[0] - self._centre @ theta) if self._first else 0.0
        return Vertex(theta, constant, self._u.copy())

    def _to_next_event(self, strength: float) -> None:
        basis = self._basis
        pull = self._price[basis.columns] * self._signs[basis.columns]
        along = pull @ basis.inverse  # how the slopes of fitted rows grow as the strength falls
        across = along @ basis.row_block  # and with them the gradient
        row_step, place = self._nearest_bound(along)
        column_step, column = self._nearest_column(across)
        step = max(min(row_step, column_step), 0.0)
        last = self._strength - step <= strength
        if last:
            step = self._strength - strength
        self._u[basis.rows] += step * along
        self._gradient += step * across
        self._strength = strength if last else self._strength - step
        if last:
            return
        if row_step <= column_step:
            self._release_row(place, 1.0 if along[place] > 0 else -1.0)
        else:
            self._take_column(column, -1.0 if self._gradient[column] > 0 else 1.0)
        self._events += 1
        if self._events % REFRESH_EVERY == 0:
            self._recompute()

    def _nearest_bound(self, along: FloatArray) -> tuple[float, int]:
        """How far the strength may fall before a slope of a fitted row reaches its bound."""
        if not len(along):
            return np.inf, -1
        rows = self._basis.rows
        slopes = self._u[rows]
        room = np.where(along > 0, self._high[rows] - slopes, slopes - self._low[rows])
        size = np.abs(along)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.maximum(room, 0.0) / size
        steps[size <= DIRECTION_TOL * size.max()] = np.inf
        place = int(steps.argmin())
        return float(steps[place]), place

    def _nearest_column(self, across: FloatArray) -> tuple[float, int]:
        """How far the strength may fall before it meets the gradient of an idle column."""
        # gradient + step * across = +-(strength - step) * price, on the side where they meet first.
        room = self._strength * self._price
        up, down = self._price + across, self._price - across
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = (room - self._gradient) / up
            steps[up <= self._tiny] = np.inf
            other = (room + self._gradient) / down
            other[down <= self._tiny] = np.inf
        np.minimum(steps, other, out=steps)
        steps[self._basis.columns] = np.inf
        column = int(steps.argmin())
        return float(steps[column]), column

    def _release_row(self, place: int, side: float) -> None:
        """A fitted row's slope is at its bound: let its residual grow to that side."""
        basis = self._basis
        row = int(basis.rows[place])
        turn = basis.inverse[:, place] * side
        length, blocker = self._walk_edge(turn, basis.column_block @ turn)
        self._residuals[row], self._side[row] = length * side, side
        self._u[row] = self._high[row] if side > 0 else self._low[row]
        if blocker >= 0:
            basis.swap_row(place, blocker)
            self._residuals[blocker] = 0.0
        else:
            column_place = -1 - blocker
            self._forget(int(basis.columns[column_place]))
            basis.shrink(place, column_place)

    def _take_column(self, column: int, sign: float) -> None:
        """An idle column's gradient has met the strength: let its parameter grow."""
        basis = self._basis
        combination = basis.combination(column)
        turn = -sign * combination
        change = basis.column_block @ turn + sign * basis.by_columns[:, column]
        length, blocker = self._walk_edge(turn, change, 1.0)
        self._parameters[column], self._signs[column] = length * sign, sign
        if blocker >= 0:
            basis.grow(blocker, column, combination)
            self._residuals[blocker] = 0.0
        else:
            place = -1 - blocker
            self._forget(int(basis.columns[place]))
            basis.swap_column(place, column, combination)

    def _forget(self, column: int) -> None:
        self._parameters[column] = self._signs[column] = 0.0

    def _walk_edge(self, turn: FloatArray, change: FloatArray, least: float = 0.0) -> tuple[float, int]:
        """Move parameters by ``turn`` and residuals by ``change`` until one of them is zero.

        Returns the length of the edge and what ended it: a row, or -1 - the place of a column. Sizes
        below ``least`` do not make a direction.
        """
        basis, columns = self._basis, self._basis.columns
        change[basis.rows] = 0.0
        largest = max(float(np.abs(change).max()), float(np.abs(turn).max(initial=0.0)), least)
        length, blocker = _shortest(
            self._side * self._residuals, -self._side * change, largest, self._slack
        )
        if basis.size:
            signs = self._signs[columns]
            room = signs * self._parameters[columns]
            by_column, place = _shortest(room, -signs * turn, largest, self._slack)
            if by_column < length:
                length, blocker = by_column, -1 - place
        if not np.isfinite(length):
            raise PathLostError("An edge of the path has no end.")
        self._parameters[columns] += length * turn
        self._residuals += length * change
        return length, blocker

    def _cost(self) -> float:
        return float(self._weights @ self._pieces.evaluate(self._residuals))

    def _check(self, strength: float) -> None:
        """Accept a point only if the dual bound of its slopes proves it: cost = -y'u."""
        primal = self._cost() + strength * float(self._price @ np.abs(self._parameters))
        gap = abs(primal + float(self._y @ self._u))
        excess = np.maximum(self._u - self._high, self._low - self._u) / self._weights
        steep = np.abs(self._gradient) - strength * self._price
        allowed = GAP_TOL * self._pieces.steepest
        fair = excess.max() <= allowed and (steep <= allowed).all()
        # Where even the constant costs nothing, a gap is the rounding of outcomes.
        enough = GAP_TOL * self._constant_cost + self._pieces.steepest * self._slack
        if not (fair and gap <= enough):
            raise PathLostError(f"A gap of {gap:.3g} at strength {strength:.3g}.")
