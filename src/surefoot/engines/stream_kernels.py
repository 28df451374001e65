"""DA-SGD on a stream, compiled: running scale, step rules and averages around the update of ``fit``.

Every row goes through ``affine_steps``, one at a time. What is added here is what a stream needs:
columns are scaled by their running mean and spread, parameters are kept in the user's units (so that a
change of the scale moves no decision), steps may follow a given rule, the past may be forgotten, and
decisions come from an average. ``tests.oracles.stream_twin`` has the formulas.

A value far outside what its column has shown so far is taken as the nearest value that is not, in the
scale, in the step and in decisions: one slip of a pen must not cost the thousand rows that follow.
"""

from typing import Any

import numpy as np

from surefoot.engines.affine_kernels import NUMBERS, affine_steps
from surefoot.engines.compiling import kernel

# What is known of a column: running mean, summed squared deviations and rows, the range that was seen
# and the one in which values are taken as they are, whether it never moves, its support, how many of
# its values were cut, and whether none may be.
COLUMN = np.dtype(
    [(name, "f8") for name in (
        "mean", "deviations", "count", "low", "high", "least", "most", "frozen", "lower", "upper",
        "cut", "uncut",
    )]
)  # fmt: skip
# The rules of a stream: its radius and the rows from which that falls (0: never), whether columns are
# scaled, the kind and size of steps, whether decisions are averaged, and how many rows to look back.
RULES = np.dtype(
    [(name, "f8") for name in (
        "radius", "radius_rows", "scaled", "step_rule", "step_size", "averaging", "window",
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
def _set_range(column):
    """Set the range in which values are taken as they are."""
    spread = _spread(column)
    settled = column.count >= SETTLED_ROWS or column.uncut > 0.0
    if settled or column.count < CUT_ROWS or spread == 0.0:
        column.least = -np.inf
        column.most = np.inf
    else:
        column.least = min(column.low, column.mean - CUT_SPREADS * spread)
        column.most = max(column.high, column.mean + CUT_SPREADS * spread)


@kernel(inline=True)
def _known(value, column):
    """Return a value as it is taken: the mean where it is missing, the nearest where it is far away."""
    if np.isnan(value):
        return column.mean
    return min(column.most, max(column.least, value))


@kernel()
def _take_in(row, columns, theta, average, numbers, window, with_intercept, scaled_columns):
    """Update mean and spread of each column; intercepts follow the mean, so that no decision moves."""
    for j in range(row.shape[0]):
        column = columns[j]
        if np.isnan(row[j]) or column.count >= SETTLED_ROWS:
            continue
        value = _known(row[j], column)
        cut = value != row[j]
        before = _spread(column) if cut else 0.0
        column.count += 1.0
        if window > 0.0 and column.count > window:
            # The sum of a fit over more rows than the window is cut to what the window would hold.
            column.deviations *= (window - 1.0) / (column.count - 1.0)
            column.count = window
        away = value - column.mean
        shift = away / column.count
        column.mean += shift
        column.deviations += away * (value - column.mean)
        column.low = min(column.low, value)
        column.high = max(column.high, value)
        for p in range(theta.shape[0]):
            if with_intercept:
                numbers[p].intercept += theta[p, j] * shift
                numbers[p].start += theta[p, j] * shift
                numbers[p].mean_intercept += average[p, j] * shift
            if before > 0.0 and with_intercept:
                # What was learned within a narrow range says nothing of the wider one.
                share = min(1.0, before / _spread(column))
                theta[p, j] *= share
                average[p, j] *= share
                if not scaled_columns:
                    numbers[p].travelled *= share
        if cut:
            column.cut += 1.0
        _set_range(column)


def set_ranges(columns: Any) -> None:
    """Set the range of every column from its running numbers, as the steps of a stream do.

    Not compiled: a fit that is saved would wake Numba for this alone, which takes longer than saving.
    """
    spread = np.sqrt(columns["deviations"] / np.maximum(columns["count"], 1.0))
    constant = spread <= CONSTANT_SHARE * np.abs(columns["mean"])
    settled = (columns["count"] >= SETTLED_ROWS) | (columns["uncut"] > 0.0)
    free = settled | (columns["count"] < CUT_ROWS) | constant | (spread == 0.0)
    least = np.minimum(columns["low"], columns["mean"] - CUT_SPREADS * spread)
    most = np.maximum(columns["high"], columns["mean"] + CUT_SPREADS * spread)
    columns["least"] = np.where(free, -np.inf, least)
    columns["most"] = np.where(free, np.inf, most)


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
    rows, outcomes, offsets, columns, theta, average, numbers, clock, slopes, intercepts, steepest,
    outcome_bounds, geometry, rules, running, decided,
):  # fmt: skip
    """One step for each row and product, in order, updating all that is not data or rules in place.

    Missing entries of ``rows`` are NaN. ``clock[0]`` counts rows; ``running`` says whether rows enter
    the scale. Outcomes and offsets have shape (rows, products), theta and average (products, columns),
    slopes and intercepts (products, lines); offsets of no row at all are zeros. ``decided`` (rows,
    products) gets the decision for each row before the row is learned, without offsets and limits.
    """
    size = theta.shape[1]
    # Few arrays: for a single row, asking for memory takes as long as the step.
    order, scaled, wide = np.zeros(size, np.int64), np.zeros((1, size)), np.zeros((6, size))
    ones, whole = np.zeros((5, 1)), np.zeros((2, 1), np.int64)
    scale, lower, upper, params, unused, zero = wide[0], wide[1], wide[2], wide[3], wide[4], wide[5]
    one_outcome, norms, low_y, high_y, slope_sums = ones[0], ones[1], ones[2], ones[3], ones[4]
    visits, draws = whole[0], whole[1]
    rule = rules[0]
    window, radius = rule.window, rule.radius
    intercept, boxed = geometry[0].intercept, geometry[0].boxed
    for i in range(rows.shape[0]):
        decide_rows(rows[i : i + 1], columns, average, numbers, intercept, decided[i : i + 1])
        if running:
            _take_in(rows[i], columns, theta, average, numbers, window, intercept, rule.scaled > 0.0)
        movable = _arrange(rows[i], columns, rule.scaled > 0.0, intercept, order, scale, scaled)
        clock[0] += 1.0
        time = clock[0] if window == 0.0 else min(clock[0], window)
        rho = radius
        if rule.radius_rows > 0.0 and time > rule.radius_rows:
            rho *= np.sqrt(rule.radius_rows / time)
        geometry[0].movable = movable
        geometry[0].radius = rho
        norms[0] = 0.0
        for k in range(size):
            norms[0] += scaled[0, k] * scaled[0, k]
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
            offset = offsets[i, p] if len(offsets) else 0.0
            one_outcome[0] = outcomes[i, p] - offset
            low_y[0], high_y[0] = outcome_bounds[0] - offset, outcome_bounds[1] - offset
            geometry[0].steepest = steepest[p]
            affine_steps(
                scaled, one_outcome, low_y, high_y, norms, draws, slopes[p], intercepts[p],
                lower, upper, geometry, params, numbers, p, zero, unused, slope_sums, visits,
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
    none, no_numbers = np.zeros((0, rows.shape[1])), np.zeros(0, NUMBERS)
    scaled = rules[0].scaled > 0.0
    for i in range(rows.shape[0]):
        if running:
            _take_in(rows[i], columns, none, none, no_numbers, rules[0].window, 0, scaled)
        for j in range(rows.shape[1]):
            spread = _spread(columns[j])
            filled[i, j] = _known(rows[i, j], columns[j])
            scales[i, j] = spread if scaled and spread > 0.0 else 1.0
            means[i, j], spreads[i, j] = columns[j].mean, spread
            free = columns[j].frozen == 0.0 and (not scaled or spread > 0.0)
            movable[i, j] = 1.0 if free else 0.0
