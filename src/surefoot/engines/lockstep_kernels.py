"""Problems that step together: made ready before, and judged after, by the certificate's formulas.

The processor brings rows into their units and proves, a GPU only steps: what it returns is trusted no
further than both bounds reach.
"""

import numpy as np

from surefoot.engines.bound_kernels import (
    PlainForm,
    line_cost,
    lower_bound,
    relative_gap,
    worst_value,
)
from surefoot.engines.compiling import kernel
from surefoot.engines.form_kernels import plain_form

# The form of a problem beside its arrays, its units, and the cost of the constant order.
NUMBERS = np.dtype(
    [("plain", "?"), ("count", "i8"), ("decision", "f8"), ("floor", "f8"), ("up", "f8"),
     ("down", "f8"), ("radius", "f8"), ("inverse_kappa", "f8"), ("common", "f8"), ("unit", "f8"),
     ("cost", "f8")]
)  # fmt: skip


@kernel()
def form_packed(
    requests, contexts, outcomes, masses, scales, rows, targets, weights, slopes, units, sizes, numbers
):
    """Fill in the forms of problems; rows and columns beyond their own are zero."""
    for k in range(len(requests)):
        request = requests[k]
        n, s = request.rows, request.columns
        first, column = (
            request.first - requests[0].first,
            request.first_column - requests[0].first_column,
        )
        start = request.first_context - requests[0].first_context
        scale = scales[column : column + s]
        plain, form, common, unit = plain_form(
            request, contexts[start : start + n * s].reshape(n, s), outcomes[first : first + n],
            masses[first : first + n], scale,
        )  # fmt: skip
        numbers[k].plain = plain
        count = len(form.weights) if plain else 0
        begun, cost = form.decision if form.intercept else 0.0, 0.0
        # Number by number: with slices, Numba spends seconds on the text of an error about shapes.
        for i in range(count):
            targets[k, i], weights[k, i], slopes[k, i] = (
                form.outcomes[i],
                form.weights[i],
                form.slopes[i],
            )
            cost += form.weights[i] * line_cost(begun - form.outcomes[i], form.up, form.down)
            for j in range(s):
                rows[k, i, j] = form.contexts[i, j]
        for i in range(rows.shape[1]):
            if i >= count:
                targets[k, i], weights[k, i], slopes[k, i] = 0.0, 0.0, 0.0
            for j in range(s if i < count else 0, rows.shape[2]):
                rows[k, i, j] = 0.0
        for j in range(s):
            units[k, j], sizes[k, j] = scale[j], form.sizes[j]
        numbers[k].count, numbers[k].decision, numbers[k].cost = count, form.decision, cost
        numbers[k].floor, numbers[k].up, numbers[k].down = form.floor, form.up, form.down
        numbers[k].radius, numbers[k].inverse_kappa = form.radius, form.inverse_kappa
        numbers[k].common, numbers[k].unit = common, unit


@kernel()
def _form(request, rows, targets, weights, slopes, sizes, numbers):
    """Return the form that was filled in, its rows side by side again."""
    n, s = numbers.count, request.columns
    contexts, own_sizes = np.empty((n, s)), np.empty(s)
    outcomes, own_weights, own_slopes = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        outcomes[i], own_weights[i], own_slopes[i] = targets[i], weights[i], slopes[i]
        for j in range(s):
            contexts[i, j] = rows[i, j]
    for j in range(s):
        own_sizes[j] = sizes[j]
    return PlainForm(
        contexts, outcomes, own_weights, own_sizes, own_slopes, numbers.decision, numbers.floor,
        request.intercept, numbers.up, numbers.down, numbers.radius, request.order,
        numbers.inverse_kappa,
    )  # fmt: skip


@kernel()
def judge_packed(
    requests, steps, policies, constants, tried, rows, targets, weights, slopes, units, sizes, numbers,
    thetas, replies, looked,
):  # fmt: skip
    """Keep the best policy and the best lower bound of each problem that is not solved yet."""
    for k in range(len(requests)):
        request, reply, number = requests[k], replies[k], numbers[k]
        if reply.solved or not number.plain:
            continue
        form = _form(request, rows[k], targets[k], weights[k], slopes[k], sizes[k], number)
        n, s, value_unit = number.count, request.columns, request.cost_unit * number.unit
        policy, proving = np.empty(s), np.empty(n)
        for j in range(s):
            policy[j] = policies[k, j]
        for i in range(n):
            proving[i] = tried[k, i]
        upper, gamma = worst_value(form, policy, constants[k])
        lower = max(lower_bound(form, proving), lower_bound(form, form.slopes))
        if reply.looks == 0 or upper * value_unit < reply.upper:
            reply.upper, reply.intercept = upper * value_unit, constants[k] * number.unit
            reply.multiplier = gamma * value_unit / number.common**request.order
            for j in range(s):
                place = request.first_column - requests[0].first_column + j
                thetas[place] = policy[j] * number.unit / units[k, j]
        reply.lower = max(reply.lower, lower * value_unit) if reply.looks > 0 else lower * value_unit
        reply.floor, reply.steps = form.floor * value_unit, steps * n
        gap = relative_gap(reply.upper, reply.lower, reply.floor)
        reply.solved = gap <= request.gap_tol
        look = looked[k, reply.looks]
        look[0], look[1], look[2], look[3] = reply.steps, reply.upper, reply.lower, gap
        reply.looks += 1
