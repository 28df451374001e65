"""The best portfolio of given scenarios, written with CVXPY and without a formula of the library."""

import cvxpy as cp
import numpy as np


def best_portfolio(returns, weights, groups, aversion, level, *, total=None, most=None):
    """Least E[loss] + aversion CVaR[loss] over shares, one vector for each group of scenarios.

    Shares are not negative; they sum to one, or to ``total`` at most, or are at most ``most`` each.
    """
    count = int(np.max(groups)) + 1
    shares, at_risk = cp.Variable((count, returns.shape[1]), nonneg=True), cp.Variable()
    losses = -cp.sum(cp.multiply(returns, shares[groups]), axis=1)
    tail = at_risk + weights @ cp.pos(losses - at_risk) / (1.0 - level)
    if most is not None:
        demands = [shares <= most]
    elif total is not None:
        demands = [cp.sum(shares, axis=1) <= total]
    else:
        demands = [cp.sum(shares, axis=1) == 1.0]
    program = cp.Problem(cp.Minimize(weights @ losses + aversion * tail), demands)
    return float(program.solve(solver=cp.CLARABEL))
