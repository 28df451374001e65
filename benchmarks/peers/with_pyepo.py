"""PyEPO: choose one of a row of order levels whose costs are predicted, trained by SPO+."""

import numpy as np
import torch
from pyepo.data.dataset import optDataset
from pyepo.func import SPOPlus
from pyepo.model.opt import optModel
from torch.utils.data import DataLoader
from worker import BACKORDER, HOLDING, serve

LEVELS, STEPS, BATCH = 25, 500, 32


class OneLevel(optModel):
    """The only way to a newsvendor here: it predicts coefficients of a linear objective.

    The cost of an order is not linear in the order, but it is in the choice among levels.
    """

    def _getModel(self):  # noqa: N802, its abstract method
        return None, list(range(LEVELS))

    def setObj(self, c):  # noqa: N802
        self.prices = np.asarray(c)

    def solve(self):
        best = int(self.prices.argmin())
        return np.eye(LEVELS)[best], float(self.prices[best])


def fit(X, y, _):
    torch.manual_seed(0)
    levels = np.linspace(y.min(), y.max(), LEVELS)
    residuals = levels - y[:, None]
    costs = np.maximum(HOLDING * residuals, -BACKORDER * residuals)
    model = OneLevel()
    loader = DataLoader(optDataset(model, X, costs), batch_size=BATCH, shuffle=True)
    predictor, surrogate = torch.nn.Linear(X.shape[1], LEVELS), SPOPlus(model)
    optimizer = torch.optim.Adam(predictor.parameters(), lr=1e-2)
    for _ in range(-(-STEPS // len(loader))):
        for contexts, prices, choices, values in loader:
            optimizer.zero_grad()
            surrogate(predictor(contexts), prices, choices, values).backward()
            optimizer.step()
    weight, bias = predictor.weight.detach().numpy(), predictor.bias.detach().numpy()
    return lambda contexts: levels[(contexts @ weight.T + bias).argmin(axis=1)]


if __name__ == "__main__":
    serve({"SPO+ over 25 order levels": fit})
