"""DA-SGD on a stream, compiled: running scale, step rules and averages around the batch kernels.

Every row goes through ``free_steps`` or ``general_steps``, the kernels of ``fit``, one at a time.
What is added here is what a stream needs: columns are scaled by their running mean and spread,
parameters are kept in the user's units (so that a change of the scale moves no decision), steps may
follow a given rule, the past may be forgotten, and decisions come from an average. ``online_twin``
has the formulas.

``table`` has a row for each of MEAN .. UPPER and a column for each context column; ``scalars`` has a
row for each product: the running numbers of ``adaptive``, then those named here.
"""

import numpy as np

from surefoot.engines.adaptive import (
    AVERAGED,
    AVERAGED_INTERCEPT,
    INTERCEPT,
    INTERCEPT_SQUARES,
    INTERCEPT_TRAVELLED,
    MULTIPLIER_SQUARES,
    N_SCALARS,
    SQUARES,
    START,
    TRAVELLED,
    free_steps,
)
from surefoot.engines.compiling import kernel
from surefoot.engines.general import general_steps
from surefoot.engines.online_constants import (
    ADAPTIVE_RULE,
    AVERAGING,
    BOXED,
    CONSTANT_SHARE,
    COUNT,
    DECAYING_RULE,
    DEVIATIONS,
    FROZEN,
    HELD_ROWS,
    HIGH_Y,
    LOW_Y,
    LOWER,
    MEAN,
    ORDER,
    OUTCOME_COST,
    RADIUS,
    RADIUS_ROWS,
    SCALED,
    SETTLED_ROWS,
    SETTLED_SQUARES,
    STEP_RULE,
    STEP_SIZE,
    TAIL,
    UPPER,
    WINDOW,
    WITH_INTERCEPT,
)

# Intercept of the averaged policy (centred), and of the same policy in the user's units.
MEAN_INTERCEPT, OFFSET = N_SCALARS, N_SCALARS + 1
STREAM_SCALARS = N_SCALARS + 2


@kernel()
def _take_into_scale(row, table, theta, average, scalars, options):
    """Update mean and spread of each column; intercepts follow the mean, so that no decision moves."""
    window = options[WINDOW]
    for j in range(row.shape[0]):
        if np.isnan(row[j]) or table[COUNT, j] >= SETTLED_ROWS:
            continue
        table[COUNT, j] += 1.0
        forget = window > 0.0 and table[COUNT, j] > window
        if forget:
            # The sum of a fit over more rows than the window is cut to what the window would hold.
            table[DEVIATIONS, j] *= (window - 1.0) / (table[COUNT, j] - 1.0)
            table[COUNT, j] = window
        away = row[j] - table[MEAN, j]
        shift = away / table[COUNT, j]
        table[MEAN, j] += shift
        table[DEVIATIONS, j] += away * (row[j] - table[MEAN, j])
        if options[WITH_INTERCEPT] > 0.0:
            for p in range(theta.shape[0]):
                scalars[p, INTERCEPT] += theta[p, j] * shift
                scalars[p, START] += theta[p, j] * shift
                scalars[p, MEAN_INTERCEPT] += average[p, j] * shift


@kernel()
def _spread(mean, deviations, count):
    """Standard deviation of a column, zero where it is only rounding or nothing was seen."""
    spread = np.sqrt(deviations / max(count, 1.0))
    return spread if spread > CONSTANT_SHARE * abs(mean) else 0.0


@kernel()
def _arrange(row, table, options, order, scale, scaled):
    """Write the scaled row, movable columns first; return how many those are."""
    size = row.shape[0]
    first = 0
    last = size
    for j in range(size):
        spread = _spread(table[MEAN, j], table[DEVIATIONS, j], table[COUNT, j])
        unit = spread if options[SCALED] > 0.0 and spread > 0.0 else 1.0
        if table[FROZEN, j] == 0.0 and (options[SCALED] == 0.0 or spread > 0.0):
            place = first
            first += 1
        else:
            last -= 1
            place = last
        order[place] = j
        scale[place] = unit
        value = 0.0
        if table[COUNT, j] >= HELD_ROWS:
            value = table[MEAN, j] if np.isnan(row[j]) else row[j]
            if options[WITH_INTERCEPT] > 0.0:
                value -= table[MEAN, j]
        scaled[0, place] = value / unit
    return first


@kernel()
def _set_step(scalars, options, time):
    """Impose a given step size, where the rule is not adaptive."""
    if options[STEP_RULE] == ADAPTIVE_RULE:
        return
    step = options[STEP_SIZE]
    if options[STEP_RULE] == DECAYING_RULE:
        step /= np.sqrt(time)
    scalars[SQUARES] = SETTLED_SQUARES
    scalars[INTERCEPT_SQUARES] = SETTLED_SQUARES
    scalars[TRAVELLED] = step * np.sqrt(SETTLED_SQUARES)
    scalars[INTERCEPT_TRAVELLED] = step * np.sqrt(SETTLED_SQUARES)


@kernel()
def _decide(row, table, average, scalars, options, decided):
    """Write the averaged policy's decision for each product."""
    for p in range(average.shape[0]):
        decision = scalars[p, MEAN_INTERCEPT]
        for j in range(row.shape[0]):
            if options[WITH_INTERCEPT] == 0.0:
                decision += average[p, j] * (table[MEAN, j] if np.isnan(row[j]) else row[j])
            elif not np.isnan(row[j]):
                decision += average[p, j] * (row[j] - table[MEAN, j])
        decided[p] = decision


@kernel()
def stream_steps(
    rows, outcomes, table, theta, average, scalars, pieces, options, clock, running, decided
):  # fmt: skip
    """One step for each row and product, in order, updating all that is not data or rules in place.

    Missing entries of ``rows`` are NaN. ``clock[0]`` counts rows; ``running`` says whether rows enter
    the scale. Outcomes have shape (rows, products), theta and average (products, columns). ``decided``
    (rows, products) gets the decision for each row before the row is learned, without limits.
    """
    size = theta.shape[1]
    order, scale, scaled = np.zeros(size, np.int64), np.ones(size), np.zeros((1, size))
    lower, upper, params = np.zeros(size), np.zeros(size), np.zeros(size)
    unused, one_outcome, norms = np.zeros(size), np.zeros(1), np.zeros(1)
    slope_sums, visits, draws = np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.int64)
    norm = int(options[ORDER])
    kappa, intercept, boxed = options[OUTCOME_COST], options[WITH_INTERCEPT] > 0.0, options[BOXED] > 0.0
    for i in range(rows.shape[0]):
        _decide(rows[i], table, average, scalars, options, decided[i])
        if running:
            _take_into_scale(rows[i], table, theta, average, scalars, options)
        n_movable = _arrange(rows[i], table, options, order, scale, scaled)
        clock[0] += 1.0
        time = clock[0] if options[WINDOW] == 0.0 else min(clock[0], options[WINDOW])
        rho = options[RADIUS]
        if options[RADIUS_ROWS] > 0.0 and time > options[RADIUS_ROWS]:
            rho *= np.sqrt(options[RADIUS_ROWS] / time)
        norms[0] = 0.0
        for k in range(size):
            norms[0] += scaled[0, k] * scaled[0, k]
            if boxed:
                centre = table[MEAN, order[k]] if intercept else 0.0
                lower[k] = (table[LOWER, order[k]] - centre) / scale[k]
                upper[k] = (table[UPPER, order[k]] - centre) / scale[k]
        for p in range(theta.shape[0]):
            own = scalars[p]
            _set_step(own, options, time)
            for k in range(size):
                params[k] = theta[p, order[k]] * scale[k]
            one_outcome[0] = outcomes[i, p]
            if boxed:
                general_steps(
                    scaled, one_outcome, draws, 1, pieces[p, 0], pieces[p, 1], pieces[p, 2],
                    rho, norm, kappa, n_movable, intercept, boxed, lower, upper,
                    options[LOW_Y], options[HIGH_Y], 0, params, own, unused, slope_sums, visits,
                )  # fmt: skip
            else:
                free_steps(
                    scaled, one_outcome, norms, draws, pieces[p, 0], pieces[p, 1], pieces[p, 2],
                    rho, norm, 1.0 / kappa, n_movable, intercept,
                    params, own, unused, slope_sums, visits,
                )  # fmt: skip
            _finish_row(p, theta, average, own, params, order, scale, options, clock[0], time)
    for p in range(theta.shape[0]):
        offset = scalars[p, MEAN_INTERCEPT]
        if intercept:
            for j in range(size):
                offset -= average[p, j] * table[MEAN, j]
        scalars[p, OFFSET] = offset


@kernel()
def _finish_row(p, theta, average, own, params, order, scale, options, seen, time):
    """Put the step back into the user's units, into the average, and forget what is too old."""
    share = (1.0 + TAIL) / (time + TAIL) if options[AVERAGING] > 0.0 else 1.0
    for k in range(params.shape[0]):
        j = order[k]
        theta[p, j] = params[k] / scale[k]
        average[p, j] = share * theta[p, j] + (1.0 - share) * average[p, j]
    own[MEAN_INTERCEPT] = share * own[INTERCEPT] + (1.0 - share) * own[MEAN_INTERCEPT]
    own[AVERAGED] = own[AVERAGED_INTERCEPT] = 0.0
    window = options[WINDOW]
    if window > 0.0 and seen > window:
        keep = 1.0 - 1.0 / window
        own[SQUARES] *= keep
        own[INTERCEPT_SQUARES] *= keep
        own[MULTIPLIER_SQUARES] *= keep


@kernel()
def scale_rows(rows, table, options, running, filled, scales, movable):
    """Take rows into the scale if ``running``; write each without gaps, with the scale of its time.

    The general engine steps on these; ``filled``, ``scales``, ``movable`` have the shape of ``rows``.
    """
    none, no_scalars = np.zeros((0, rows.shape[1])), np.zeros((0, STREAM_SCALARS))
    for i in range(rows.shape[0]):
        if running:
            _take_into_scale(rows[i], table, none, none, no_scalars, options)
        for j in range(rows.shape[1]):
            spread = _spread(table[MEAN, j], table[DEVIATIONS, j], table[COUNT, j])
            filled[i, j] = table[MEAN, j] if np.isnan(rows[i, j]) else rows[i, j]
            scaled = options[SCALED] > 0.0
            scales[i, j] = spread if scaled and spread > 0.0 else 1.0
            free = table[FROZEN, j] == 0.0 and (not scaled or spread > 0.0)
            movable[i, j] = 1.0 if free else 0.0
