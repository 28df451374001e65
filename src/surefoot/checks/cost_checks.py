"""What costs must keep."""

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.checks.demands import (
    SLACK,
    WIDTHS,
    close,
    demand,
    frozen,
    outcomes_of,
    saved,
    some_rows,
)
from surefoot.costs import AuxiliaryCost, ConvexPiecewiseCost, Cost
from surefoot.tracing import load_jax
from surefoot.typing import FloatArray


def _decided(cost: Cost, width: float = WIDTHS[0]) -> tuple[FloatArray, FloatArray]:
    """Return decisions around the typical one, and outcomes."""
    _, y = some_rows(products=outcomes_of(cost))
    centre, unit = cost.typical(y, np.full(len(y), 1.0 / len(y)))
    rng = np.random.default_rng(0)
    return centre + width * unit * rng.uniform(-1, 1, size=(len(y), len(centre))), y


def _cost_shapes(cost: Cost) -> None:
    """One finite number for each row, whatever the leading axes; inputs stay as they are."""
    z, y = _decided(cost)
    before = z.copy(), y.copy()
    rows = cost.evaluate(z, y)
    demand(rows.shape == (len(z),), f"evaluate must return shape ({len(z)},), got {rows.shape}")
    demand(bool(np.isfinite(rows).all()), f"evaluate must be finite near typical decisions, got {rows}")
    stacked = cost.evaluate(np.stack([z, z]), np.stack([y, y]))
    demand(stacked.shape == (2, len(z)), "evaluate must keep leading axes")
    close(before[0], z, "evaluate must not change decisions")
    close(before[1], y, "evaluate must not change outcomes")
    if not isinstance(cost, AuxiliaryCost):  # whose variables are chosen for all rows at once
        alone = cost.evaluate(z[:1], y[:1])
        close(alone, rows[:1], "the cost of a row must not depend on other rows")


def _cost_mean(cost: Cost) -> None:
    """The mean is one number, and a weight of two is the row twice."""
    z, y = _decided(cost)
    weights = np.r_[2.0, np.ones(len(z) - 1)]
    twice = np.r_[0, np.arange(len(z))]
    close(
        cost.mean(z, y, weights / weights.sum()),
        cost.mean(z[twice], y[twice], np.full(len(twice), 1.0 / len(twice))),
        "a weight of two must be the row twice",
    )


def _cost_typical(cost: Cost) -> None:
    """The typical decision has as many numbers as a decision, and a positive unit."""
    _, y = some_rows(products=outcomes_of(cost))
    centre, unit = cost.typical(y, np.full(len(y), 1.0 / len(y)))
    count = cost.n_decisions(y.shape[1])
    demand(
        centre.shape == unit.shape == (count,), f"typical must return two arrays of shape ({count},)"
    )
    demand(bool((unit > 0).all()), f"the unit of decisions must be positive, got {unit}")


def _cost_promises(cost: Cost) -> None:
    """No cost is below the floor, bends more than the curvature or grows faster than the growth.

    One that says that it is convex is, on average.
    """
    step, bend, power = 1e-3, cost.curvature(), cost.growth()
    for width in WIDTHS:
        z, y = _decided(cost, width)
        floor = cost.floor(y.shape[1])
        if np.isfinite(floor):
            above = cost.evaluate(z, y) >= floor - SLACK
            demand(bool(above.all()), "no cost may be below floor()")
        if np.isfinite(bend):
            low, middle, high = (cost.evaluate(z + k * step, y) for k in (-1, 0, 1))
            second = (low - 2 * middle + high) / step**2 / z.shape[1]
            # Differences of costs are only as exact as the costs.
            noise = 1e-4 + 1e-15 * float(np.abs(middle).max()) / step**2
            most = bool((second <= bend * 1.01 + noise).all())
            demand(most, f"second derivatives must be <= {bend}, got {second.max()}")
        if cost.convex():
            other, rows = z[::-1], np.full(len(z), 1.0 / len(z))
            ends = [cost.mean(one, y, rows) for one in (z, other)]
            middle_cost = cost.mean(0.5 * (z + other), y, rows)
            chord = 0.5 * sum(ends) + SLACK * (1.0 + max(abs(end) for end in ends))
            demand(middle_cost <= chord, "a cost that is convex() may not lie above its chords")
    if np.isfinite(power):
        near, far = (np.abs(cost.evaluate(*_decided(cost, width))).max() for width in (1e2, 1e4))
        demand(bool(far <= 2.0 * near * 1e2**power), f"no cost may grow faster than |z|^{power:g}")


def _cost_pieces(cost: Cost) -> None:
    """A piecewise linear cost is the sum of its lines, and so convex."""
    if isinstance(cost, ConvexPiecewiseCost):
        for width in WIDTHS:
            z, y = _decided(cost, width)
            lines = cost.pieces(y.shape[1])
            demand(len(lines) == y.shape[1], "pieces must return one Pieces for each product")
            total = sum(piece.evaluate(z[:, j] - y[:, j]) for j, piece in enumerate(lines))
            close(cost.evaluate(z, y), total, "evaluate must be the sum of the pieces")


def _cost_in_jax(cost: Cost) -> None:
    """The same formula runs in JAX, with a finite derivative, also where decision meets outcome."""
    if importlib.util.find_spec("jax") is None:
        return
    jax = load_jax("A check")
    z, y = _decided(cost)
    if z.shape == y.shape:
        z[0] = y[0]
    formula: Callable[..., Any] = cost.evaluate
    if isinstance(cost, AuxiliaryCost):
        own = cost.best_auxiliary(z, y, np.full(len(z), 1.0 / len(z)))

        def formula(z: Any, y: Any, xp: Any = np) -> Any:
            return cost.evaluate_at(z, own, y, xp)

    with jax.enable_x64(True):
        put = jax.numpy.asarray(z), jax.numpy.asarray(y)
        in_jax = np.asarray(formula(*put, jax.numpy))
        slopes = np.asarray(jax.grad(lambda z: formula(z, put[1], jax.numpy).sum())(put[0]))
    close(formula(z, y), in_jax, "evaluate must give the same in numpy and jax.numpy")
    demand(bool(np.isfinite(slopes).all()), "evaluate must have a finite derivative in the decision")


COST_CHECKS = (
    frozen, saved, _cost_shapes, _cost_mean, _cost_typical, _cost_promises, _cost_pieces,
    _cost_in_jax,
)  # fmt: skip
