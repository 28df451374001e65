"""Steps of the primal-dual method for problems side by side (JAX): all rows of all problems at once.

The problem is that of ``primal_dual_kernel``. A single one draws a row for each step, because a row is
cheap; here all slopes of a problem step together (Chambolle and Pock 2011), because on a GPU they cost
no more than one. Arrays have a leading problem axis.
"""

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.engines.canonical import DAMPING_SHARE, RANK_SHARE
from surefoot.engines.primal_dual import FIRST_BALANCE, FIRST_SHARE, SMALLEST_PARAMETER

Array = Any
# Product of primal and dual step sizes, as a share of the largest that is safe.
SAFETY = 0.81
TINY = 1e-150
# Columns whose product is a smaller share of the largest second moment are orthogonal.
CROSSING = 1e-9


class Forms(NamedTuple):
    """Problems in their units; rows and columns that fill up have weight and entries zero.

    ``rows`` has shape (problems, rows, columns), ``targets``, ``weights`` and ``slopes`` (of the
    constant order) have shape (problems, rows); the others are one number for each problem.
    """

    rows: Array
    targets: Array
    weights: Array
    slopes: Array
    decision: Array
    cost: Array
    up: Array
    down: Array
    radius: Array
    inverse_kappa: Array


class Given(NamedTuple):
    """The same along principal axes, which have ``axes`` of shape (problems, coordinates, columns).

    ``rows`` has shape (problems, rows, coordinates), ``metric``, ``penalised`` (problems, coordinates),
    zero for coordinates that fill up.
    """

    rows: Array
    targets: Array
    weights: Array
    metric: Array
    penalised: Array
    up: Array
    down: Array
    radius: Array
    inverse_kappa: Array
    norm: Array
    axes: Array
    mean: Array


class Standing(NamedTuple):
    """Where each problem stands."""

    theta: Array
    slopes: Array
    balance: Array


def principal_axes(columns: Array, weights: Array) -> tuple[Array, Array]:
    """Return axes, shape (problems, coordinates, columns), and moments; both zero where rounding."""
    root = jnp.sqrt(weights)[:, :, None] * columns
    tall = columns.shape[1] >= columns.shape[2]
    pairs = "pni,pnj->pij" if tall else "pin,pjn->pij"
    moments, vectors = jnp.linalg.eigh(jnp.einsum(pairs, root, root))
    kept = moments > RANK_SHARE * jnp.maximum(moments[:, -1:], 0.0)
    moments = jnp.where(kept, moments, 0.0)
    axes = jnp.swapaxes(vectors, 1, 2)
    if not tall:
        axes = (axes @ root) / jnp.sqrt(jnp.where(kept, moments, 1.0))[:, :, None]
    return jnp.where(kept[:, :, None], axes, 0.0), moments


def _all_axes(columns: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return axes, moments and the largest but for the mean's own; see ``many_kernel._axes``."""
    mean = jnp.einsum("pn,pnj->pj", weights, columns)
    length = jnp.linalg.norm(mean, axis=1)
    square = jnp.einsum("pn,pnj->p", weights, columns**2)
    own = (length**2 > jnp.maximum(square - length**2, 0.0))[:, None]
    along = jnp.where(own, mean / jnp.where(own, length[:, None], 1.0), 0.0)
    part = jnp.einsum("pnj,pj->pn", columns, along)
    axes, moments = principal_axes(columns - part[:, :, None] * along[:, None, :], weights)
    axes -= jnp.einsum("pij,pj->pi", axes, along)[:, :, None] * along[:, None, :]
    moment = jnp.sum(weights * part**2, axis=1, keepdims=True)
    return (
        jnp.concatenate([axes, along[:, None, :]], axis=1),
        jnp.concatenate([moments, moment], axis=1),
        moments[:, -1:],
    )


def operator_norm(rows: Array, weights: Array, metric: Array) -> Array:
    """Return a bound of the norm of u -> sum_i w_i u_i x_i in the metric, for each problem.

    All columns but the last are orthogonal to each other, and the last one to them if it is constant
    (the others are centred then): the largest second moment is exact. If not, the last one's is added.
    """
    moments = metric * jnp.einsum("pn,pnk->pk", weights, rows**2)
    products = jnp.abs(jnp.einsum("pn,pnk->pk", weights * rows[:, :, -1], rows[:, :, :-1]))
    crossing = jnp.max(products * jnp.sqrt(metric[:, :-1] * metric[:, -1:]), axis=1, initial=0.0)
    largest = jnp.max(moments, axis=1)
    return jnp.sqrt(largest + jnp.where(crossing > CROSSING * largest, moments[:, -1], 0.0))


def _canonical(forms: Forms, *, intercept: bool) -> tuple[Given, Standing]:
    """Turn rows to their principal axes; return what problems start from."""
    weights, up, down = forms.weights, forms.up, forms.down
    count, _, s = forms.rows.shape
    mean, slopes = jnp.zeros((count, s)), jnp.zeros_like(forms.slopes)
    if intercept:
        mean, slopes = jnp.einsum("pn,pnj->pj", weights, forms.rows), forms.slopes
        columns = forms.rows - mean[:, None, :]
        axes, moments = principal_axes(columns, weights)
        typical = moments[:, -1:]
    else:
        columns = forms.rows
        axes, moments, typical = _all_axes(columns, weights)
    rows = jnp.einsum("pnj,pkj->pnk", columns, axes)
    kept = moments > 0.0
    metric = jnp.where(kept, 1.0 / jnp.sqrt(moments + (DAMPING_SHARE * typical + TINY)), 0.0)
    penalised = kept.astype(float)
    if intercept:
        rows = jnp.concatenate([rows, jnp.ones((*rows.shape[:2], 1))], axis=2)
        metric = jnp.concatenate([metric, jnp.ones((count, 1))], axis=1)
        penalised = jnp.concatenate([penalised, jnp.zeros((count, 1))], axis=1)
    norm = operator_norm(rows, weights, metric)
    norm = jnp.where(norm > 0.0, norm, 1.0)  # of problems that only fill up
    balance = FIRST_BALANCE * jnp.maximum(forms.cost, 1e-300) / (up + down)
    gradient = jnp.einsum("pnk,pn->pk", rows, weights * slopes)
    theta = -FIRST_SHARE * (balance / norm)[:, None] * metric * penalised * gradient
    if intercept:
        theta = theta.at[:, -1].set(forms.decision)
    given = Given(
        rows,
        forms.targets,
        weights,
        metric,
        penalised,
        up,
        down,
        forms.radius,
        forms.inverse_kappa,
        norm,
        axes,
        mean,
    )
    return given, Standing(theta, slopes, balance)


def _policies(theta: Array, given: Given, order: int, *, intercept: bool) -> tuple[Array, Array]:
    """Return parameters and intercepts in the columns of the forms; see ``many_kernel.policy_of``."""
    theta = jnp.where(jnp.abs(theta) > SMALLEST_PARAMETER, theta, 0.0)
    turned = theta[:, :-1] if intercept else theta
    policies = jnp.einsum("pk,pkj->pj", turned, given.axes)
    if not intercept:
        return policies, jnp.zeros(len(theta))
    constant = theta[:, -1] - jnp.sum(given.mean * policies, axis=1)
    if order == 2:
        shift = (given.down - given.up) / (2.0 * jnp.sqrt(given.up * given.down))
        constant += shift * given.radius * jnp.sqrt(jnp.sum(turned**2, axis=1) + given.inverse_kappa)
    return policies, constant


def _shrinkage_and_shift(
    theta: Array, slopes: Array, given: Given, order: int, *, intercept: bool
) -> tuple[Array, Array]:
    """Return rho C / N and the kink's shift, shape (problems, 1); see ``primal_dual_kernel``."""
    squared = jnp.sum(given.penalised * theta**2, axis=1)
    up, down, rho = given.up, given.down, given.radius
    if order == 1:
        shrinkage = rho * jnp.maximum(up, down) / (jnp.sqrt(squared) + TINY)
        return shrinkage[:, None], jnp.zeros_like(shrinkage)[:, None]
    norm = jnp.sqrt(squared + given.inverse_kappa)
    if intercept:
        shrinkage = rho * jnp.sqrt(up * down) / (norm + TINY)
        return shrinkage[:, None], jnp.zeros_like(shrinkage)[:, None]
    mean = jnp.sum(given.weights * slopes, axis=1)
    constant = jnp.sqrt(jnp.maximum(up * down + (up - down) * mean, jnp.minimum(up, down) ** 2))
    shift = (down - up) * rho * norm / (2.0 * constant)
    return (rho * constant / (norm + TINY))[:, None], shift[:, None]


class Compiled(NamedTuple):
    """How problems of one kind start, go on, and are looked at.

    ``start(forms) -> given, standing``; ``steps(standing, given) -> standing``, a fixed number of them
    (if it were handed over, JAX would wait for every single one); ``settle(before, after, given) ->
    standing, policies, constants``, with step sizes rebalanced.
    """

    start: Any
    steps: Any
    settle: Any


@lru_cache(maxsize=8)
def compiled(order: int, *, intercept: bool, steps: int) -> Compiled:
    """Return compiled functions for problems of one kind."""

    def step(at: Standing, given: Given) -> Standing:
        share = jnp.sqrt(SAFETY) / given.norm
        primal = (share * at.balance)[:, None] * given.metric
        dual = (share / at.balance)[:, None]
        shrinkage, shift = _shrinkage_and_shift(at.theta, at.slopes, given, order, intercept=intercept)
        gradient = jnp.einsum("pnk,pn->pk", given.rows, given.weights * at.slopes)
        theta = (at.theta - primal * gradient) / (1.0 + primal * shrinkage * given.penalised)
        decisions = jnp.einsum("pnk,pk->pn", given.rows, 2.0 * theta - at.theta)
        slopes = at.slopes + dual * (decisions - given.targets - shift)
        slopes = jnp.clip(slopes, -given.down[:, None], given.up[:, None])
        return Standing(theta, slopes, at.balance)

    def run(at: Standing, given: Given) -> Standing:
        return jax.lax.fori_loop(0, steps, lambda _, standing: step(standing, given), at)

    def settle(at: Standing, after: Standing, given: Given) -> tuple[Standing, Array, Array]:
        metric = jnp.where(given.metric > 0.0, given.metric, jnp.inf)
        travelled = jnp.sqrt(jnp.sum((after.theta - at.theta) ** 2 / metric, axis=1))
        turned = jnp.sqrt(jnp.sum(given.weights * (after.slopes - at.slopes) ** 2, axis=1))
        moved = (travelled > 0.0) & (turned > 0.0)
        change = travelled / jnp.where(moved, turned, 1.0) / at.balance
        factor = jnp.where(moved, jnp.sqrt(jnp.clip(change, 0.2, 5.0)), 1.0)
        policies = _policies(after.theta, given, order, intercept=intercept)
        return after._replace(balance=at.balance * factor), *policies

    return Compiled(jax.jit(partial(_canonical, intercept=intercept)), jax.jit(run), jax.jit(settle))
