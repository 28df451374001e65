"""The rows of a problem made ready, compiled: equal rows joined, columns and outcomes in their units.

What ``problem.affine_form`` does for one problem with NumPy, for the loop over problems; a test holds
them together.
"""

import math

import numpy as np

from surefoot.ambiguity.lower_bound import SMALL_SHARE
from surefoot.engines.bound_kernels import PlainForm, constant_order, dot, gap_floor, weighted_sum
from surefoot.engines.compiling import kernel
from surefoot.nominals.empirical import CONSTANT_COLUMN


@kernel()
def power_of_two(size):
    """Return the power of two next to a positive number."""
    return 2.0 ** np.rint(math.log2(size))


@kernel()
def _before(contexts, masses, i, j):
    """Whether row i comes before row j of the same outcome: by columns, then by mass."""
    for k in range(contexts.shape[1]):
        if contexts[i, k] != contexts[j, k]:
            return contexts[i, k] < contexts[j, k]
    return masses[i] < masses[j]


@kernel()
def _equal(contexts, i, j):
    same = True
    for k in range(contexts.shape[1]):
        same = same and contexts[i, k] == contexts[j, k]
    return same


@kernel()
def distinct_rows(contexts, outcomes, masses):
    """Order rows by value, join equal ones and drop those without mass: (rows, their masses)."""
    order = np.argsort(outcomes, kind="mergesort")
    for k in range(1, len(order)):  # insertion, among equal outcomes alone
        row, at = order[k], k
        while (
            at > 0
            and outcomes[order[at - 1]] == outcomes[row]
            and _before(contexts, masses, row, order[at - 1])
        ):
            order[at] = order[at - 1]
            at -= 1
        order[at] = row
    kept, sums, count = np.empty_like(order), np.empty(len(order)), 0
    for row in order:
        if masses[row] <= 0.0:
            continue
        last = kept[count - 1] if count > 0 else -1
        if last >= 0 and outcomes[last] == outcomes[row] and _equal(contexts, last, row):
            sums[count - 1] += masses[row]
        else:
            kept[count], sums[count] = row, masses[row]
            count += 1
    return kept[:count], sums[:count]


@kernel()
def column_spread(contexts, weights):
    """Return the weighted standard deviation of each column, zero where it is only rounding."""
    n, s = contexts.shape
    spread = np.zeros(s)
    for j in range(s):
        largest = 0.0
        for i in range(n):
            largest = max(largest, abs(contexts[i, j]))
        # Divided by a power of two, numbers keep their digits and squares neither overflow nor vanish.
        size = math.ldexp(1.0, math.frexp(largest)[1])
        mean = 0.0
        for i in range(n):
            mean += weights[i] * (contexts[i, j] / size)
        square = 0.0
        for i in range(n):
            square += weights[i] * (contexts[i, j] / size - mean) ** 2
        share = math.sqrt(square)
        spread[j] = share * size if share > CONSTANT_COLUMN else 0.0
    return spread


@kernel()
def _outcome_unit(outcomes, weights):
    """Return a power of two near the spread of outcomes, or near their size where all are equal."""
    size = 0.0
    for i in range(len(outcomes)):
        size = max(size, abs(outcomes[i]))
    if size == 0.0:
        return 1.0
    mean = 0.0
    for i in range(len(outcomes)):
        mean += weights[i] * (outcomes[i] / size)
    square = 0.0
    for i in range(len(outcomes)):
        square += weights[i] * (outcomes[i] / size - mean) ** 2
    spread = math.sqrt(square)
    return power_of_two(size * (spread if spread > 1e-12 else 1.0))


@kernel()
def _common_unit(spread, scale):
    """Return the power of two by which all columns are divided beyond their own units."""
    largest, count = 0.0, 0
    for j in range(len(spread)):
        largest = max(largest, spread[j] / scale[j])
        count += spread[j] > 0.0
    if count == 0:
        return 1.0
    square = 0.0
    for j in range(len(spread)):
        square += (spread[j] / scale[j] / largest) ** 2
    return power_of_two(math.sqrt(square / count) * largest)


@kernel()
def plain_form(request, contexts, outcomes, masses, scale):
    """Return whether these formulas do, and the form of a problem with its units.

    ``scale`` holds the units of the columns, or is filled with their spreads.
    """
    order, sums = distinct_rows(contexts, outcomes, masses)
    n, s = len(order), contexts.shape[1]
    rows, given, weights, total = np.empty((n, s)), np.empty(n), np.empty(n), sums.sum()
    for i in range(n):
        weights[i], given[i] = sums[i] / total, outcomes[order[i]]
        for j in range(s):
            rows[i, j] = contexts[order[i], j]
    spread = column_spread(rows, weights)
    plain, varies = True, False
    for j in range(s):
        if not request.own_scale:
            scale[j] = spread[j]
        plain = plain and scale[j] > 0.0
        varies = varies or spread[j] > 0.0
    plain = plain and varies
    common, unit = _common_unit(spread, scale) if plain else 1.0, _outcome_unit(given, weights)
    sizes = np.zeros(s)
    for j in range(s):
        scale[j] *= common
        for i in range(n):
            rows[i, j] = rows[i, j] / scale[j] if plain else 0.0
            sizes[j] = max(sizes[j], abs(rows[i, j]))
    for i in range(n):
        given[i] /= unit
    up, down = request.up / request.cost_unit, request.down / request.cost_unit
    decision, slopes = constant_order(given, weights, up, down)
    for i in range(n):
        sums[i] = weights[i] * slopes[i]
    gradient = weighted_sum(rows, sums)
    largest = math.sqrt(dot(gradient, gradient))
    largest /= max(up, down) if request.order == 1 else math.sqrt(up * down)
    radius = request.radius / common
    turned = unit / common if request.order == 1 else (unit / common) ** 2
    form = PlainForm(
        rows, given, weights, sizes, slopes, decision,
        gap_floor(given, weights, decision, up, down), request.intercept, up, down,
        radius, request.order, 1.0 / (request.outcome_cost * turned),
    )  # fmt: skip
    plain = plain and math.isfinite(largest) and radius > SMALL_SHARE * largest
    return plain, form, common, unit
