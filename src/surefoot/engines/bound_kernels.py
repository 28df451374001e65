"""Both bounds of a free affine problem with two lines, compiled: the certificate's formulas, once more.

A batch checks thousands of small problems, and there NumPy's calls cost more than the numbers. These
are ``ambiguity.worst_case`` and ``ambiguity.lower_bound`` where nothing is frozen, the support is free
and the radius is not negligible; a test holds them together.
"""

import math
from typing import NamedTuple

import numpy as np

from surefoot.ambiguity.balance import HALVINGS, NEWTON_STEPS
from surefoot.ambiguity.form import FLOOR_SHARE
from surefoot.ambiguity.lower_bound import GOLDEN, SECTIONS
from surefoot.certificates.certificate import CROSSED, MET
from surefoot.costs.quantiles import LEVEL_TOL
from surefoot.engines.compiling import kernel
from surefoot.typing import FloatArray


class PlainForm(NamedTuple):
    """A form with free support whose columns all move, as the kernels read it.

    Rows are distinct and ordered by outcome. ``sizes`` holds the largest absolute value of each
    column, ``slopes`` those of the constant order ``decision``, ``floor`` the size below which a gap
    stops being relative.
    """

    contexts: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    sizes: FloatArray
    slopes: FloatArray
    decision: float
    floor: float
    intercept: bool
    up: float
    down: float
    radius: float
    order: int
    inverse_kappa: float


@kernel(reassociate=True, inline=True)
def dot(a, b):
    """Return the sum of products of two vectors."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@kernel(reassociate=True)
def weighted_sum(rows, weights):
    """Return the sum of rows, each times its weight."""
    total = np.zeros(rows.shape[1])
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            total[j] += weights[i] * rows[i, j]
    return total


@kernel(inline=True)
def line_cost(residual, up, down):
    """Return the cost of a residual: the larger of two lines."""
    return up * residual if residual >= 0.0 else -down * residual


@kernel()
def constant_order(outcomes, weights, up, down):
    """Return the best constant decision and its slopes, of outcomes in ascending order."""
    n = len(outcomes)
    level = (down / (up + down) - LEVEL_TOL) * weights.sum()
    place, covered = 0, weights[0]
    while covered < level and place < n - 1:
        place += 1
        covered += weights[place]
    decision = outcomes[place]
    slopes = np.empty(n)
    rest, mass = 0.0, 0.0
    for i in range(n):
        slopes[i] = up if decision >= outcomes[i] else -down
        if decision == outcomes[i]:
            mass += weights[i]
        else:
            rest += weights[i] * slopes[i]
    share = min(max((-rest + mass * down) / (mass * (up + down)), 0.0), 1.0)
    for i in range(n):
        if decision == outcomes[i]:
            slopes[i] = -down + share * (up + down)
    return decision, slopes


@kernel()
def gap_floor(outcomes, weights, decision, up, down):
    """Return the size below which a gap stops being relative."""
    cost, nothing = 0.0, 0.0
    for i in range(len(outcomes)):
        cost += weights[i] * line_cost(decision - outcomes[i], up, down)
        nothing += weights[i] * line_cost(-outcomes[i], up, down)
    return max(FLOOR_SHARE * cost, 1e-9 * nothing)


@kernel()
def relative_gap(upper, lower, floor):
    """Return the gap; see ``certificates.relative_gap``."""
    if upper == np.inf or lower == -np.inf:
        return np.inf
    difference, size = upper - lower, max(abs(upper), abs(lower))
    if -difference > CROSSED * max(size, floor):
        return np.inf
    if difference <= MET * size:
        return 0.0
    base = max(lower, floor)
    return difference / base if base > 0.0 else np.inf


@kernel()
def worst_value(form, theta, intercept):
    """Return the worst-case expected cost of a policy and the multiplier that attains it."""
    n = len(form.outcomes)
    residuals, nominal, squared = np.empty(n), 0.0, dot(theta, theta)
    for i in range(n):
        residuals[i] = dot(form.contexts[i], theta) + (intercept - form.outcomes[i])
        nominal += form.weights[i] * line_cost(residuals[i], form.up, form.down)
    if form.order == 1:
        norm = max(math.sqrt(squared), form.inverse_kappa)
        gamma = max(form.up, form.down) * norm
        return nominal + form.radius * gamma, gamma
    norm = math.sqrt(squared + form.inverse_kappa)
    if norm == 0.0:
        return nominal, 0.0
    return _order_two(form, residuals, norm)


@kernel()
def _order_two(form, residuals, norm):
    """Order 2: walk up the residuals until the threshold that belongs to their number is passed."""
    up, down, rho, n = form.up, form.down, form.radius, len(residuals)
    if down < up:  # the same problem seen in a mirror
        up, down = down, up
        for i in range(n):
            residuals[i] = -residuals[i]
    order = np.argsort(residuals, kind="mergesort")
    count, below = 0, 0.0
    while True:
        gamma = norm * math.sqrt(up**2 * (1.0 - below) + down**2 * below) / (2.0 * rho)
        threshold = 0.25 * (down - up) * norm**2 / gamma
        if count == n or residuals[order[count]] >= threshold:
            break
        below += form.weights[order[count]]
        count += 1
    if count > 0 and threshold < residuals[order[count - 1]]:
        gamma = 0.25 * (down - up) * norm**2 / residuals[order[count - 1]]
    quarter = 0.25 * norm**2 / gamma
    value = gamma * rho**2
    for i in range(n):
        r = residuals[i]
        value += form.weights[i] * max(up * r + up**2 * quarter, -down * r + down**2 * quarter)
    return value, gamma


@kernel()
def lower_bound(form, slopes):
    """Return a value that the worst case of no policy can go below; any slopes will do."""
    balanced = np.empty(len(slopes))
    for i in range(len(slopes)):
        balanced[i] = min(max(slopes[i], -form.down), form.up)
    if form.intercept:
        _make_zero_mean(balanced, form.weights, form.down, form.up)
    return max(0.0, _free_bound(form, balanced))


@kernel()
def _make_zero_mean(slopes, weights, down, up):
    """Shift all slopes by one number, clipped to [-b, h], so that their weighted mean is zero."""
    given = slopes.copy()
    low, high = given.min() - up, given.max() + down
    shift = 0.0
    for number in range(NEWTON_STEPS + HALVINGS):
        mean, free = 0.0, 0.0
        for i in range(len(given)):
            slopes[i] = min(max(given[i] - shift, -down), up)
            mean += weights[i] * slopes[i]
            if abs(slopes[i] - 0.5 * (up - down)) < 0.5 * (up + down):
                free += weights[i]
        if abs(mean) <= 1e-15 * (up + down):
            break
        if mean > 0.0:
            low = shift
        else:
            high = shift
        guess = shift + mean / free if free > 0.0 else low
        newton = number < NEWTON_STEPS and low < guess < high
        shift = guess if newton else 0.5 * (low + high)


@kernel()
def _gradient_norm(form, slopes):
    """||X'u||, what making the slopes feasible costs."""
    weighted, rounding, squared = np.empty(len(slopes)), 0.0, 0.0
    for i in range(len(slopes)):
        weighted[i] = form.weights[i] * slopes[i]
        # Sums that cancel leave rounding behind, for which nothing has to be paid.
        rounding += 1e-15 * abs(weighted[i])
    gradient = weighted_sum(form.contexts, weighted)
    for j in range(len(gradient)):
        if abs(gradient[j]) > rounding * form.sizes[j]:
            squared += gradient[j] ** 2
    return math.sqrt(squared)


@kernel()
def _square_slope(form, mean):
    """E[w^2] of the two lines if their mean slope is this."""
    return form.up * form.down + (form.up - form.down) * mean


@kernel()
def _most_affordable(form, gradient_norm, mean):
    """The largest share of the slopes that can be paid for: of order 2 the root of a quadratic."""
    flat, tilt = form.up * form.down, (form.up - form.down) * mean
    if form.order == 1:
        flat, tilt = max(form.up, form.down) ** 2, 0.0
    if not gradient_norm > form.radius * math.sqrt(max(0.0, flat + tilt)):
        return 1.0
    square = (form.radius / gradient_norm) ** 2
    half = 0.5 * square * tilt
    root = math.sqrt(half**2 + square * flat)
    # Of two ways to write the root, the one without a difference.
    return min(half + root if half >= 0.0 else square * flat / (root - half), 1.0)


@kernel()
def _gain(form, gradient_norm, paid, mean, share):
    """What a share of the slopes proves; outcomes get what the contexts leave over."""
    if form.order == 1:
        left = form.radius * max(form.up, form.down) - share * gradient_norm
        return share * paid + max(left, 0.0) * form.inverse_kappa
    owed = (share * gradient_norm) ** 2
    left = form.radius**2 * _square_slope(form, share * mean) - owed
    if left < -1e-12 * owed:
        return -np.inf
    return share * paid + math.sqrt(max(left, 0.0) * form.inverse_kappa)


@kernel()
def _free_bound(form, slopes):
    """Free support: the moves cost ||X'u||, to be paid from rho G or rho sqrt(E w^2)."""
    gradient_norm, mean, paid = _gradient_norm(form, slopes), 0.0, 0.0
    for i in range(len(slopes)):
        mean += form.weights[i] * slopes[i]
        paid -= form.weights[i] * slopes[i] * form.outcomes[i]
    most = _most_affordable(form, gradient_norm, mean)
    if form.inverse_kappa == 0.0:
        return most * paid
    return _best_gain(form, gradient_norm, paid, mean, most)


@kernel()
def _best_gain(form, gradient_norm, paid, mean, most):
    """Return the largest gain over shares up to the most that can be paid for; gains are concave."""
    low, high = 0.0, most
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = (
        _gain(form, gradient_norm, paid, mean, left),
        _gain(form, gradient_norm, paid, mean, right),
    )
    best = max(_gain(form, gradient_norm, paid, mean, most), at_left, at_right)
    for _ in range(SECTIONS):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = _gain(form, gradient_norm, paid, mean, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = _gain(form, gradient_norm, paid, mean, right)
        best = max(best, at_left, at_right)
    return best
