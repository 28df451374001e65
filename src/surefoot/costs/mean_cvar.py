"""Risk and return of a portfolio."""

from dataclasses import dataclass

import numpy as np

from surefoot.costs.base import AuxiliaryCost, check_one_shape, outcome_spread, weighted_quantile
from surefoot.exceptions import InvalidInputError
from surefoot.io import register
from surefoot.typing import ArrayNamespace, FloatArray
from surefoot.validation import check_number


@register
@dataclass(frozen=True)
class MeanCVaR(AuxiliaryCost):
    r"""Expected loss plus a multiple of the conditional value at risk of a portfolio.

    .. math:: c(z, a, y) = -z'y + \lambda \left(a + \frac{(-z'y - a)^+}{1 - \beta}\right)

    Decisions are shares of the assets, outcomes their returns. Its mean, minimised over the value at
    risk a, is E[loss] + lambda CVaR[loss]; a is learned together with the policy.

    Parameters
    ----------
    risk_aversion
        lambda >= 0: how much the conditional value at risk counts beside the expected loss.
    level
        beta in (0, 1): the conditional value at risk is the mean of the worst 1 - beta of losses.

    Examples
    --------
    >>> import numpy as np
    >>> cost = MeanCVaR(risk_aversion=1.0, level=0.5)
    >>> shares, returns = np.array([[1.0], [1.0]]), np.array([[0.1], [-0.2]])
    >>> cost.evaluate(shares, returns).mean().round(3)  # mean loss 0.05, worst half 0.2
    np.float64(0.25)

    References
    ----------
    Rockafellar and Uryasev (2000), "Optimization of conditional value-at-risk".
    """

    risk_aversion: float = 1.0
    level: float = 0.95

    def __post_init__(self) -> None:
        """Check the numbers."""
        aversion = check_number("risk_aversion", self.risk_aversion, at_least=0)
        level = check_number("level", self.level, above=0)
        if not level < 1:
            raise InvalidInputError(f"level must be < 1, got {level}.")
        object.__setattr__(self, "risk_aversion", aversion)
        object.__setattr__(self, "level", level)

    def evaluate_at(
        self,
        decisions: FloatArray,
        auxiliary: FloatArray,
        outcomes: FloatArray,
        xp: ArrayNamespace = np,
    ) -> FloatArray:
        """Return c(z, a, y) per row; a has one entry."""
        check_one_shape(decisions, outcomes)
        loss = -(decisions * outcomes).sum(axis=-1)
        tail = auxiliary[0] + xp.maximum(loss - auxiliary[0], 0.0) / (1.0 - self.level)
        value: FloatArray = loss + self.risk_aversion * tail
        return value

    def best_auxiliary(
        self, decisions: FloatArray, outcomes: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return the value at risk: the loss quantile at the level."""
        loss = -(np.asarray(decisions) * np.asarray(outcomes)).sum(axis=-1)
        return np.array([weighted_quantile(loss, weights, self.level)])

    def typical_auxiliary(
        self, outcomes: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the value at risk and the spread of the loss of equal shares."""
        loss = -outcomes.mean(axis=1)
        start = weighted_quantile(loss, weights, self.level)
        return np.array([start]), outcome_spread(loss[:, None], weights)

    def typical(self, outcomes: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return equal shares, in units of themselves."""
        count = outcomes.shape[1]
        return np.full(count, 1.0 / count), np.full(count, 1.0 / count)

    def growth(self) -> float:
        """Return one: losses are linear in the shares."""
        return 1.0

    def why_unlimited(self) -> str | None:
        """Return why shares need limits."""
        return (
            "MeanCVaR needs limits on its decisions, or a portfolio could grow without end: "
            "give the policy decisions=Simplex() or a Box"
        )
