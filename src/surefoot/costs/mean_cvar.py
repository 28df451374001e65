"""Risk and return of a portfolio."""

import importlib
from dataclasses import dataclass

import numpy as np

from surefoot.costs.base import AuxiliaryCost, check_one_shape
from surefoot.costs.quantiles import outcome_spread, weighted_quantile
from surefoot.io import register
from surefoot.sets import DecisionSet
from surefoot.typing import ArrayNamespace, FloatArray, IntArray
from surefoot.validation import check_number

# The best tail is looked for in so many programs, or until one moves no mass by more than this.
TAIL_ROUNDS, TAIL_SAME = 60, 1e-9


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
        aversion = check_number("risk_aversion", self.risk_aversion, at_least=0)
        level = check_number("level", self.level, above=0, below=1)
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

    def limited_floor(
        self, limits: DecisionSet, groups: IntArray, outcomes: FloatArray, weights: FloatArray
    ) -> float:
        r"""Return the dual value of the best decisions within limits.

        .. math:: E[\text{loss}] + \lambda \text{CVaR} \ge -\sum_g \max_{z \in Z} z'
                  \sum_{i \in g} (w_i + \lambda q_i) y_i
                  \quad\text{for every } 0 \le q_i \le \frac{w_i}{1 - \beta}, \ \sum_i q_i = 1

        A linear program proposes the tail q; whatever it says is put within those bounds first.
        """
        tail = self._tail(limits, groups, outcomes, weights)
        masses = weights + self.risk_aversion * tail
        sums = group_sums(groups, masses[:, None] * outcomes, int(groups.max()) + 1)
        with np.errstate(invalid="ignore"):
            most = np.where(sums == 0.0, 0.0, sums * limits.farthest(sums)).sum(axis=1)
        return -float(most.sum()) if np.isfinite(most).all() else -np.inf

    def _tail(
        self, limits: DecisionSet, groups: IntArray, outcomes: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return the tail q with the largest dual value, found from ever more decisions."""
        most = weights / (1.0 - self.level)
        tail, count = weights, int(groups.max()) + 1
        plain = group_sums(groups, weights[:, None] * outcomes, count)
        programs = importlib.import_module("scipy.optimize")  # it loads slowly, and few ask for a bound
        unit = float(np.abs(weights @ np.abs(outcomes)).max()) or 1.0
        rows, right = np.zeros((0, len(weights) + count)), np.zeros(0)
        for _ in range(TAIL_ROUNDS if self.risk_aversion > 0.0 else 0):
            sums = plain + self.risk_aversion * group_sums(groups, tail[:, None] * outcomes, count)
            decisions = limits.farthest(sums)
            if not np.isfinite(decisions).all():
                break
            # h_g >= z'(plain_g + lambda sum of q y) for the decisions that were best so far.
            own = np.zeros((count, len(weights)))
            own[groups, np.arange(len(weights))] = (decisions[groups] * outcomes).sum(axis=1)
            rows = np.vstack([rows, np.hstack([self.risk_aversion * own / unit, -np.eye(count)])])
            right = np.append(right, -(decisions * plain).sum(axis=1) / unit)
            result = programs.linprog(
                np.append(np.zeros(len(weights)), np.ones(count)), A_ub=rows, b_ub=right,
                A_eq=np.append(np.ones(len(weights)), np.zeros(count))[None, :], b_eq=[1.0],
                bounds=[*((0.0, float(one)) for one in most), *[(None, None)] * count],
            )  # fmt: skip
            if result.status != 0:
                break
            tail, before = _within(result.x[: len(weights)], most), tail
            if np.abs(tail - before).max() <= TAIL_SAME:
                break
        return tail

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

    def convex(self) -> bool:
        """Return True: it is a maximum of functions that are linear in the shares and a."""
        return True

    def why_unlimited(self) -> str | None:
        """Return why shares need limits."""
        return (
            "MeanCVaR needs limits on its decisions, or a portfolio could grow without end: "
            "give the policy decisions=Simplex() or a Box"
        )


def group_sums(groups: IntArray, rows: FloatArray, count: int) -> FloatArray:
    """Return the sum of the rows of each group, shape (groups, columns)."""
    sums = np.zeros((count, rows.shape[1]))
    np.add.at(sums, groups, rows)
    return sums


def _within(tail: FloatArray, most: FloatArray) -> FloatArray:
    """Return masses between zero and the most that each row may have, which sum to one."""
    tail = np.clip(tail, 0.0, most)
    total, room = float(tail.sum()), most - tail
    if total >= 1.0 or not room.sum() > 0.0:
        return np.asarray(tail / total)
    return np.asarray(tail + (1.0 - total) * room / room.sum())
