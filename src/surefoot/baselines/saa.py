"""Sample average approximation: the best constant order."""

from collections.abc import Sequence

import numpy as np

from surefoot.baselines.base import Baseline
from surefoot.costs import Pieces
from surefoot.costs.base import weighted_quantile
from surefoot.nominals import Empirical
from surefoot.typing import FloatArray


class SAA(Baseline):
    r"""Always order the outcome quantile, whatever the context.

    .. math:: z = \min \{ y_k : \textstyle\sum_{i : y_i \le y_k} w_i \ge b / (b + h) \}

    Parameters
    ----------
    backorder
        Cost per unit short; one number, or one for each product.
    holding
        Cost per unit left over; one number, or one for each product.

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
        self, backorder: float | Sequence[float] = 1.0, holding: float | Sequence[float] = 0.2
    ) -> None:
        self.backorder = backorder
        self.holding = holding

    def _check_options(self) -> None:
        """The costs are all there is, and they check themselves."""

    def _learn(self, rows: Empirical, pieces: tuple[Pieces, ...]) -> None:
        self._constants = np.array([
            weighted_quantile(rows.outcomes[:, j], rows.masses, piece.quantile)
            for j, piece in enumerate(pieces)
        ])  # fmt: skip
        self.decision_ = self._per_product(self._constants)

    def _decide(self, X: FloatArray) -> FloatArray:
        return np.tile(self._constants, (len(X), 1))
