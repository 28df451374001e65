"""Training of the robust policy: decisions at the contexts seen, and the steepest slope among them."""

from typing import Any, NamedTuple

import highspy
import numpy as np

from surefoot.baselines.linear_program import add_rows, quiet_highs, segments_of
from surefoot.costs import Pieces
from surefoot.exceptions import SurefootError
from surefoot.typing import FloatArray, IntArray

# Feasibility in HiGHS, and the violation from which a pair becomes a cut, as shares of the range of y.
FEASIBILITY = 1e-9
CUT_TOL = 1e-8


class Trained(NamedTuple):
    """Decisions f_k at the known contexts, their Lipschitz constant L, and G rho L + mean cost."""

    values: FloatArray
    slope: float
    worst_case: float


class LipschitzProgram:
    r"""The linear program of the robust policy, for one product; radii are solved one after another.

    .. math:: \min_{f, L} \; G \rho L + \sum_i w_i c(f_{k(i)}, y_i)
              \quad\text{s.t.}\quad |f_j - f_k| \le L \|x_j - x_k\|, \; L \ge 1/\kappa

    Of the n^2 pairs only those are added that a solution violates: for each context its worst pair
    in either direction, a round at a time. HiGHS goes on from its last basis, from round to round and
    from radius to radius (five times faster than fresh programs at n = 500).

    Parameters
    ----------
    distances
        Between known contexts, shape (contexts, contexts).
    places
        The context of each row, shape (rows,).
    y, weights
        Outcomes and weights of the rows; weights sum to one.
    pieces
        The slopes of the cost.
    least_slope
        1 / kappa.

    Examples
    --------
    >>> program = LipschitzProgram(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1]),
    ...     np.array([0.0, 1.0]), np.array([0.5, 0.5]), Pieces.kinked(up=1.0, down=1.0), 0.0)
    >>> found = program.solve(0.2)
    >>> round(found.slope, 6), round(found.worst_case, 6)
    (1.0, 0.2)
    """

    def __init__(
        self,
        distances: FloatArray,
        places: IntArray,
        y: FloatArray,
        weights: FloatArray,
        pieces: Pieces,
        least_slope: float,
    ) -> None:
        self._places, self._y, self._weights, self._pieces = places, y, weights, pieces
        self._distances, self._least = distances, least_slope
        self._n = len(distances)
        # Decisions beyond all outcomes and kinks are never worth their cost.
        self._least_decision = float(y.min() + pieces.kinks[0])
        self._unit = float(y.max() + pieces.kinks[-1]) - self._least_decision or 1.0
        self._length = float(distances.max()) or 1.0
        self._scaled = distances / self._length
        self._cut = np.eye(self._n, dtype=bool)  # pairs that are rows of the program already
        self._highs = self._master()

    def _master(self) -> Any:
        """The program without pairs: columns f, L, and for each stretch of the cost its units."""
        n, rows = self._n, len(self._y)
        origin, segments = segments_of(self._pieces)
        y = (self._y + origin - self._least_decision) / self._unit
        highs = quiet_highs(FEASIBILITY)
        least = self._least / self._unit_slope()
        count = len(segments)
        widths = np.repeat([min(one.width / self._unit, highspy.kHighsInf) for one in segments], rows)
        lower = np.concatenate([np.zeros(n), [least], np.zeros(count * rows)])
        upper = np.concatenate([np.ones(n), [highspy.kHighsInf], widths])
        highs.addVars(n + 1 + count * rows, lower, upper)
        mass = self._weights * rows / self._pieces.steepest
        costs = np.concatenate([np.zeros(n + 1), *[one.slope * mass for one in segments]])
        highs.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)
        first = n + 1 + np.arange(rows)
        columns = [first + k * rows for k in range(count)]
        entries = np.tile([1.0, *[-one.side for one in segments]], (rows, 1))
        add_rows(highs, np.column_stack([self._places, *columns]), entries, y, y)
        return highs

    def solve(self, radius: float) -> Trained:
        """Return the best decisions at a radius."""
        if radius == 0.0:
            return self._without_robustness()
        unit_cost = radius / self._length * len(self._y)  # in the units of the other costs
        self._highs.changeColCost(self._n, unit_cost)
        while True:
            self._highs.run()
            status = self._highs.getModelStatus()
            if status != highspy.HighsModelStatus.kOptimal:
                raise SurefootError(f"The linear program was not solved: HiGHS says {status.name}.")
            solution = np.array(self._highs.getSolution().col_value[: self._n + 1])
            if not self._add_violated(solution[: self._n], float(solution[self._n])):
                break
        values = np.clip(solution[: self._n], 0.0, 1.0) * self._unit + self._least_decision
        slope = max(self._least, float(solution[self._n]) * self._unit_slope())  # rounding may be below
        return self._trained(values, slope, radius)

    def _unit_slope(self) -> float:
        """One unit of L in the program, in the user's units."""
        return self._unit / self._length

    def _add_violated(self, f: FloatArray, slope: float) -> bool:
        """Add the worst pair of each context that is steeper than L; return if there was one."""
        excess = f[:, None] - f - slope * self._scaled
        excess[self._cut] = -np.inf  # a pair that is a row already never comes again
        contexts = np.arange(self._n)
        pairs = np.concatenate([
            contexts * self._n + excess.argmax(axis=1), excess.argmax(axis=0) * self._n + contexts,
        ])  # fmt: skip
        pairs = np.unique(pairs)
        pairs = pairs[excess.ravel()[pairs] > CUT_TOL]
        if not len(pairs):
            return False
        upper, lower = np.divmod(pairs, self._n)
        self._cut[upper, lower] = True
        ones = np.ones(len(pairs))
        add_rows(
            self._highs, np.column_stack([upper, lower, np.full(len(pairs), self._n)]),
            np.column_stack([ones, -ones, -self._scaled[upper, lower]]),
            np.full(len(pairs), -highspy.kHighsInf), np.zeros(len(pairs)),
        )  # fmt: skip
        return True

    def _without_robustness(self) -> Trained:
        """Return the best constant for each context's own outcomes; slopes cost nothing."""
        values = np.array([
            self._pieces.best_constant(self._y[mine], self._weights[mine])
            for mine in (self._places == k for k in range(self._n))
        ])  # fmt: skip
        rise = np.abs(values[:, None] - values)
        steepness = np.divide(rise, self._distances, out=np.zeros_like(rise), where=self._distances > 0)
        return self._trained(values, max(float(steepness.max()), self._least), 0.0)

    def _trained(self, values: FloatArray, slope: float, radius: float) -> Trained:
        cost = float(self._weights @ self._pieces.evaluate(values[self._places] - self._y))
        return Trained(values, slope, self._pieces.steepest * radius * slope + cost)
