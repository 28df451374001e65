"""Steps of the primal-dual method for problems side by side (JAX): all rows of all problems at once.

The problem is that of ``primal_dual_kernel``. A single one draws a row for each step, because a row is
cheap; here all slopes of a problem step together (Chambolle and Pock 2011), because on a GPU they cost
no more than one. Arrays have a leading problem axis.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Array = Any
# Product of primal and dual step sizes, as a share of the largest that is safe.
SAFETY = 0.81
TINY = 1e-150


class Given(NamedTuple):
    """The numbers of the problems; rows and columns that fill up have weight and metric zero.

    ``rows`` has shape (problems, rows, columns), ``targets`` and ``weights`` (problems, rows),
    ``metric`` and ``priced`` (problems, columns); the others are one number for each problem.
    """

    rows: Array
    targets: Array
    weights: Array
    metric: Array
    priced: Array
    up: Array
    down: Array
    radius: Array
    pull: Array
    norm: Array


class Standing(NamedTuple):
    """Where each problem stands."""

    theta: Array
    slopes: Array
    balance: Array


def _price_and_shift(
    theta: Array, slopes: Array, given: Given, order: int, *, intercept: bool
) -> tuple[Array, Array]:
    """Return rho C / N and the kink's shift, shape (problems, 1); see ``primal_dual_kernel``."""
    squared = jnp.sum(given.priced * theta**2, axis=1)
    up, down, rho = given.up, given.down, given.radius
    if order == 1:
        price = rho * jnp.maximum(up, down) / (jnp.sqrt(squared) + TINY)
        return price[:, None], jnp.zeros_like(price)[:, None]
    reach = jnp.sqrt(squared + given.pull)
    if intercept:
        price = rho * jnp.sqrt(up * down) / (reach + TINY)
        return price[:, None], jnp.zeros_like(price)[:, None]
    mean = jnp.sum(given.weights * slopes, axis=1)
    constant = jnp.sqrt(jnp.maximum(up * down + (up - down) * mean, jnp.minimum(up, down) ** 2))
    shift = (down - up) * rho * reach / (2.0 * constant)
    return (rho * constant / (reach + TINY))[:, None], shift[:, None]


@lru_cache(maxsize=8)
def compiled_steps(order: int, *, intercept: bool) -> Any:
    """Return a compiled run: (standing, given, steps) -> standing, with step sizes rebalanced."""

    def step(at: Standing, given: Given) -> Standing:
        share = jnp.sqrt(SAFETY) / given.norm
        primal = (share * at.balance)[:, None] * given.metric
        dual = (share / at.balance)[:, None]
        price, shift = _price_and_shift(at.theta, at.slopes, given, order, intercept=intercept)
        gradient = jnp.einsum("pnk,pn->pk", given.rows, given.weights * at.slopes)
        theta = (at.theta - primal * gradient) / (1.0 + primal * price * given.priced)
        decisions = jnp.einsum("pnk,pk->pn", given.rows, 2.0 * theta - at.theta)
        slopes = at.slopes + dual * (decisions - given.targets - shift)
        slopes = jnp.clip(slopes, -given.down[:, None], given.up[:, None])
        return Standing(theta, slopes, at.balance)

    def run(at: Standing, given: Given, steps: Array) -> Standing:
        after = jax.lax.fori_loop(0, steps, lambda _, here: step(here, given), at)
        metric = jnp.where(given.metric > 0.0, given.metric, jnp.inf)
        travelled = jnp.sqrt(jnp.sum((after.theta - at.theta) ** 2 / metric, axis=1))
        turned = jnp.sqrt(jnp.sum(given.weights * (after.slopes - at.slopes) ** 2, axis=1))
        moved = (travelled > 0.0) & (turned > 0.0)
        change = travelled / jnp.where(moved, turned, 1.0) / at.balance
        factor = jnp.where(moved, jnp.sqrt(jnp.clip(change, 0.2, 5.0)), 1.0)
        return after._replace(balance=at.balance * factor)

    return jax.jit(run)
