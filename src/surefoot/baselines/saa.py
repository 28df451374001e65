"""Sample average approximation: the best constant order."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from surefoot.baselines.base import Baseline
from surefoot.costs import Cost, Pieces
from surefoot.nominals import Empirical
from surefoot.typing import FloatArray

# How closely a constant is searched for, in units in which decisions vary.
SEARCH = {"xatol": 1e-6, "fatol": 1e-10, "maxiter": 2_000}


class SAA(Baseline):
    r"""Always order the outcome quantile, whatever the context.

    .. math:: z = \min \{ y_k : \sum_{i : y_i \le y_k} w_i \ge b / (b + h) \}

    Parameters
    ----------
    backorder
        Cost per unit short; one number, or one for each product.
    holding
        Cost per unit left over; one number, or one for each product.
    cost_function
        Any other cost in the place of both, or None. The best constant of a cost that is not piecewise
        linear is found numerically.

    Attributes
    ----------
    decision_
        The order; with several products, one for each.

    Examples
    --------
    >>> model = SAA(backorder=3.0, holding=1.0).fit([[0.0]] * 4, [1.0, 2.0, 3.0, 4.0])
    >>> model.decision_
    3.0
    >>> model.predict([[7.0], [8.0]])
    array([3., 3.])
    """

    def __init__(
        self,
        backorder: float | Sequence[float] = 1.0,
        holding: float | Sequence[float] = 0.2,
        *,
        cost_function: Cost | None = None,
    ) -> None:
        self.backorder = backorder
        self.holding = holding
        self.cost_function = cost_function

    def _cost(self) -> Cost:
        if isinstance(self.cost_function, Cost):
            return self.cost_function
        return super()._cost()

    def _check_options(self) -> None:
        """The costs are all there is, and they check themselves."""

    def _learn(self, rows: Empirical, pieces: tuple[Pieces, ...]) -> None:
        if pieces:
            constants = [
                piece.best_constant(rows.outcomes[:, j], rows.masses) for j, piece in enumerate(pieces)
            ]
            self._constants = np.array(constants)
        else:
            self._constants = self._numerical(rows)
        self.decision_ = self._per_product(self._constants)

    def _numerical(self, rows: Empirical) -> FloatArray:
        """Minimise the mean cost of one decision for all rows, from a reasonable one on."""
        cost = self._fitted_cost
        start, unit = cost.typical(rows.outcomes, rows.weights)

        def mean(steps: FloatArray) -> float:
            decisions = np.tile(start + unit * steps, (len(rows.weights), 1))
            value = cost.mean(decisions, rows.outcomes, rows.weights)
            return value if np.isfinite(value) else np.inf

        result = minimize(mean, np.zeros(len(start)), method="Nelder-Mead", options=SEARCH)
        return np.asarray(start + unit * result.x)

    def _decide(self, X: FloatArray) -> FloatArray:
        return np.tile(self._constants, (len(X), 1))
