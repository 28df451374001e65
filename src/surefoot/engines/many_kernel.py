"""Many small problems, each to its certified gap, without Python between them.

One call prepares the rows of each problem (units, order, equal rows joined), turns them to their
principal axes, steps the primal-dual method and checks both bounds, just as ``PrimalDualRun`` under
``solvers.loop.run_until`` does for a problem alone, with the same random draws. A problem that needs
more than these few formulas (a column that does not move, a negligible radius, many looks) is left to
that path, and says so.
"""

import math

import numpy as np

from surefoot.engines.bound_kernels import (
    dot,
    line_cost,
    lower_bound,
    relative_gap,
    weighted_sum,
    worst_value,
)
from surefoot.engines.canonical import DAMPING_SHARE, RANK_SHARE
from surefoot.engines.compiling import kernel
from surefoot.engines.eigen_kernel import symmetric_eigenvectors
from surefoot.engines.form_kernels import plain_form
from surefoot.engines.primal_dual import FIRST_BALANCE, FIRST_SHARE, SAFETY, SMALLEST_PARAMETER
from surefoot.engines.primal_dual_kernel import primal_dual_steps
from surefoot.engines.row_draws import drawn_rows

# What a problem asks for and what it is told, one record each.
REQUEST = np.dtype(
    [("rows", "i8"), ("columns", "i8"), ("first", "i8"), ("first_context", "i8"),
     ("first_column", "i8"), ("radius", "f8"), ("order", "i8"), ("outcome_cost", "f8"), ("up", "f8"),
     ("down", "f8"), ("cost_unit", "f8"), ("intercept", "?"), ("own_scale", "?"), ("gap_tol", "f8"),
     ("max_steps", "i8")]
)  # fmt: skip
# A kernel cannot be interrupted: after so many looks a problem is left to the path for single ones.
MOST_LOOKS = 16
REPLY = np.dtype(
    [("solved", "?"), ("intercept", "f8"), ("upper", "f8"), ("lower", "f8"), ("floor", "f8"),
     ("multiplier", "f8"), ("steps", "i8"), ("looks", "i8")]
)  # fmt: skip
# Of each look: steps so far, both bounds and the gap.
LOOK = 4
TINY = float(np.finfo(np.float64).tiny)


@kernel()
def _principal_axes(columns, weights):
    """Return the principal axes of weighted columns, one a row, and second moments along them."""
    n, s = columns.shape
    tall = n > s
    side = s if tall else n
    gram = np.zeros((side, side))
    if tall:
        for i in range(n):
            for j in range(s):
                weighted = weights[i] * columns[i, j]
                for k in range(j + 1):
                    gram[j, k] += weighted * columns[i, k]
    else:
        for i in range(n):
            for k in range(i + 1):
                root = math.sqrt(weights[i] * weights[k])
                gram[i, k] = root * dot(columns[i], columns[k])
    for i in range(side):
        for k in range(i):
            gram[k, i] = gram[i, k]
    moments, vectors = symmetric_eigenvectors(gram)
    first = 0
    while first < side and moments[first] <= RANK_SHARE * max(moments[side - 1], 0.0):
        first += 1
    axes, kept = np.zeros((side - first, s)), np.empty(side - first)
    for k in range(first, side):
        kept[k - first] = moments[k]
        axis = axes[k - first]
        if tall:
            for j in range(s):
                axis[j] = vectors[k, j]
        else:
            for i in range(n):
                share = math.sqrt(weights[i] / moments[k]) * vectors[k, i]
                for j in range(s):
                    axis[j] += share * columns[i, j]
    return axes, kept


@kernel()
def _axes(columns, weights):
    """Axes, moments along them, and the largest of these but for the mean's own.

    A mean that is far longer than the spread (of rows that were not centred) gets an axis of its own.
    """
    n, s = columns.shape
    mean, square = weighted_sum(columns, weights), 0.0
    for i in range(n):
        square += weights[i] * dot(columns[i], columns[i])
    length = math.sqrt(dot(mean, mean))
    if length**2 <= max(square - length**2, 0.0) or s == 1:
        axes, moments = _principal_axes(columns, weights)
        return axes, moments, moments[len(moments) - 1] if len(moments) > 0 else 0.0
    rest, moment = np.empty((n, s)), 0.0
    for i in range(n):
        along = dot(columns[i], mean) / length
        moment += weights[i] * along**2
        for j in range(s):
            rest[i, j] = columns[i, j] - along * mean[j] / length
    principal, variances = _principal_axes(rest, weights)
    count = len(variances)
    axes, moments = np.empty((count + 1, s)), np.empty(count + 1)
    for k in range(count):
        along = dot(principal[k], mean) / length
        moments[k] = variances[k]
        for j in range(s):
            axes[k, j] = principal[k, j] - along * mean[j] / length
    moments[count] = moment
    for j in range(s):
        axes[count, j] = mean[j] / length
    return axes, moments, variances[count - 1] if count > 0 else 0.0


@kernel()
def policy_of(form, axes, mean, theta):
    """Return (theta, intercept) in the form's own columns; see ``primal_dual.policy_at``."""
    count, s = axes.shape
    policy, squared = np.zeros(s), 0.0
    for k in range(count):
        if abs(theta[k]) > SMALLEST_PARAMETER:
            squared += theta[k] ** 2
            for j in range(s):
                policy[j] += theta[k] * axes[k, j]
    if not form.intercept:
        return policy, 0.0
    constant = theta[count] if abs(theta[count]) > SMALLEST_PARAMETER else 0.0
    if form.order == 2:
        shift = (form.down - form.up) / (2.0 * math.sqrt(form.up * form.down))
        constant += shift * form.radius * math.sqrt(squared + form.inverse_kappa)
    return policy, constant - dot(mean, policy)


@kernel()
def _rebalanced(balance, theta, theta_before, slopes, slopes_before, metric, sizes, middle):
    """Let theta and the slopes travel equally far in the metric of their step sizes."""
    primal, dual = 0.0, 0.0
    for j in range(len(theta)):
        primal += (theta[j] - theta_before[j]) ** 2 / metric[j]
    for i in range(len(slopes)):
        dual += (slopes[i] - slopes_before[i]) ** 2 * sizes[i] ** 2
    primal, dual = middle * math.sqrt(primal), math.sqrt(dual)
    if primal > 0.0 and dual > 0.0:
        balance *= math.sqrt(min(max(primal / dual / balance, 0.2), 5.0))
    return balance


@kernel()
def canonical_rows(form):
    """Return centred rows along their principal axes (and the constant), axes, mean and metric."""
    n, s = form.contexts.shape
    mean, columns = np.zeros(s), np.empty((n, s))
    if form.intercept:
        mean = weighted_sum(form.contexts, form.weights)
    for i in range(n):
        for j in range(s):
            columns[i, j] = form.contexts[i, j] - mean[j]
    axes, moments, typical = _axes(columns, form.weights)
    count = len(moments)
    size = count + (1 if form.intercept else 0)
    rows, metric = np.ones((n, size)), np.ones(size)
    for i in range(n):
        for k in range(count):
            rows[i, k] = dot(columns[i], axes[k])
    for k in range(count):
        metric[k] = 1.0 / math.sqrt(moments[k] + (DAMPING_SHARE * typical + TINY))
    return rows, axes, mean, metric


@kernel()
def _row_sizes(rows, metric):
    """Return the length of each row in the metric, and the middle one."""
    n, size = rows.shape
    sizes, largest = np.zeros(n), 1e-300
    for i in range(n):
        for j in range(size):
            sizes[i] += rows[i, j] * rows[i, j] * metric[j]
        sizes[i] = math.sqrt(sizes[i])
        largest = max(largest, sizes[i])
    for i in range(n):
        sizes[i] = max(sizes[i], 1e-12 * largest)
    order = np.argsort(sizes, kind="mergesort")
    return sizes, 0.5 * (sizes[order[(n - 1) // 2]] + sizes[order[n // 2]])


@kernel()
def _stepped(form, draws, rows, theta, slopes, gradient, mean_slope, metric, sizes, middle, balance):
    """Take one step per draw, in place; return the mean slope and rebalanced step sizes."""
    n, size, share = len(sizes), len(metric), math.sqrt(SAFETY)
    theta_before, slopes_before = theta.copy(), slopes.copy()
    primal_steps, dual_steps = np.empty(size), np.empty(n)
    for j in range(size):
        primal_steps[j] = share * balance / middle * metric[j]
    for i in range(n):
        dual_steps[i] = share * middle / balance / sizes[i] ** 2
    count = size - (1 if form.intercept else 0)
    mean_slope = primal_dual_steps(
        rows, form.outcomes, form.weights, draws,
        form.up, form.down, form.radius, form.order, form.inverse_kappa, form.intercept, count,
        theta, slopes, gradient, mean_slope, primal_steps, dual_steps,
    )  # fmt: skip
    return mean_slope, _rebalanced(
        balance, theta, theta_before, slopes, slopes_before, metric, sizes, middle
    )


@kernel()
def solve_form(form, gap_tol, max_steps, block, growth, words, looked):
    """Solve a form; return whether it was, the policy, both bounds, the multiplier, steps and looks."""
    n, s = form.contexts.shape
    rows, axes, mean, metric = canonical_rows(form)
    sizes, middle = _row_sizes(rows, metric)
    theta, slopes, weighted, cost = np.zeros(len(metric)), np.zeros(n), np.zeros(n), 0.0
    begun = form.decision if form.intercept else 0.0
    for i in range(n):
        if form.intercept:
            slopes[i] = form.slopes[i]
        weighted[i] = form.weights[i] * slopes[i]
        cost += form.weights[i] * line_cost(begun - form.outcomes[i], form.up, form.down)
    gradient = weighted_sum(rows, weighted)
    balance = FIRST_BALANCE * (max(cost, 1e-300) / (form.up + form.down)) / math.sqrt(n)
    for k in range(len(axes)):
        theta[k] = -FIRST_SHARE * balance / middle * metric[k] * gradient[k]
    if form.intercept:
        theta[len(axes)] = form.decision
    mean_slope = weighted.sum()

    policy, constant = np.zeros(s), begun
    upper, multiplier = worst_value(form, policy, constant)
    lower = lower_bound(form, form.slopes)
    steps, looks = 0, 0
    while True:
        gap = relative_gap(upper, lower, form.floor)
        looked[looks, 0], looked[looks, 1], looked[looks, 2], looked[looks, 3] = (
            steps,
            upper,
            lower,
            gap,
        )
        looks += 1
        solved = gap <= gap_tol
        if solved or steps >= max_steps or looks > MOST_LOOKS:
            return solved, policy, constant, upper, lower, multiplier, steps, looks
        draws = drawn_rows(words, form.weights, min(math.ceil(block), max_steps - steps))
        mean_slope, balance = _stepped(
            form, draws, rows, theta, slopes, gradient, mean_slope, metric, sizes, middle, balance
        )
        steps += len(draws)
        block *= growth
        tried, tried_constant = policy_of(form, axes, mean, theta)
        value, gamma = worst_value(form, tried, tried_constant)
        if value < upper:
            upper, multiplier, policy, constant = value, gamma, tried, tried_constant
        lower = max(lower, lower_bound(form, slopes))


@kernel()
def solve_packed(
    requests, contexts, outcomes, masses, scales, words, growth, first_passes, first_steps,
    thetas, replies, looked,
):  # fmt: skip
    """Solve problems whose rows lie one behind the other; fill in their parameters and replies."""
    for k in range(len(requests)):
        request, reply = requests[k], replies[k]
        n, s = request.rows, request.columns
        # Arrays begin with the first of these problems, which may not be the first of all.
        first, column = (
            request.first - requests[0].first,
            request.first_column - requests[0].first_column,
        )
        start = request.first_context - requests[0].first_context
        X = contexts[start : start + n * s].reshape(n, s)
        scale = scales[column : column + s]
        plain, form, common, unit = plain_form(
            request, X, outcomes[first : first + n], masses[first : first + n], scale
        )
        if not plain:
            reply.solved = False
            continue
        block = float(max(first_passes * len(form.weights), first_steps))
        solved, theta, constant, upper, lower, multiplier, steps, looks = solve_form(
            form, request.gap_tol, request.max_steps, block, growth, words[k], looked[k]
        )
        value_unit = request.cost_unit * unit
        reply.solved, reply.steps, reply.looks = solved, steps, looks
        reply.upper, reply.lower = upper * value_unit, lower * value_unit
        reply.floor, reply.intercept = form.floor * value_unit, constant * unit
        reply.multiplier = multiplier * value_unit / common**request.order
        for j in range(s):
            thetas[column + j] = theta[j] * unit / scale[j]
        for j in range(looks):
            looked[k, j, 1] *= value_unit
            looked[k, j, 2] *= value_unit
