"""The worst distribution around rows with one context column, by brute force.

Mass may go from each row to any point of a grid; which mass goes where is a linear program. Nothing
is shared with the library: policies and costs are written out again, and no duality is used.
"""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, eye, kron

SHORT, LEFT = ((0.0, 1.0), (1.5, 3.0)), 0.4  # tiers of the tiered newsvendor


def moves(longest: float) -> np.ndarray:
    """Moves to try: dense near zero, ever further apart beyond."""
    near = np.linspace(0.0, 4.0, 801)[1:]
    far = np.geomspace(4.0, longest, 300)[1:]
    ahead = np.concatenate([near, far])
    return np.concatenate([-ahead[::-1], [0.0], ahead])


def worst_case(
    decide, cost, x, y, weights, radius, order, box=(-np.inf, np.inf), unit=1.0, longest=1e4
) -> float:
    """Return the largest expected cost of a plan whose mean distance keeps to radius^order.

    ``decide`` maps contexts to decisions, ``cost`` decisions and outcomes to costs; a move of ``unit``
    has distance one.
    """
    n = len(x)
    to = np.clip(x[:, None] + unit * moves(longest)[None, :], *box)
    count = to.shape[1]
    costs = cost(decide(to.ravel()).reshape(to.shape), y[:, None])
    distances = np.abs(to - x[:, None]) ** order / unit**order
    stays = kron(eye(n), np.ones((1, count)), format="csr")
    found = linprog(
        -costs.ravel(), A_ub=csr_matrix(distances.reshape(1, -1)), b_ub=[radius**order],
        A_eq=stays, b_eq=weights, method="highs",
    )  # fmt: skip
    assert found.status == 0, found.message
    return float(-found.fun)


def newsvendor(z, y):
    return np.maximum(1.0 * (y - z), 0.2 * (z - y))


def tiered(z, y):
    short = np.maximum(y - z, 0.0)
    tail = SHORT[0][1] * np.minimum(short, SHORT[1][0]) + SHORT[1][1] * np.maximum(
        short - SHORT[1][0], 0
    )
    return tail + LEFT * np.maximum(z - y, 0.0)


def quadratic(z, y):
    return (z - y) ** 2


def pricing(z, y):
    return -(z - 0.5) * np.maximum(y - 2.0 * z, 0.0)


def linear(trained, seen):
    return seen * trained["theta"][0, 0] + trained["intercept"][0]


def max_affine(trained, seen):
    lines = [seen * t[0, 0] + i[0] for t, i in zip(trained["theta"], trained["intercept"], strict=True)]
    return np.max(lines, axis=0)


def network(trained, seen):
    hidden = seen[:, None] * trained["weight0"] + trained["bias0"]
    hidden = np.where(hidden > 0, hidden, np.expm1(np.minimum(hidden, 0)))
    return (hidden @ trained["weight1"] + trained["bias1"])[:, 0]


HIGHEST = 8.0  # of the sigmoid


def policy(name, trained, mean, spread, centre, unit):
    """Return the function from contexts (rows,) to decisions of a policy in its units."""

    def decide(x):
        seen = (x - mean[0]) / spread[0]
        if name == "linear":
            return centre[0] + linear(trained, seen)
        if name == "max_affine":
            return centre[0] + unit[0] * max_affine(trained, seen)
        if name == "network":
            return centre[0] + unit[0] * network(trained, seen)
        if name == "sigmoid":
            return HIGHEST / (1.0 + np.exp(-np.clip(linear(trained, seen), -500.0, 500.0)))
        bent = centre[0] + unit[0] * linear(trained, seen)
        return np.where(bent > 0, bent, np.expm1(np.minimum(bent, 0)))

    return decide
