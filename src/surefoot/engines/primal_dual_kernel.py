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

# From this step size times price on, a step along the norm is implicit.
STIFF_SHARE = 0.3
# Order 1 with moving outcomes prices ||theta|| only above 1/kappa. The price sets in over this share of
# that length, so that a policy that belongs on the border can stay there.
SPHERE_WIDTH = 0.06


@kernel(fastmath=True)
def primal_dual_steps(
    rows, outcomes, weights, draws, up, down, rho, order, pull, spans_constant, n_priced,
    theta, slopes, gradient, mean_slope, primal_steps, dual_steps,
):  # fmt: skip
    """Run one step per draw, updating theta, slopes and gradient in place; return the mean slope."""
    size = theta.shape[0]
    count = draws.shape[0]
    largest_step = 0.0
    squared = 0.0
    for j in range(n_priced):
        squared += theta[j] * theta[j]
        largest_step = max(largest_step, primal_steps[j])
    decision = 0.0
    for j in range(size):
        decision += rows[draws[0], j] * theta[j]
    for k in range(count):
        i = draws[k]
        following = draws[k + 1] if k + 1 < count else draws[0]
        price, shift = _price_and_shift(squared, mean_slope, up, down, rho, order, pull, spans_constant)
        proposal = slopes[i] + dual_steps[i] * (decision - outcomes[i] - shift)
        slope = min(up, max(-down, proposal))
        news = slope - slopes[i]
        slopes[i] = slope
        settled = weights[i] * news
        mean_slope += settled
        decision = 0.0
        squared = 0.0
        if largest_step * price < STIFF_SHARE:
            for j in range(n_priced):
                x = rows[i, j]
                gradient[j] += settled * x
                value = theta[j] - primal_steps[j] * (gradient[j] + news * x + price * theta[j])
                theta[j] = value
                squared += value * value
                decision += rows[following, j] * value
        else:
            # Near theta = 0 the norm is stiff: treat it implicitly.
            for j in range(n_priced):
                x = rows[i, j]
                gradient[j] += settled * x
                value = theta[j] - primal_steps[j] * (gradient[j] + news * x)
                value /= 1.0 + primal_steps[j] * price
                theta[j] = value
                squared += value * value
                decision += rows[following, j] * value
        for j in range(n_priced, size):
            x = rows[i, j]
            gradient[j] += settled * x
            value = theta[j] - primal_steps[j] * (gradient[j] + news * x)
            theta[j] = value
            decision += rows[following, j] * value
    return mean_slope


@kernel(fastmath=True, inline=True)
def _price_and_shift(squared, mean_slope, up, down, rho, order, pull, spans_constant):
    """Return rho C / N, the pull of the norm on theta, and the kink's shift (b - h) q / 4."""
    tiny = 1e-150
    if order == 1:
        norm = np.sqrt(squared)
        share = 1.0
        if pull > 0.0:  # the price sets in at ||theta|| = 1/kappa, where it may take any share
            share = min(1.0, max(0.0, 0.5 + (norm / pull - 1.0) / SPHERE_WIDTH))
        return share * rho * max(up, down) / (norm + tiny), 0.0
    reach = np.sqrt(squared + pull)
    if spans_constant:
        return rho * np.sqrt(up * down) / (reach + tiny), 0.0
    constant = np.sqrt(max(up * down + (up - down) * mean_slope, min(up, down) ** 2))
    return rho * constant / (reach + tiny), (down - up) * rho * reach / (2.0 * constant)
