"""A bound for a mean that is not to be exceeded, from few and skewed numbers."""

import math

from scipy.stats import t as student

from surefoot.typing import FloatArray


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
    skew = float(weights @ centred**3) / deviation**3
    # A sample of few rows underestimates its skewness.
    skew = max(skew, 0.0) * math.sqrt(count / max(count - 1.0, 1.0))
    quantile = float(student.ppf(confidence, max(count - 1.0, 1.0)))
    wanted = -quantile / math.sqrt(count)  # T(x) at the lower end of the pivot
    if skew == 0.0:
        shift = wanted
    else:
        inner = 1.0 + skew * (wanted - skew / (6.0 * count))
        shift = 3.0 / skew * (math.copysign(abs(inner) ** (1.0 / 3.0), inner) - 1.0)
    deviation *= math.sqrt(count / (count - 1.0))
    return mean - deviation * shift
