"""skwdro: any torch cost made robust, solved by the solver that its own estimators use."""

from functools import partial

import numpy as np
import torch
from skwdro.base.problems import EmpiricalDistributionWithLabels
from skwdro.operations_research import NewsVendor
from skwdro.solvers.entropic_dual_torch import solve_dual_wdro
from skwdro.solvers.optim_cond import OptCondTorch
from skwdro.torch import robustify
from worker import BACKORDER, HOLDING, serve


class Cost(torch.nn.Module):
    def forward(self, decision, outcome):
        residuals = decision - outcome
        return torch.maximum(HOLDING * residuals, -BACKORDER * residuals)


def robust_cost(X, outcomes, radius, cost):
    torch.manual_seed(0)
    policy = torch.nn.Linear(X.shape[1], 1)
    tensors = torch.Tensor(X), torch.Tensor(outcomes)
    return (
        policy,
        tensors,
        robustify(Cost(), policy, torch.tensor(radius), *tensors, cost_spec=cost, seed=0),
    )


def centred(y):
    """Outcomes as a column around zero: else most of the steps go into the constant."""
    return y.reshape(len(y), -1) - y.mean()


def loop(X, y, radius, cost="t-NC-2-2"):
    """Its documented training loop, on all rows at once: smaller batches do not fit its sampler.

    "t-NC" moves contexts only. What its estimators take by default, "t-NLC", divides distances by 1 + 1e8,
    so that a radius has no meaning that others share.
    """
    policy, rows, robust = robust_cost(X, centred(y), radius, cost)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=0.1)
    for _ in range(100):
        robust.get_initial_guess_at_dual(*rows)
        optimizer.zero_grad()
        robust(*rows).backward()
        optimizer.step()
    return policy.weight.detach().numpy(), policy.bias.detach().numpy() + y.mean()


def own_solver(X, y, _):
    """What its LinearRegression.fit does, defaults and all, with the newsvendor's cost for the square."""
    policy, _, robust = robust_cost(X, centred(y), 1e-2, "t-NLC-2-2")
    rows = EmpiricalDistributionWithLabels(m=len(X), samples_x=X, samples_y=centred(y))
    solve_dual_wdro(robust, rows, OptCondTorch(2))
    return policy.weight.detach().numpy(), policy.bias.detach().numpy() + y.mean()


def own_newsvendor(X, y, _):
    """Its ready-made newsvendor, which takes no contexts: it averages what it is given."""
    model = NewsVendor(k=HOLDING, u=BACKORDER + HOLDING, solver="dedicated").fit(y[:, None])
    return np.zeros(X.shape[1]), model.coef_


if __name__ == "__main__":
    serve({
        "documented loop, order 2": loop,
        "documented loop, order 1": partial(loop, cost="t-NC-1-2"),
        "own solver, defaults": own_solver,
        "NewsVendor, no contexts": own_newsvendor,
    })  # fmt: skip
