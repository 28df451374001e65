"""One step of the stochastic primal-dual method: the pure NumPy twin of ``engines.primal_dual_kernel``."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from surefoot.ambiguity import WassersteinForm
from surefoot.engines.canonical import Canonical
from surefoot.engines.primal_dual_kernel import STIFF_SHARE
from surefoot.typing import FloatArray


@dataclass(frozen=True, eq=False)
class MemoryState:
    """All that the next step needs to know.

    Attributes
    ----------
    coordinates
        The policy in canonical coordinates.
    slopes
        The slope at which each row was last seen.
    gradient
        sum_i w_i u_i x_i, kept up to date.
    mean_slope
        sum_i w_i u_i, kept up to date.
    """

    coordinates: FloatArray
    slopes: FloatArray
    gradient: FloatArray
    mean_slope: float


def memory_update(
    state: MemoryState,
    row: int,
    form: WassersteinForm,
    at: Canonical,
    step_sizes: tuple[FloatArray, FloatArray],
) -> MemoryState:
    """Take one step on a row; ``step_sizes`` is (one for each coordinate, one for each row)."""
    primal, dual = step_sizes
    x, theta = at.rows[row], state.coordinates
    shrinkage, shift = _shrinkage_and_shift(state, form, at)
    residual = float(x @ theta) - form.outcomes[row] - shift
    proposal = state.slopes[row] + dual[row] * residual
    slope = float(np.clip(proposal, -form.pieces.down, form.pieces.up))
    news = slope - state.slopes[row]
    gradient = state.gradient + form.weights[row] * news * x

    shrinkages = np.where(np.arange(len(theta)) < at.n_penalised, shrinkage, 0.0)
    if form.order == 1 and form.inverse_kappa > 0.0:
        free = theta - primal * (gradient + news * x)
        due = _shrinkage_at_sphere(
            free[: at.n_penalised], primal[: at.n_penalised], shrinkage, form.inverse_kappa
        )
        stepped = free / (1.0 + primal * np.where(shrinkages > 0.0, due, 0.0))
    elif (primal * shrinkages).max(initial=0.0) < STIFF_SHARE:
        stepped = theta - primal * (gradient + news * x + shrinkages * theta)
    else:  # near theta = 0 the norm is stiff: treat it implicitly
        stepped = (theta - primal * (gradient + news * x)) / (1.0 + primal * shrinkages)
    slopes = state.slopes.copy()
    slopes[row] = slope
    return MemoryState(stepped, slopes, gradient, state.mean_slope + form.weights[row] * news)


def _shrinkage_and_shift(
    state: MemoryState, form: WassersteinForm, at: Canonical
) -> tuple[float, float]:
    """Return rho C / N, by which the norm shrinks theta, and the kink's shift (b - h) q / 4."""
    up, down = form.pieces.up, form.pieces.down
    norm = float(np.linalg.norm(state.coordinates[: at.n_penalised]))
    tiny = 1e-150
    if form.order == 1:
        return form.radius * max(up, down) / (norm + tiny), 0.0
    dual_norm = float(np.sqrt(norm**2 + form.inverse_kappa))
    if at.spans_constant:  # the shift is part of the free constant
        return form.radius * float(np.sqrt(up * down)) / (dual_norm + tiny), 0.0
    square = max(up * down + (up - down) * state.mean_slope, min(up, down) ** 2)
    constant = float(np.sqrt(square))
    shift = (down - up) * form.radius * dual_norm / (2.0 * constant)
    return form.radius * constant / (dual_norm + tiny), shift


def _shrinkage_at_sphere(
    theta: FloatArray, primal: FloatArray, shrinkage: float, inverse_kappa: float
) -> float:
    """Return the share of the shrinkage that leaves ||theta|| at 1/kappa, none or all where none does."""

    def over(due: float) -> float:
        return float(np.linalg.norm(theta / (1.0 + primal * due))) - inverse_kappa

    if over(0.0) <= 0.0:
        return 0.0
    if over(shrinkage) >= 0.0:
        return shrinkage
    return float(brentq(over, 0.0, shrinkage, xtol=1e-15 * shrinkage, rtol=1e-14))
