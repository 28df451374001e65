"""RSOME: the ambiguity set as one writes it on paper, one scenario for each row, solved by ECOS."""

from functools import partial

import rsome
from rsome import E, dro, eco_solver
from worker import BACKORDER, HOLDING, serve


def fit(X, y, radius, order=1):
    n, s = X.shape
    model = dro.Model(n)
    theta, t = model.dvar(s), model.dvar()
    x, demand, distance = model.rvar(s), model.rvar(), model.rvar()
    ball = model.ambiguity()
    for row in range(n):
        moved = x - X[row]
        ball[row].suppset(
            (rsome.norm(moved) if order == 1 else rsome.sumsqr(moved)) <= distance, demand == y[row]
        )
    ball.exptset(E(distance) <= radius**order)
    ball.probset(model.p == 1 / n)
    residual = theta @ x + t - demand
    model.minsup(E(rsome.maxof(HOLDING * residual, -BACKORDER * residual)), ball)
    model.solve(eco_solver, display=False)
    return theta.get(), t.get()


if __name__ == "__main__":
    serve({"order 1": fit, "order 2": partial(fit, order=2)})
