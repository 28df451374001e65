"""Synthetic streams whose best decision, and whose robust optimum, are known exactly."""

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Literal

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from reproduction.stream_measures import critical_share, prices
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.typing import FloatArray
from surefoot.validation import check_choice, check_integer

Coefficients = Literal["positive", "mixed"]
COEFFICIENTS: tuple[Coefficients, ...] = ("positive", "mixed")
KINDS = ("stationary", "abrupt", "gradual")
# The law after a change comes from seeds that no stream starts with.
_AFTER = 1_000_003
# Each halving gains a bit of the multiplier.
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class Law:
    r"""``y = theta'x + intercept + noise`` with standard normal contexts and noise.

    The residual of an affine policy then is normal, so that every expectation has a closed form:

    .. math:: r \sim \mathcal{N}(t - t_0, \; \|\theta - \theta_0\|^2 + 1)

    Attributes
    ----------
    theta, intercept
        The true coefficients, shape (s,), and the constant.
    cost
        The newsvendor's prices.
    """

    theta: FloatArray
    intercept: float
    cost: Newsvendor

    @property
    def quantile(self) -> float:
        """Standard normal quantile at b/(b+h)."""
        return NormalDist().inv_cdf(critical_share(self.cost))

    def oracle(self, X: FloatArray) -> FloatArray:
        """Return the best decisions, shape (rows,)."""
        return X @ self.theta + self.intercept + self.quantile

    @cached_property
    def oracle_cost(self) -> float:
        """Expected cost of the oracle."""
        return float(self._mean_cost(np.array(self.quantile), np.ones(())))

    def expected_cost(self, theta: FloatArray, intercept: FloatArray) -> FloatArray:
        """Return the expected cost of affine policies, theta (..., s) and intercept (...).

        >>> law = Law(np.ones(2), 0.0, Newsvendor(1.0, 0.2))
        >>> law.expected_cost(np.ones(2), np.array(law.quantile)).round(4), round(law.oracle_cost, 4)
        (np.float64(0.2998), 0.2998)
        """
        return self._mean_cost(intercept - self.intercept, self._spread(theta))

    def robust_objective(
        self, theta: FloatArray, intercept: FloatArray, multiplier: FloatArray, radius: float
    ) -> FloatArray:
        r"""Return the paper's H (its eq. 7) for order 2 and a free support.

        .. math:: H(\theta, \gamma) = \gamma \rho^2 + \tfrac{b h m^2}{4 \gamma}
                  + E\,\psi\!\left(r - (b - h) \tfrac{m^2}{4 \gamma}\right), \quad m = \|\theta\|

        It is the expectation of :math:`h(\theta, \gamma; \xi, \xi^\star)` in the paper's regret.
        Parameters have shapes (..., s) and (...); a multiplier of zero stands for nothing to move.
        """
        b, h = prices(self.cost)
        squared = (theta**2).sum(axis=-1)
        lift = np.where(multiplier > 0.0, squared / (4.0 * np.maximum(multiplier, 1e-300)), 0.0)
        shifted = intercept - self.intercept - (b - h) * lift
        own = multiplier * radius**2 + b * h * lift
        return np.asarray(own + self._mean_cost(shifted, self._spread(theta)))

    def best_multiplier(self, theta: FloatArray, intercept: FloatArray, radius: float) -> FloatArray:
        r"""Return the multiplier that minimises H for given policies.

        H is convex in it, with the derivative :math:`\rho^2 - E[w^2]\, m^2 / (4 \gamma^2)`, w the slope
        (h or -b) at the moved sample; bisection finds where that is zero.
        """
        b, h = prices(self.cost)
        norm, spread = np.linalg.norm(theta, axis=-1), self._spread(theta)
        if radius == 0.0:
            return np.zeros_like(norm)
        low, high = min(b, h) * norm / (2.0 * radius), max(b, h) * norm / (2.0 * radius)
        for _ in range(_HALVINGS):
            gamma = 0.5 * (low + high)
            lift = np.where(gamma > 0.0, norm**2 / (4.0 * np.maximum(gamma, 1e-300)), 0.0)
            below = ndtr(((b - h) * lift - (intercept - self.intercept)) / spread)
            falling = radius**2 * gamma < lift * (b**2 * below + h**2 * (1.0 - below))
            low, high = np.where(falling, gamma, low), np.where(falling, high, gamma)
        return np.asarray(high)

    def robust_best(self, radius: float) -> tuple[FloatArray, float, float]:
        r"""Return (theta, intercept, multiplier) that minimise H.

        By symmetry the best theta is :math:`k \theta_0`, and with a free intercept (section 3 of the
        design: the shift of t) what is left is a line search:

        .. math:: \min_{k} \; (b+h)\,\varphi(q) \sqrt{(1-k)^2 \|\theta_0\|^2 + 1}
                  + \rho \sqrt{b h}\, k \|\theta_0\|
        """
        b, h = prices(self.cost)
        norm = float(np.linalg.norm(self.theta))

        def value(k: float) -> float:
            spread = math.hypot((1.0 - k) * norm, 1.0)
            return self.oracle_cost * spread + radius * math.sqrt(b * h) * k * norm

        found = minimize_scalar(value, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12})
        k = 1.0 if radius == 0.0 else float(found.x)
        reach = k * norm
        shift = (b - h) * radius * reach / (2.0 * math.sqrt(b * h))
        intercept = self.intercept + self.quantile * math.hypot((1.0 - k) * norm, 1.0) + shift
        multiplier = math.sqrt(b * h) * reach / (2.0 * radius) if radius > 0.0 else 0.0
        return k * self.theta, intercept, multiplier

    def _spread(self, theta: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(((theta - self.theta) ** 2).sum(axis=-1) + 1.0))

    def _mean_cost(self, mean: FloatArray, spread: FloatArray) -> FloatArray:
        """Return E psi(r) for normal r: h mean + (b + h) E max(-r, 0)."""
        b, h = prices(self.cost)
        standing = mean / spread
        density = np.exp(-0.5 * standing**2) / math.sqrt(2.0 * math.pi)
        return np.asarray(h * mean + (b + h) * (spread * density - mean * ndtr(-standing)))


@dataclass(frozen=True, eq=False)
class StreamSample:
    """A stream in order.

    Attributes
    ----------
    X, y
        Contexts, shape (rows, s), and outcomes, shape (rows,).
    oracle
        Best decision for each row under the law of that row, shape (rows,).
    before, after
        The law at the start and at the end (the same if nothing changes).
    change
        First row of another law; None if nothing changes.
    settled
        First row of the last law; ``change`` if the law jumps.
    """

    X: FloatArray
    y: FloatArray
    oracle: FloatArray
    before: Law
    after: Law
    change: int | None
    settled: int | None


def draw_stream(
    kind: str, rows: int, columns: int, coefficients: Coefficients, cost: Newsvendor, seed: int
) -> StreamSample:
    """Draw a stream: one law throughout, a jump at half time, or a drift over the middle third.

    Contexts and noise do not depend on the kind, so that all kinds start alike.

    Examples
    --------
    >>> stream = draw_stream("abrupt", 1_000, 3, "mixed", Newsvendor(1.0, 0.2), seed=0)
    >>> stream.X.shape, stream.change, stream.settled
    ((1000, 3), 500, 500)
    """
    check_choice("kind", kind, KINDS)
    rows = check_integer("rows", rows, at_least=3)
    data = synthetic(rows, columns, coefficients=coefficients, contexts="gaussian", seed=seed, test=1)
    before = Law(data.theta, data.intercept, cost)
    if kind == "stationary":
        return StreamSample(data.X, data.y, before.oracle(data.X), before, before, None, None)
    other = synthetic(1, columns, coefficients=coefficients, seed=seed + _AFTER, test=1)
    after = Law(other.theta, other.intercept, cost)
    change, settled = (rows // 2, rows // 2) if kind == "abrupt" else (rows // 3, 2 * rows // 3)
    at = np.arange(rows)
    share = np.clip((at - change + 1) / (settled - change + 1), 0.0, 1.0)
    moved = (data.X * (after.theta - before.theta)).sum(axis=1) + after.intercept - before.intercept
    return StreamSample(
        data.X, data.y + share * moved, before.oracle(data.X) + share * moved,
        before, after, change, settled,
    )  # fmt: skip
