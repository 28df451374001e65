"""DA-SGD on a stream, compiled: running scale, step rules and averages around the update of ``fit``.

Every row goes through ``one_step`` or, in a box, ``general_steps``. What is added here is what a
stream needs: columns are scaled by their running mean and spread, parameters are kept in the user's
units (so that a change of the scale moves no decision), steps may follow a given rule, the past may be
forgotten, and decisions come from an average. ``tests.oracles.stream_twin`` has the formulas.

A value far outside what its column has shown so far is taken as the nearest value that is not, in the
scale, in the step and in decisions: one slip of a pen must not cost the thousand rows that follow.
"""

from typing import Any

import numpy as np

from surefoot.engines.affine_kernels import general_steps, one_step
from surefoot.engines.compiling import kernel
from surefoot.typing import FloatArray

# What is known of a column: running mean, summed squared deviations and rows, the range that was seen,
# whether it never moves, its support, how many of its values were cut, and whether none may be.
_KNOWN = ["mean", "deviations", "count", "low", "high", "frozen", "lower", "upper", "cut", "uncut"]
COLUMN = np.dtype([(name, "f8") for name in _KNOWN])
# What states of streams held of a column in earlier versions.
FORMER_COLUMN = np.dtype([(name, "f8") for name in (*_KNOWN[:5], "least", "most", *_KNOWN[5:])])
# The rules of a stream: its radius and the rows from which that falls (0: never), whether columns are
# scaled, the kind and size of steps, whether decisions are averaged, how many rows to look back, and
# the support of outcomes.
RULES = np.dtype(
    [(name, "f8") for name in (
        "radius", "radius_rows", "scaled", "step_rule", "step_size", "averaging", "window", "low_y",
        "high_y",
    )]
)  # fmt: skip
ADAPTIVE_RULE, CONSTANT_RULE, DECAYING_RULE = 0.0, 1.0, 2.0
# A column's parameter stays at zero until the column was seen this often; its spread is a guess before.
HELD_ROWS = 8.0
# From so many rows on, values beyond the range seen and so many spreads from the mean are cut.
CUT_ROWS, CUT_SPREADS = 16.0, 6.0
# A column with so many rows keeps its scale for ever: a fit without intercept knows no mean.
SETTLED_ROWS = 1e18
# A spread that is this small a share of the mean is rounding.
CONSTANT_SHARE = 1e-12
# A given step size is the distance over gradients with sums so large that one gradient adds nothing.
SETTLED_SQUARES = 1e200
# Row t enters the average with weight (1 + TAIL) / (t + TAIL): the newest tenth or so counts.
TAIL = 8.0
# A window of fewer rows than this for each column throws the policy about, so it forgets how far the
# policy once was, too, down to the size of its average. In longer ones the average lags behind a best
# policy that turns, and what was travelled tells better how far that is.
SHORT_WINDOW = 10.0


@kernel(inline=True)
def _spread(column):
    """Standard deviation of a column, zero where it is only rounding or nothing was seen."""
    spread = np.sqrt(column.deviations / max(column.count, 1.0))
    return spread if spread > CONSTANT_SHARE * abs(column.mean) else 0.0


@kernel(inline=True)
def _known(value, column):
    """Return a value as it is taken: the mean where it is missing, the nearest where it is far away."""
    if column.low <= value <= column.high:  # as nearly all are
        return value
    if np.isnan(value):
        return column.mean
    far = CUT_SPREADS * _spread(column)
    if column.uncut > 0.0 or column.count < CUT_ROWS or far == 0.0:
        return value
    least, most = min(column.low, column.mean - far), max(column.high, column.mean + far)
    return min(most, max(least, value))


@kernel()
def _take_in(row, columns, window, shifts, shares):
    """Update mean and spread of each column.

    Write by how much each mean moved, and the old spread's share of a spread that a far value widened
    (1 where none did).
    """
    for j in range(row.shape[0]):
        column = columns[j]
        shifts[j] = 0.0
        shares[j] = 1.0
        if np.isnan(row[j]) or column.count >= SETTLED_ROWS:
            continue
        value = _known(row[j], column)
        before = _spread(column) if value != row[j] else 0.0
        column.count += 1.0
        if window > 0.0 and column.count > window:
            # The sum of a fit over more rows than the window is cut to what the window would hold.
            column.deviations *= (window - 1.0) / (column.count - 1.0)
            column.count = window
        away = value - column.mean
        shifts[j] = away / column.count
        column.mean += shifts[j]
        column.deviations += away * (value - column.mean)
        column.low = min(column.low, value)
        column.high = max(column.high, value)
        if value != row[j]:
            column.cut += 1.0
            if before > 0.0:
                shares[j] = min(1.0, before / _spread(column))


@kernel()
def _follow_scale(theta, average, own, shifts, shares, scaled_columns):
    """Have a policy with intercept follow its columns' means, so that no decision moves.

    What was learned within a narrow range says nothing of a wider one: there the policy gives way.
    """
    newest, start, mean = own.intercept, own.start, own.mean_intercept
    for j in range(theta.shape[0]):
        newest += theta[j] * shifts[j]
        start += theta[j] * shifts[j]
        mean += average[j] * shifts[j]
        if shares[j] < 1.0:
            theta[j] *= shares[j]
            average[j] *= shares[j]
            if not scaled_columns:
                own.travelled *= shares[j]
    own.intercept, own.start, own.mean_intercept = newest, start, mean


def known_rows(rows: FloatArray, columns: Any) -> FloatArray:
    """Return rows as the steps of a stream take them: without gaps, far values as the nearest.

    Not compiled: a policy that decides would wake Numba for this alone, which takes longer.
    """
    spread = np.sqrt(columns["deviations"] / np.maximum(columns["count"], 1.0))
    constant = spread <= CONSTANT_SHARE * np.abs(columns["mean"])
    free = (columns["uncut"] > 0.0) | (columns["count"] < CUT_ROWS) | constant | (spread == 0.0)
    far = np.where(free, np.inf, CUT_SPREADS * spread)
    least = np.minimum(columns["low"], columns["mean"] - far)
    most = np.maximum(columns["high"], columns["mean"] + far)
    return np.clip(np.where(np.isnan(rows), columns["mean"], rows), least, most)


@kernel()
def _arrange(row, columns, scaled_columns, with_intercept, order, scale, scaled):
    """Write the scaled row, movable columns first; return how many those are."""
    size = row.shape[0]
    first = 0
    last = size
    for j in range(size):
        column = columns[j]
        spread = _spread(column)
        unit = spread if scaled_columns and spread > 0.0 else 1.0
        if column.frozen == 0.0 and (not scaled_columns or spread > 0.0):
            place = first
            first += 1
        else:
            last -= 1
            place = last
        order[place] = j
        scale[place] = unit
        value = 0.0
        if column.count >= HELD_ROWS:
            value = _known(row[j], column)
            if with_intercept:
                value -= column.mean
        scaled[0, place] = value / unit
    return first


@kernel(inline=True)
def _set_step(own, rules, time):
    """Impose a given step size, where the rule is not adaptive."""
    if rules.step_rule == ADAPTIVE_RULE:
        return
    step = rules.step_size
    if rules.step_rule == DECAYING_RULE:
        step /= np.sqrt(time)
    own.squares = SETTLED_SQUARES
    own.intercept_squares = SETTLED_SQUARES
    own.travelled = step * np.sqrt(SETTLED_SQUARES)
    own.intercept_travelled = step * np.sqrt(SETTLED_SQUARES)


@kernel()
def decide_rows(rows, columns, average, numbers, with_intercept, decided):
    """Write the averaged policy's decision for each row and product, shape (rows, products)."""
    for i in range(rows.shape[0]):
        for p in range(average.shape[0]):
            decision = numbers[p].mean_intercept
            for j in range(rows.shape[1]):
                value = _known(rows[i, j], columns[j])
                if with_intercept:
                    value -= columns[j].mean
                decision += average[p, j] * value
            decided[i, p] = decision


@kernel()
def stream_steps(
    rows, outcomes, columns, theta, average, numbers, clock, lines, geometry, rules, running, decided
):  # fmt: skip
    """One step for each row and product, in order, updating all that is not data or rules in place.

    Missing entries of ``rows`` are NaN. ``clock[0]`` counts rows; ``running`` says whether rows enter
    the scale. Outcomes have shape (rows, products), theta and average (products, columns); ``lines``
    (2, products, lines) are slopes and intercepts. ``decided`` (rows, products) comes with the offset
    of each row and leaves with the decision before the row was learned, without limits.

    Few arguments and few arrays: for a single row, handing over an array or asking for memory takes as
    long as a tenth of the step.
    """
    size = theta.shape[1]
    order, scaled, wide = np.zeros(size, np.int64), np.zeros((1, size)), np.zeros((8, size))
    ones, whole = np.zeros((4, 1)), np.zeros((2, 1), np.int64)
    scale, lower, upper, params, unused, zero = wide[0], wide[1], wide[2], wide[3], wide[4], wide[5]
    shifts, shares = wide[6], wide[7]
    one_outcome, low_y, high_y, slope_sums = ones[0], ones[1], ones[2], ones[3]
    visits, draws, offsets = whole[0], whole[1], np.empty(theta.shape[0])
    rule = rules[0]
    window, radius = rule.window, rule.radius
    slopes, intercepts, last = lines[0], lines[1], lines.shape[2] - 1
    intercept, boxed = geometry[0].intercept, geometry[0].boxed
    for i in range(rows.shape[0]):
        for p in range(len(offsets)):
            offsets[p] = decided[i, p]
        decide_rows(rows[i : i + 1], columns, average, numbers, intercept, decided[i : i + 1])
        if running:
            _take_in(rows[i], columns, window, shifts, shares)
            for p in range(theta.shape[0] if intercept else 0):
                _follow_scale(theta[p], average[p], numbers[p], shifts, shares, rule.scaled > 0.0)
        movable = _arrange(rows[i], columns, rule.scaled > 0.0, intercept, order, scale, scaled)
        clock[0] += 1.0
        time = clock[0] if window == 0.0 else min(clock[0], window)
        rho = radius
        if rule.radius_rows > 0.0 and time > rule.radius_rows:
            rho *= np.sqrt(rule.radius_rows / time)
        geometry[0].movable = movable
        geometry[0].radius = rho
        norm = 0.0
        for k in range(size):
            norm += scaled[0, k] * scaled[0, k]
            if boxed:
                column = columns[order[k]]
                centre = column.mean if intercept else 0.0
                lower[k] = (column.lower - centre) / scale[k]
                upper[k] = (column.upper - centre) / scale[k]
        for p in range(theta.shape[0]):
            own = numbers[p]
            _set_step(own, rule, time)
            for k in range(size):
                params[k] = theta[p, order[k]] * scale[k]
            decided[i, p] += offsets[p]
            geometry[0].steepest = max(slopes[p, last], -slopes[p, 0])
            if boxed:
                one_outcome[0] = outcomes[i, p] - offsets[p]
                low_y[0], high_y[0] = rule.low_y - offsets[p], rule.high_y - offsets[p]
                general_steps(
                    scaled, one_outcome, low_y, high_y, draws, slopes[p], intercepts[p],
                    lower, upper, geometry, params, own, zero, unused, slope_sums, visits,
                )  # fmt: skip
            else:
                one_step(
                    scaled[0], outcomes[i, p] - offsets[p], norm, geometry[0], slopes[p],
                    intercepts[p], params, own,
                )  # fmt: skip
            share = (1.0 + TAIL) / (time + TAIL) if rule.averaging > 0.0 else 1.0
            squared = 0.0
            for k in range(size):
                j = order[k]
                theta[p, j] = params[k] / scale[k]
                average[p, j] = share * theta[p, j] + (1.0 - share) * average[p, j]
                squared += (average[p, j] * scale[k]) ** 2
            own.mean_intercept = share * own.intercept + (1.0 - share) * own.mean_intercept
            own.averaged = 0.0
            own.averaged_intercept = 0.0
            if window > 0.0 and clock[0] > window:
                keep = 1.0 - 1.0 / window
                own.squares *= keep
                own.intercept_squares *= keep
                own.multiplier_squares *= keep
                if window < SHORT_WINDOW * size:
                    own.travelled = max(keep * own.travelled, np.sqrt(squared))


@kernel()
def scale_rows(rows, columns, rules, running, filled, scales, movable, means, spreads):
    """Take rows into the scale if ``running``; write each without gaps, with the scale of its time.

    The autodiff engine steps on these; what is written has the shape of ``rows``: the row itself, the
    unit of a move, whether it may move, and the running mean and spread.
    """
    unused = np.empty((2, rows.shape[1]))
    scaled = rules[0].scaled > 0.0
    for i in range(rows.shape[0]):
        if running:
            _take_in(rows[i], columns, rules[0].window, unused[0], unused[1])
        for j in range(rows.shape[1]):
            spread = _spread(columns[j])
            filled[i, j] = _known(rows[i, j], columns[j])
            scales[i, j] = spread if scaled and spread > 0.0 else 1.0
            means[i, j], spreads[i, j] = columns[j].mean, spread
            free = columns[j].frozen == 0.0 and (not scaled or spread > 0.0)
            movable[i, j] = 1.0 if free else 0.0
