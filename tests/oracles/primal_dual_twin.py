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
    price, shift = _price_and_shift(state, form, at)
    residual = float(x @ theta) - form.outcomes[row] - shift
    proposal = state.slopes[row] + dual[row] * residual
    slope = float(np.clip(proposal, -form.pieces.down, form.pieces.up))
    news = slope - state.slopes[row]
    gradient = state.gradient + form.weights[row] * news * x

    prices = np.where(np.arange(len(theta)) < at.n_priced, price, 0.0)
    if form.order == 1 and form.pull > 0.0:
        free = theta - primal * (gradient + news * x)
        due = _price_at_sphere(free[: at.n_priced], primal[: at.n_priced], price, form.pull)
        stepped = free / (1.0 + primal * np.where(prices > 0.0, due, 0.0))
    elif (primal * prices).max(initial=0.0) < STIFF_SHARE:
        stepped = theta - primal * (gradient + news * x + prices * theta)
    else:  # near theta = 0 the norm is stiff: treat it implicitly
        stepped = (theta - primal * (gradient + news * x)) / (1.0 + primal * prices)
    slopes = state.slopes.copy()
    slopes[row] = slope
    return MemoryState(stepped, slopes, gradient, state.mean_slope + form.weights[row] * news)


def _price_and_shift(state: MemoryState, form: WassersteinForm, at: Canonical) -> tuple[float, float]:
    """Return rho C / N, the pull of the norm on theta, and the kink's shift (b - h) q / 4."""
    up, down = form.pieces.up, form.pieces.down
    norm = float(np.linalg.norm(state.coordinates[: at.n_priced]))
    tiny = 1e-150
    if form.order == 1:
        return form.radius * max(up, down) / (norm + tiny), 0.0
    dual_norm = float(np.sqrt(norm**2 + form.pull))
    if at.spans_constant:  # the shift is part of the free constant
        return form.radius * float(np.sqrt(up * down)) / (dual_norm + tiny), 0.0
    square = max(up * down + (up - down) * state.mean_slope, min(up, down) ** 2)
    constant = float(np.sqrt(square))
    shift = (down - up) * form.radius * dual_norm / (2.0 * constant)
    return form.radius * constant / (dual_norm + tiny), shift


def _price_at_sphere(theta: FloatArray, primal: FloatArray, price: float, pull: float) -> float:
    """Return the share of the price that leaves ||theta|| at 1/kappa, none or all where none does."""

    def over(due: float) -> float:
        return float(np.linalg.norm(theta / (1.0 + primal * due))) - pull

    if over(0.0) <= 0.0:
        return 0.0
    if over(price) >= 0.0:
        return price
    return float(brentq(over, 0.0, price, xtol=1e-15 * price, rtol=1e-14))
