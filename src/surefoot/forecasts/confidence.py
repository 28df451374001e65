"""A bound for a mean that is not to be exceeded, from few and skewed numbers."""

import math

import numpy as np
from scipy.special import stdtrit

from surefoot.typing import FloatArray

# Rows that cost as much as the most costly one are added: this many, and so many over their number.
ADDED_ROWS, ADDED_TO_FEW = 0.75, 45.0


def cost_bound_of_rows(
    costs: FloatArray, weights: FloatArray, confidence: float, count: float
) -> float:
    """Return a bound for the mean cost of a policy that was learned from the same rows.

    That of ``mean_bound`` with a few rows added that cost as much as the most costly one: few rows
    have not seen the worst that there is, and how good a policy turned out to be varies, too. How many
    are added was chosen on samples of the twelve laws of ``benchmarks/quality/robust.py`` that have no
    part in its table.

    Examples
    --------
    >>> import numpy as np
    >>> costs, weights = np.arange(20.0), np.full(20, 0.05)
    >>> bounds = mean_bound(costs, weights, 0.95), cost_bound_of_rows(costs, weights, 0.95, 20.0)
    >>> [round(bound, 1) for bound in bounds]
    [11.8, 13.2]
    """
    added = ADDED_ROWS + ADDED_TO_FEW / count
    masses = np.append(count * weights, added)
    return mean_bound(np.append(costs, costs.max()), masses / masses.sum(), confidence, count)


def mean_bound(
    values: FloatArray, weights: FloatArray, confidence: float, count: float | None = None
) -> float:
    r"""Return an upper confidence bound of the mean of which weighted values are a sample.

    Student's bound with Hall's correction for skewness g: with
    :math:`T(x) = x + g x^2 / 3 + g^2 x^3 / 27 + g / (6 n)` applied to the studentised mean and
    inverted. It is asymptotic, of second order; ``benchmarks/quality/robust.py`` measures how often
    it holds. ``count`` is n, None the effective number of the weights.

    References
    ----------
    Hall (1992), "On the removal of skewness by transformation", JRSS B 54.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.arange(20.0)
    >>> round(mean_bound(values, np.full(20, 0.05), 0.95), 1)
    11.8
    """
    mean = float(weights @ values)
    centred = values - mean
    deviation = math.sqrt(float(weights @ centred**2))
    count = 1.0 / float(weights @ weights) if count is None else count
    if deviation == 0.0 or count < 2.0:
        return mean
    skew = float(weights @ (centred / deviation) ** 3)
    # A sample of few rows underestimates its skewness.
    skew = max(skew, 0.0) * math.sqrt(count / max(count - 1.0, 1.0))
    quantile = float(stdtrit(max(count - 1.0, 1.0), confidence))  # Student's
    wanted = -quantile / math.sqrt(count)  # T(x) at the lower end of the pivot
    if skew == 0.0:
        shift = wanted
    else:
        beyond = skew * (wanted - skew / (6.0 * count))  # the cube root of one and this, less one
        if beyond > -1.0:  # without a difference, which a tiny skewness would lose
            shift = 3.0 / skew * math.expm1(math.log1p(beyond) / 3.0)
        else:
            shift = -3.0 / skew * ((-1.0 - beyond) ** (1.0 / 3.0) + 1.0)
    deviation *= math.sqrt(count / (count - 1.0))
    return mean - deviation * shift
