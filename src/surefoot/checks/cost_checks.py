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
    number_of,
    numbers_of,
    reason_of,
    saved,
    some_rows,
)
from surefoot.costs import AuxiliaryCost, ConvexPiecewiseCost, Cost, Pieces
from surefoot.sets import Box, DecisionSet, Simplex
from surefoot.tracing import load_jax
from surefoot.typing import FloatArray


def _counts(cost: Cost) -> list[int]:
    """Return numbers of outcomes that a cost takes."""
    fitting = [count for count in (1, 2, 3, 4) if reason_of(cost.why_not(count)) is None]
    demand(bool(fitting), "why_not must be None for some number of outcomes up to 4")
    return fitting[:2]


def _typical(cost: Cost, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the typical decision and the unit of decisions, one number of each for a decision."""
    count, pair = cost.n_decisions(y.shape[1]), cost.typical(y, np.full(len(y), 1.0 / len(y)))
    whole = isinstance(count, int | np.integer) and not isinstance(count, bool) and count >= 1
    demand(whole, f"n_decisions must return a whole number >= 1, got {count!r}")
    promise = f"typical must return two arrays of shape ({count},)"
    demand(isinstance(pair, tuple) and len(pair) == 2, f"{promise}, got {pair!r}")
    centre, unit = (numbers_of(part, "each array of typical") for part in pair)
    demand(centre.shape == unit.shape == (count,), f"{promise}, got {centre.shape} and {unit.shape}")
    demand(bool(np.isfinite(centre).all()), f"typical must return a finite decision, got {centre}")
    positive = bool((unit > 0).all() and np.isfinite(unit).all())
    demand(positive, f"the unit of decisions must be positive, got {unit}")
    return centre, unit


def _decided(cost: Cost, count: int, width: float = WIDTHS[0]) -> tuple[FloatArray, FloatArray]:
    """Return decisions around the typical one, and outcomes."""
    _, y = some_rows(products=count)
    centre, unit = _typical(cost, y)
    rng = np.random.default_rng(0)
    return centre + width * unit * rng.uniform(-1, 1, size=(len(y), len(centre))), y


def _cost_typical(cost: Cost) -> None:
    """The typical decision has as many numbers as a decision, and a positive unit."""
    for count in _counts(cost):
        _typical(cost, some_rows(products=count)[1])


def _cost_shapes(cost: Cost) -> None:
    """One finite number for each row, whatever the leading axes; inputs stay as they are."""
    for count in _counts(cost):
        z, y = _decided(cost, count)
        before = z.copy(), y.copy()
        rows = numbers_of(cost.evaluate(z, y), "what evaluate returns")
        close(before[0], z, "evaluate must not change decisions")
        close(before[1], y, "evaluate must not change outcomes")
        demand(rows.shape == (len(z),), f"evaluate must return shape ({len(z)},), got {rows.shape}")
        finite = bool(np.isfinite(rows).all())
        demand(finite, f"evaluate must be finite near typical decisions, got {rows}")
        close(cost.evaluate(z, y), rows, "evaluate must depend on decisions and outcomes alone")
        stacked = np.asarray(cost.evaluate(np.stack([z, z]), np.stack([y, y])))
        demand(stacked.shape == (2, len(z)), "evaluate must keep leading axes")
        if not isinstance(cost, AuxiliaryCost):  # whose variables are chosen for all rows at once
            close(stacked, [rows, rows], "evaluate must keep leading axes")
            alone = cost.evaluate(z[:1], y[:1])
            close(alone, rows[:1], "the cost of a row must not depend on other rows")


def _cost_mean(cost: Cost) -> None:
    """The mean is one number, that of the rows, and a weight of two is the row twice."""
    z, y = _decided(cost, _counts(cost)[0])
    weights = np.r_[2.0, np.ones(len(z) - 1)]
    weights, twice = weights / weights.sum(), np.r_[0, np.arange(len(z))]
    mean = number_of(cost.mean(z, y, weights), "what mean returns")
    close(
        mean, cost.mean(z[twice], y[twice], np.full(len(twice), 1.0 / len(twice))),
        "a weight of two must be the row twice",
    )  # fmt: skip
    if not isinstance(cost, AuxiliaryCost):
        close(mean, weights @ cost.evaluate(z, y), "mean must be the weighted mean of evaluate")


def _cost_promises(cost: Cost) -> None:
    """No cost is below the floor or grows faster than the growth, and one that is convex() is."""
    power = number_of(cost.growth(), "what growth returns")
    for count in _counts(cost):
        floor = number_of(cost.floor(count), "what floor returns")
        for width in WIDTHS:
            z, y = _decided(cost, count, width)
            below = bool((cost.evaluate(z, y) < floor - SLACK).any())
            demand(not below, f"no cost may be below floor(), {floor:g} with {count} outcomes")
            if cost.convex():
                other, rows = z[::-1], np.full(len(z), 1.0 / len(z))
                ends = [cost.mean(one, y, rows) for one in (z, other)]
                middle = cost.mean(0.5 * (z + other), y, rows)
                chord = 0.5 * sum(ends) + SLACK * (1.0 + max(abs(end) for end in ends))
                demand(middle <= chord, "a cost that is convex() may not lie above its chords")
        if np.isfinite(power):
            near, far = (
                np.abs(cost.evaluate(*_decided(cost, count, width))).max() for width in (1e2, 1e4)
            )
            demand(bool(far <= 2.0 * near * 1e2**power), f"no cost may grow faster than |z|^{power:g}")


def _cost_bends(cost: Cost) -> None:
    """No cost bends more than the curvature, nor in a decision more than its own of curvatures."""
    step, bend = 1e-3, number_of(cost.curvature(), "what curvature returns")
    for count in _counts(cost):
        for width in WIDTHS:
            z, y = _decided(cost, count, width)
            own = numbers_of(cost.curvatures(z.shape[1]), "what curvatures returns")
            promise = f"curvatures must return shape ({z.shape[1]},), got {own.shape}"
            demand(own.shape == (z.shape[1],), promise)
            ways = [np.ones(z.shape[1]), *np.eye(z.shape[1])]
            for way, most in zip(ways, (bend, *own), strict=True):
                if not np.isfinite(most):
                    continue
                low, middle, high = (cost.evaluate(z + k * step * way, y) for k in (-1, 0, 1))
                second = (low - 2 * middle + high) / step**2 / way.sum()
                # Differences of costs are only as exact as the costs.
                noise = 1e-4 + 1e-15 * float(np.abs(middle).max()) / step**2
                flat = bool((second <= most * 1.01 + noise).all())
                demand(flat, f"second derivatives must be <= {most}, got {second.max()}")


def _cost_floors(cost: Cost) -> None:
    """No affine policy is below affine_floor, no decisions within limits below limited_floor."""
    for count in _counts(cost):
        X, y = some_rows(products=count)
        weights, (centre, unit) = np.full(len(y), 1.0 / len(y)), _typical(cost, y)
        design = np.column_stack([X, np.ones(len(X))])
        fitted: FloatArray = np.zeros((4, len(centre)))
        if len(centre) == count:
            fitted = np.asarray(np.linalg.lstsq(design, y, rcond=None)[0], dtype=float)
        tried = [share * fitted for share in (0.0, 0.5, 1.0)]
        for theta in tried[:-1]:
            theta[-1] += centre - (weights @ design @ theta)
        values = [cost.mean(design @ theta, y, weights) for theta in tried]
        bound = number_of(cost.affine_floor(design, y, weights), "what affine_floor returns")
        most = min(values) + SLACK * (1.0 + abs(min(values)))
        demand(bound <= most, f"no affine policy may be below affine_floor(), {bound:g}, got {most:g}")
        limits: DecisionSet = Box(tuple(centre - unit), tuple(centre + unit))
        if cost.why_unlimited() is not None:
            limits = Simplex()
        groups = np.arange(len(y)) % 3
        decided = [limits.map_into(design @ theta)[groups] for theta in tried]
        values = [cost.mean(one, y, weights) for one in decided]
        bound = number_of(cost.limited_floor(limits, groups, y, weights), "what limited_floor returns")
        most = min(values) + SLACK * (1.0 + abs(min(values)))
        demand(bound <= most, f"no decisions may be below limited_floor(), {bound:g}, got {most:g}")


def _cost_pieces(cost: Cost) -> None:
    """A piecewise linear cost is the sum of its lines, and so convex."""
    if not isinstance(cost, ConvexPiecewiseCost):
        return
    for count in _counts(cost):
        lines = cost.pieces(count)
        each = isinstance(lines, tuple | list) and all(isinstance(one, Pieces) for one in lines)
        got = f"{len(lines)} for {count}" if each else repr(lines)
        promise = f"pieces must return one Pieces for each product, got {got}"
        demand(each and len(lines) == count, promise)
        for width in WIDTHS:
            z, y = _decided(cost, count, width)
            total = sum(piece.evaluate(z[:, j] - y[:, j]) for j, piece in enumerate(lines))
            close(cost.evaluate(z, y), total, "evaluate must be the sum of the pieces")


def _cost_in_jax(cost: Cost) -> None:
    """The same formula runs in JAX, with a finite derivative, also where decision meets outcome."""
    if importlib.util.find_spec("jax") is None:
        return
    jax = load_jax("A check")
    z, y = _decided(cost, _counts(cost)[0])
    if z.shape == y.shape:
        z[0] = y[0]
    formula: Callable[..., Any] = cost.evaluate
    if isinstance(cost, AuxiliaryCost):
        own = cost.best_auxiliary(z, y, np.full(len(z), 1.0 / len(z)))

        def formula(z: Any, y: Any, xp: Any = np) -> Any:
            return cost.evaluate_at(z, own, y, xp)

    with jax.enable_x64(True):
        put = jax.numpy.asarray(z), jax.numpy.asarray(y)
        in_jax = np.asarray(jax.jit(lambda z, y: formula(z, y, jax.numpy))(*put))
        slopes = np.asarray(jax.grad(lambda z: formula(z, put[1], jax.numpy).sum())(put[0]))
    close(formula(z, y), in_jax, "evaluate must give the same in numpy and jax.numpy")
    demand(bool(np.isfinite(slopes).all()), "evaluate must have a finite derivative in the decision")


COST_CHECKS = (
    frozen, saved, _cost_pieces, _cost_typical, _cost_shapes, _cost_mean, _cost_promises, _cost_bends,
    _cost_floors, _cost_in_jax,
)  # fmt: skip
