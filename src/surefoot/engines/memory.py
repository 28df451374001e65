"""DA-SGD with memory, compiled.

Each row remembers the slope u_i at which it was last seen. A step draws a row, lets the adversary
move its slope from where it was (a proximal step, so that slopes settle instead of jumping between
-b and h), and steps theta along the mean of all remembered slopes plus the news of this row. The
noise of plain SGD comes from forgetting; with memory the gap falls geometrically. It is the
stochastic primal-dual hybrid gradient method of Chambolle et al. (2018) applied to

    min over theta, max over u in [-b, h]^n of  sum_i w_i u_i (x_i'theta - y_i) + rho C(u) N(theta)

with N the reach of theta, C = G for order 1 and C = sqrt(bh + (h - b) sum_i w_i u_i) for order 2.
The multiplier is profiled: gamma = G N for order 1, C N / (2 rho) for order 2.
"""

import numpy as np

from surefoot.engines.compiling import kernel
from surefoot.engines.constants import SPHERE_WIDTH, STIFF_SHARE

# Indices into the vector of running scalars that the kernel updates in place.
MEAN_SLOPE, N_SCALARS = 0, 1


@kernel(fastmath=True)
def memory_steps(
    rows, outcomes, weights, draws, up, down, rho, order, pull, spans_constant, n_priced,
    theta, slopes, gradient, scalars, primal_steps, dual_steps,
):  # fmt: skip
    """Run one step per draw, updating theta, slopes, gradient and scalars in place."""
    size = theta.shape[0]
    count = draws.shape[0]
    largest_step = 0.0
    squared = 0.0
    for j in range(n_priced):
        squared += theta[j] * theta[j]
        largest_step = max(largest_step, primal_steps[j])
    mean_slope = scalars[MEAN_SLOPE]
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
    scalars[MEAN_SLOPE] = mean_slope


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
