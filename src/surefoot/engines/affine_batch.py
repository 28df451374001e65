"""Plain DA-SGD for many affine problems side by side (JAX): one step of all of them is one kernel.

The formulas are those of ``affine_kernels.fused_steps``, with theta = X'a: X theta and XX' say all
there is to know, and a step costs one row of XX' whatever the number of columns. Problems with
fewer rows than others are filled up with rows that are never drawn. All arrays have a leading
problem axis.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.engines.affine_kernels import AVERAGE_EVERY, PRIOR_SLOPES, SLOPE_WINDOW

Array = Any


class Instances(NamedTuple):
    """The numbers of the problems.

    ``gram`` has shape (problems, rows, rows), ``outcomes`` (problems, rows); the others are one number
    for each problem: slopes up and down, radius, and 1/kappa.
    """

    gram: Array
    outcomes: Array
    up: Array
    down: Array
    radius: Array
    pull: Array


class BatchState(NamedTuple):
    """Where each problem stands; names as in ``affine_kernels.NUMBERS``."""

    coefficients: Array
    decisions: Array
    average: Array
    average_intercept: Array
    slope_sums: Array
    visits: Array
    intercept: Array
    start: Array
    squared: Array
    square_slope: Array
    travelled: Array
    intercept_travelled: Array
    squares: Array
    intercept_squares: Array
    steps: Array


def _answer(
    here: BatchState, given: Instances, order: int, dot: Array, y: Array
) -> tuple[Array, Array]:
    """Return the slope p at the moved sample and theta's pull on itself; see ``affine_kernels``."""
    residual = dot + here.intercept - y
    if order == 1:
        slope = jnp.where(residual >= 0.0, given.up, -given.down)
        norm = jnp.sqrt(here.squared)
        priced = (norm > 0.0) & (norm >= given.pull)
        steepest = jnp.maximum(given.up, given.down)
        return slope, jnp.where(priced, given.radius * steepest / jnp.where(priced, norm, 1.0), 0.0)
    reach2 = here.squared + given.pull
    moves = (reach2 > 0.0) & (given.radius > 0.0)
    safe = jnp.where(moves, reach2, 1.0)
    gamma = jnp.sqrt(here.square_slope * safe) / (2.0 * jnp.where(moves, given.radius, 1.0))
    middle = 0.5 * (given.up - given.down)
    shift = jnp.where(moves, middle * safe / (2.0 * gamma), 0.0)
    slope = jnp.where(residual + shift >= 0.0, given.up, -given.down)
    return slope, jnp.where(moves, slope * slope / (2.0 * gamma), 0.0)


def batch_step(
    here: BatchState, rows: Array, given: Instances, order: int, *, intercept: bool, average: bool
) -> BatchState:
    """Take one step of every problem on the row that it drew; with ``average`` count its slope."""
    problems = jnp.arange(rows.shape[0])
    dot, y = here.decisions[problems, rows], given.outcomes[problems, rows]
    row = given.gram[problems, rows]
    norm = given.gram[problems, rows, rows]
    slope, own = _answer(here, given, order, dot, y)
    gradient_square = jnp.maximum(
        slope * slope * norm + 2.0 * slope * own * dot + own * own * here.squared, 0.0
    )
    squares = here.squares + gradient_square
    step = here.travelled / jnp.sqrt(squares + 1e-300)
    intercept_squares = here.intercept_squares + slope * slope
    at, far = here.intercept, here.intercept_travelled
    if intercept:
        at = at - far / jnp.sqrt(intercept_squares + 1e-300) * slope
        far = jnp.maximum(far, jnp.abs(at - here.start))
    keep, push = 1.0 - step * own, -step * slope
    squared = jnp.maximum(
        keep * keep * here.squared + 2.0 * keep * push * dot + push * push * norm, 0.0
    )
    drawn = jnp.arange(row.shape[1])[None, :] == rows[:, None]
    if average:
        here = here._replace(
            slope_sums=here.slope_sums + jnp.where(drawn, slope[:, None], 0.0),
            visits=here.visits + drawn,
        )
    rate = jnp.maximum(1.0 / (here.steps + PRIOR_SLOPES), 1.0 / SLOPE_WINDOW)
    return here._replace(
        coefficients=keep[:, None] * here.coefficients + jnp.where(drawn, push[:, None], 0.0),
        decisions=keep[:, None] * here.decisions + push[:, None] * row,
        intercept=at,
        squared=squared,
        square_slope=here.square_slope + rate * (slope * slope - here.square_slope),
        travelled=jnp.maximum(here.travelled, jnp.sqrt(squared)),
        intercept_travelled=far,
        squares=squares,
        intercept_squares=intercept_squares,
        steps=here.steps + 1.0,
    )


@lru_cache(maxsize=16)
def compiled_batch(order: int, *, intercept: bool, average: bool) -> Any:
    """Return a compiled run: (state, draws (steps, problems), instances) -> state.

    ``steps`` is a multiple of ``AVERAGE_EVERY``; with ``average`` policies are added up that often.
    """

    def one(here: BatchState, rows: Array, given: Instances) -> BatchState:
        return batch_step(here, rows, given, order, intercept=intercept, average=average)

    def group(here: BatchState, rows: Array, given: Instances) -> BatchState:
        here = one(here, rows[0], given)
        if average:
            here = here._replace(
                average=here.average + here.coefficients,
                average_intercept=here.average_intercept + here.intercept,
            )
        return jax.lax.fori_loop(1, AVERAGE_EVERY, lambda k, at: one(at, rows[k], given), here)

    def run(here: BatchState, draws: Array, given: Instances) -> BatchState:
        groups = draws.reshape(-1, AVERAGE_EVERY, draws.shape[1])
        return jax.lax.scan(lambda at, rows: (group(at, rows, given), None), here, groups)[0]

    return jax.jit(run)
