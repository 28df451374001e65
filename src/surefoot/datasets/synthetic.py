"""The paper's linear demand model (section 5.1), whose best policy is known exactly."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from surefoot.exceptions import InvalidInputError
from surefoot.random import rng_for
from surefoot.typing import ArrayLike, FloatArray
from surefoot.validation import check_choice, check_integer, check_number, context_matrix


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyntheticData:
    r"""Rows of ``y = theta'x + intercept + noise`` to learn from and to judge on.

    Attributes
    ----------
    X, y
        Contexts, shape (n, s), and outcomes, shape (n,), to learn from.
    X_test, y_test
        The same to judge on, shapes (test, s) and (test,).
    theta, intercept
        The true coefficients, shape (s,), and the constant.
    noise_variance
        Variance of the Gaussian noise, in squared units of the outcome.

    Examples
    --------
    >>> synthetic(50, 100)
    SyntheticData(50 rows, 100 contexts, 10000 test rows, noise variance 1)
    """

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    theta: FloatArray
    intercept: float
    noise_variance: float

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        return (
            f"SyntheticData({rows} rows, {columns} contexts, {len(self.X_test)} test rows, "
            f"noise variance {self.noise_variance:g})"
        )

    def oracle_decisions(self, X: ArrayLike, backorder: float, holding: float) -> FloatArray:
        r"""Return the best decision for each context, known only because the model is.

        It is the conditional quantile of the outcome, with :math:`\Phi` the standard normal
        distribution function:

        .. math:: z(x) = \theta^\top x + \theta_0 + \sigma \, \Phi^{-1}\!\left(\tfrac{b}{b+h}\right)

        Parameters
        ----------
        X
            Contexts, shape (rows, s).
        backorder, holding
            Costs b and h per unit short and per unit left over, both > 0.

        Returns
        -------
        array of shape (rows,)
            Decisions in units of the outcome.

        Examples
        --------
        With b = h the quantile is the median, which is the noiseless outcome:

        >>> data = synthetic(5, 2, noise_variance=0.0)
        >>> bool(abs(data.oracle_decisions(data.X, 1.0, 1.0) - data.y).max() < 1e-12)
        True
        """
        quantile = _critical_quantile(backorder, holding)
        X = context_matrix("X", X)
        if X.shape[1] != self.theta.size:
            raise InvalidInputError(
                f"X must have {self.theta.size} columns (one per coefficient), got {X.shape[1]}."
            )
        return X @ self.theta + self.intercept + math.sqrt(self.noise_variance) * quantile

    def oracle_cost(self, backorder: float, holding: float) -> float:
        r"""Return the expected newsvendor cost of the oracle, below which no policy can get.

        With :math:`\varphi` the standard normal density and :math:`\Phi` its distribution
        function:

        .. math:: (b + h) \, \sigma \, \varphi\!\left(\Phi^{-1}\!\left(\tfrac{b}{b+h}\right)\right)

        Parameters
        ----------
        backorder, holding
            Costs b and h per unit short and per unit left over, both > 0.

        Examples
        --------
        >>> round(synthetic(10, 100).oracle_cost(backorder=1.0, holding=0.2), 4)
        0.2998
        """
        quantile = _critical_quantile(backorder, holding)
        sigma = math.sqrt(self.noise_variance)
        return (backorder + holding) * sigma * NormalDist().pdf(quantile)


def synthetic(
    n: int,
    s: int,
    *,
    coefficients: Literal["positive", "mixed"] = "positive",
    contexts: Literal["uniform", "gaussian"] = "uniform",
    noise_variance: float = 1.0,
    seed: int = 0,
    test: int = 10_000,
) -> SyntheticData:
    r"""Draw the paper's linear demand model with additive Gaussian noise.

    .. math:: y = \theta^\top x + \theta_0 + \varepsilon,
              \qquad \varepsilon \sim \mathcal{N}(0, \sigma^2)

    Every part has a random stream of its own. So the first rows at a larger ``n`` are the rows at
    a smaller one; coefficients and test rows do not depend on ``n``; and ``noise_variance`` only
    scales the noise.

    Parameters
    ----------
    n
        Number of rows to learn from.
    s
        Number of context columns. The paper uses 100 and 1000.
    coefficients
        How :math:`\theta` and :math:`\theta_0`, on which the paper is silent, are drawn:
        ``"positive"`` uniform on [0, 1], ``"mixed"`` standard normal, so of both signs.
    contexts
        ``"uniform"`` on :math:`[0, 1]^s`, or ``"gaussian"``: independent standard normal columns.
        The paper leaves the Gaussian mean and covariance open; zero and the identity are ours.
    noise_variance
        :math:`\sigma^2 \ge 0`, a variance and not a standard deviation. The paper uses 0.1, 0.5,
        1 and 5.
    seed
        A non-negative integer.
    test
        Number of rows to judge on.

    Returns
    -------
    SyntheticData

    References
    ----------
    Section 5.1 of the paper.

    Examples
    --------
    >>> data = synthetic(50, 100, seed=1)
    >>> data.X.shape, data.y.shape, data.X_test.shape
    ((50, 100), (50,), (10000, 100))
    >>> bool((synthetic(10, 100, seed=1).X == data.X[:10]).all())
    True
    """
    n = check_integer("n", n, at_least=1)
    s = check_integer("s", s, at_least=1)
    check_choice("coefficients", coefficients, ("positive", "mixed"))
    check_choice("contexts", contexts, ("uniform", "gaussian"))
    noise_variance = check_number("noise_variance", noise_variance, at_least=0)
    seed = check_integer("seed", seed, at_least=0)
    test = check_integer("test", test, at_least=1)

    rng = rng_for(seed, "coefficients", coefficients, s)
    drawn = rng.random(s + 1) if coefficients == "positive" else rng.standard_normal(s + 1)
    theta, intercept = drawn[:-1], float(drawn[-1])

    def rows(part: str, count: int) -> tuple[FloatArray, FloatArray]:
        # Generators fill row by row, so a longer draw begins with the shorter one.
        rng = rng_for(seed, part, "contexts", contexts, s)
        uniform = contexts == "uniform"
        X = rng.random((count, s)) if uniform else rng.standard_normal((count, s))
        noise = rng_for(seed, part, "noise", s).standard_normal(count)
        # Not X @ theta: its last digits depend on the number of rows and on the BLAS.
        signal = (X * theta).sum(axis=1)
        return X, signal + intercept + math.sqrt(noise_variance) * noise

    X, y = rows("train", n)
    X_test, y_test = rows("test", test)
    return SyntheticData(X, y, X_test, y_test, theta, intercept, noise_variance)


def _critical_quantile(backorder: float, holding: float) -> float:
    """Return the standard normal quantile at b/(b+h)."""
    backorder = check_number("backorder", backorder, above=0)
    holding = check_number("holding", holding, above=0)
    # From the smaller tail: b/(b+h) itself would round to 1, at infinity, for a tiny h.
    tail = NormalDist().inv_cdf(min(backorder, holding) / (backorder + holding))
    return -tail if backorder > holding else tail
