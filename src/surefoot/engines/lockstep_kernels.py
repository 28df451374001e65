"""Problems that step together: made ready before, and judged after, by the certificate's formulas.

The processor prepares and proves, a GPU only steps: what it returns is trusted no further than both
bounds reach.
"""

import math

import numpy as np

from surefoot.engines.bound_kernels import (
    line_cost,
    lower_bound,
    relative_gap,
    weighted_sum,
    worst_value,
)
from surefoot.engines.compiling import kernel
from surefoot.engines.form_kernels import plain_form
from surefoot.engines.many_kernel import canonical_rows, policy_of
from surefoot.engines.primal_dual import FIRST_BALANCE, FIRST_SHARE

# What the steps of a problem need to know; rows and columns beyond its own have weight zero.
NUMBERS = np.dtype(
    [("plain", "?"), ("count", "i8"), ("up", "f8"), ("down", "f8"), ("radius", "f8"), ("pull", "f8"),
     ("norm", "f8"), ("balance", "f8")]
)  # fmt: skip

# Columns whose product is a smaller share of the largest second moment are orthogonal.
CROSSING = 1e-9


@kernel()
def operator_norm(rows, weights, metric):
    """Return a bound of the norm of u -> sum_i w_i u_i x_i in the metric.

    All columns but the last are orthogonal to each other, and the last one to them if it is constant
    (the others are centred then): the largest second moment is exact. If not, the last one's is added.
    """
    size = len(metric)
    moments, crossing = np.zeros(size), 0.0
    for i in range(len(weights)):
        for j in range(size):
            moments[j] += weights[i] * metric[j] * rows[i, j] ** 2
    for j in range(size - 1):
        product = 0.0
        for i in range(len(weights)):
            product += weights[i] * rows[i, j] * rows[i, size - 1]
        crossing = max(crossing, abs(product) * math.sqrt(metric[j] * metric[size - 1]))
    largest = moments.max()
    return math.sqrt(largest + (moments[size - 1] if crossing > CROSSING * largest else 0.0))


@kernel()
def prepare_packed(
    requests, contexts, outcomes, masses, scales, rows, targets, weights, metric, axes, mean, theta,
    slopes, numbers,
):  # fmt: skip
    """Fill in what problems start from: canonical rows, step metric, constant order and its slopes."""
    for k in range(len(requests)):
        request = requests[k]
        n, s, first, column = request.rows, request.columns, request.first, request.first_column
        X = contexts[request.first_context : request.first_context + n * s].reshape(n, s)
        plain, form, _, _ = plain_form(
            request, X, outcomes[first : first + n], masses[first : first + n],
            scales[column : column + s].copy(),
        )  # fmt: skip
        numbers[k].plain = plain
        if not plain:
            continue
        found, own_axes, own_mean, own_metric = canonical_rows(form)
        count, size = len(form.weights), len(own_metric)
        # Number by number: with slices, Numba spends seconds on the text of an error about shapes.
        for i in range(count):
            targets[k, i], weights[k, i] = form.outcomes[i], form.weights[i]
            for j in range(size):
                rows[k, i, j] = found[i, j]
        for j in range(size):
            metric[k, j] = own_metric[j]
        for j in range(s):
            mean[k, j] = own_mean[j]
            for i in range(len(own_axes)):
                axes[k, i, j] = own_axes[i, j]
        begun, cost = form.decision if form.intercept else 0.0, 0.0
        for i in range(count):
            slopes[k, i] = form.slopes[i] if form.intercept else 0.0
            cost += form.weights[i] * line_cost(begun - form.outcomes[i], form.up, form.down)
        balance = FIRST_BALANCE * max(cost, 1e-300) / (form.up + form.down)
        norm = operator_norm(found, form.weights, own_metric)
        gradient = weighted_sum(found, form.weights * slopes[k, :count])
        for j in range(len(own_axes)):
            theta[k, j] = -FIRST_SHARE * balance / norm * own_metric[j] * gradient[j]
        if form.intercept:
            theta[k, len(own_axes)] = form.decision
        numbers[k].count, numbers[k].norm, numbers[k].balance = len(own_axes), norm, balance
        numbers[k].up, numbers[k].down = form.up, form.down
        numbers[k].radius, numbers[k].pull = form.radius, form.pull


@kernel()
def judge_packed(
    requests, contexts, outcomes, masses, scales, thetas, steps, axes, mean, theta, slopes, numbers,
    replies, looked,
):  # fmt: skip
    """Keep the best policy and the best lower bound of each problem that is not solved yet."""
    for k in range(len(requests)):
        request, reply = requests[k], replies[k]
        if reply.solved or not numbers[k].plain:
            continue
        n, s, first, column = request.rows, request.columns, request.first, request.first_column
        X = contexts[request.first_context : request.first_context + n * s].reshape(n, s)
        scale = scales[column : column + s].copy()
        _, form, common, unit = plain_form(
            request, X, outcomes[first : first + n], masses[first : first + n], scale
        )
        rows, value_unit = len(form.weights), request.cost_unit * unit
        count = numbers[k].count
        size = count + (1 if form.intercept else 0)
        policy, constant = policy_of(form, axes[k, :count, :s], mean[k, :s], theta[k, :size])
        upper, gamma = worst_value(form, policy, constant)
        lower = max(lower_bound(form, slopes[k, :rows]), lower_bound(form, form.slopes))
        if reply.looks == 0 or upper * value_unit < reply.upper:
            reply.upper, reply.intercept = upper * value_unit, constant * unit
            reply.multiplier = gamma * value_unit / common**request.order
            for j in range(s):
                thetas[column + j] = policy[j] * unit / scale[j]
        reply.lower = max(reply.lower, lower * value_unit) if reply.looks > 0 else lower * value_unit
        reply.floor, reply.steps = form.floor * value_unit, steps * rows
        gap = relative_gap(reply.upper, reply.lower, reply.floor)
        reply.solved = gap <= request.gap_tol
        look = looked[k, reply.looks]
        look[0], look[1], look[2], look[3] = reply.steps, reply.upper, reply.lower, gap
        reply.looks += 1
