"""Stochastic primal-dual hybrid gradient, compiled.

Each row has a dual variable, its slope u_i. A step draws a row, moves its slope towards the residual
(a proximal step, so that slopes settle instead of jumping between -b and h), and steps theta along the
mean of all slopes plus the news of this row. No sample is moved: the ball enters through the norm of
theta. The gap falls geometrically. It is the method of Chambolle et al. (2018) applied to

    min over theta, max over u in [-b, h]^n of  sum_i w_i u_i (x_i'theta - y_i) + rho C(u) N(theta)

with N the dual norm of theta, C = G for order 1 and C = sqrt(bh + (h - b) sum_i w_i u_i) for order 2.
The multiplier is profiled: gamma = G N for order 1, C N / (2 rho) for order 2.
"""

import numpy as np

from surefoot.engines.compiling import kernel

# From this step size times shrinkage on, a step along the norm is implicit.
STIFF_SHARE = 0.3
# A shrinkage between none and the whole is found by so many steps of Newton's method, at most...
SPHERE_STEPS = 50
# ...and so closely: the square of the length over that of 1/kappa.
SPHERE_TOL = 1e-13


@kernel(fastmath=True)
def primal_dual_steps(
    rows, outcomes, weights, draws, up, down, rho, order, inverse_kappa, spans_constant, n_penalised,
    theta, slopes, gradient, mean_slope, primal_steps, dual_steps,
):  # fmt: skip
    """Run one step per draw, updating theta, slopes and gradient in place; return the mean slope."""
    size = theta.shape[0]
    count = draws.shape[0]
    largest_step = 0.0
    squared = 0.0
    for j in range(n_penalised):
        squared += theta[j] * theta[j]
        largest_step = max(largest_step, primal_steps[j])
    decision = 0.0
    for j in range(size):
        decision += rows[draws[0], j] * theta[j]
    for k in range(count):
        i = draws[k]
        following = draws[k + 1] if k + 1 < count else draws[0]
        shrinkage, shift = _shrinkage_and_shift(
            squared, mean_slope, up, down, rho, order, inverse_kappa, spans_constant
        )
        proposal = slopes[i] + dual_steps[i] * (decision - outcomes[i] - shift)
        slope = min(up, max(-down, proposal))
        news = slope - slopes[i]
        slopes[i] = slope
        settled = weights[i] * news
        mean_slope += settled
        decision = 0.0
        squared = 0.0
        if order == 1 and inverse_kappa > 0.0:
            for j in range(n_penalised):
                x = rows[i, j]
                gradient[j] += settled * x
                theta[j] -= primal_steps[j] * (gradient[j] + news * x)
            shrinkage = _shrinkage_at_sphere(theta, primal_steps, n_penalised, shrinkage, inverse_kappa)
            for j in range(n_penalised):
                value = theta[j] / (1.0 + primal_steps[j] * shrinkage)
                theta[j] = value
                squared += value * value
                decision += rows[following, j] * value
        elif largest_step * shrinkage < STIFF_SHARE:
            for j in range(n_penalised):
                x = rows[i, j]
                gradient[j] += settled * x
                value = theta[j] - primal_steps[j] * (gradient[j] + news * x + shrinkage * theta[j])
                theta[j] = value
                squared += value * value
                decision += rows[following, j] * value
        else:
            # Near theta = 0 the norm is stiff: treat it implicitly.
            for j in range(n_penalised):
                x = rows[i, j]
                gradient[j] += settled * x
                value = theta[j] - primal_steps[j] * (gradient[j] + news * x)
                value /= 1.0 + primal_steps[j] * shrinkage
                theta[j] = value
                squared += value * value
                decision += rows[following, j] * value
        for j in range(n_penalised, size):
            x = rows[i, j]
            gradient[j] += settled * x
            value = theta[j] - primal_steps[j] * (gradient[j] + news * x)
            theta[j] = value
            decision += rows[following, j] * value
    return mean_slope


@kernel(fastmath=True, inline=True)
def _shrinkage_and_shift(squared, mean_slope, up, down, rho, order, inverse_kappa, spans_constant):
    """Return rho C / N, by which the norm shrinks theta, and the kink's shift (b - h) q / 4."""
    tiny = 1e-150
    if order == 1:
        return rho * max(up, down) / (np.sqrt(squared) + tiny), 0.0
    norm = np.sqrt(squared + inverse_kappa)
    if spans_constant:
        return rho * np.sqrt(up * down) / (norm + tiny), 0.0
    constant = np.sqrt(max(up * down + (up - down) * mean_slope, min(up, down) ** 2))
    return rho * constant / (norm + tiny), (down - up) * rho * norm / (2.0 * constant)


@kernel(inline=True)
def _shrinkage_at_sphere(theta, primal_steps, n_penalised, shrinkage, inverse_kappa):
    """Return the share of the shrinkage that is due for order 1 with moving outcomes.

    ||theta|| is penalised only above 1/kappa. A policy that the whole shrinkage would take below
    that, and none leaves above it, belongs on the border, where any share holds it.
    """
    due = 0.0
    for _ in range(SPHERE_STEPS):
        squared = 0.0
        fall = 0.0
        for j in range(n_penalised):
            shrunk = theta[j] / (1.0 + primal_steps[j] * due)
            squared += shrunk * shrunk
            fall += 2.0 * shrunk * shrunk * primal_steps[j] / (1.0 + primal_steps[j] * due)
        over = squared / (inverse_kappa * inverse_kappa) - 1.0
        if over <= SPHERE_TOL:
            break
        # The left side is convex and falls, so Newton's method climbs to the root from below.
        due += over * inverse_kappa * inverse_kappa / fall
        if due >= shrinkage:
            return shrinkage
    return due
