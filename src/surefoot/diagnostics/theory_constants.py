"""Every constant of the paper's Theorem 1, for an affine policy and the smoothed newsvendor cost.

Within ||(x, 1)|| <= B, ||theta|| <= R and gamma >= gamma_min, with k = (b + h) / (2 delta) the
curvature of the cost smoothed by delta and G = max(b, h):

    L_tt = k B^2      L_tx = L_xt = k B R + G      L_xx = k R^2
    mu   = 2 gamma_min - k R^2  (order 2),  0  (order 1: a norm has no curvature)
    L_xg = 2 * largest move     (order 2),  1  (order 1)
    L1 = L_xg / mu,  L2 = L_xt / mu,  L3 = L_tx L_xg / mu,  L4 = L_tt + L_tx L_xt / mu
    L  = spectral norm of [[L4, L3], [L_xg L2, L_xg L1]]

The paper bounds the gradient in gamma by |x'_1 - x'_2|; for the squared distance it is L_xg times
that, which the second row of L has. With an intercept contexts are centred: that is the same policy
with another t, and the smallest B.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from surefoot.ambiguity import WassersteinForm
from surefoot.ambiguity.moves import best_moves
from surefoot.typing import FloatArray


@dataclass(frozen=True)
class Constants:
    """The constants of Theorem 1 and the region in which they hold; infinite where there is none.

    Attributes
    ----------
    smoothing
        delta, the width in which the kink is rounded; zero leaves no curvature bound.
    context_norm, parameter_norm, multiplier, move
        The region: B over moved contexts, R over movable columns (joined with the outcome's share if
        it moves), gamma_min, and the adversary's largest move.
    l_tt, l_tx, l_xt, l_xx, l_xg
        Lipschitz constants of the gradients: in parameters and samples, and in gamma.
    mu
        Strong concavity of the inner problem; at most zero where there is none.
    l_1, l_2, l_3, l_4, smoothness
        The constants of Lemma 1, and L.
    smoothness_printed
        L as the paper prints it.
    variance_theta, variance_gamma
        sigma_theta^2 and sigma_gamma^2.
    gap_at_start
        Lambda = H(start) - inf H, from the constant order (zero without an intercept).
    gradient_squared
        The largest squared gradient norm of H in the region: what is known without the theorem.
    """

    smoothing: float
    context_norm: float
    parameter_norm: float
    multiplier: float
    move: float
    l_tt: float
    l_tx: float
    l_xt: float
    l_xx: float
    l_xg: float
    mu: float
    l_1: float
    l_2: float
    l_3: float
    l_4: float
    smoothness: float
    smoothness_printed: float
    variance_theta: float
    variance_gamma: float
    gap_at_start: float
    gradient_squared: float


def context_lengths(form: WassersteinForm) -> FloatArray:
    """Return ||(x_i, 1)|| of each row, contexts centred; ||x_i|| without an intercept."""
    if not form.intercept:
        return np.asarray(np.linalg.norm(form.contexts, axis=1))
    centred = form.contexts - form.weights @ form.contexts
    return np.asarray(np.sqrt(1.0 + np.einsum("ij,ij->i", centred, centred)))


def start(form: WassersteinForm) -> tuple[FloatArray, float]:
    """Return where learning begins: the constant order, or nothing without an intercept."""
    return np.zeros(form.contexts.shape[1]), form.constant_order()[0] * form.intercept


def theorem_constants(
    form: WassersteinForm,
    theta: FloatArray,
    multiplier: float,
    *,
    lowest: float,
    smoothing: float,
) -> Constants:
    """Return the constants in the smallest region that holds the policy and its multiplier.

    Parameters
    ----------
    form
        One product.
    theta, multiplier
        The fitted parameters and gamma: R = ||theta|| and gamma_min = gamma. A larger region only
        has worse constants.
    lowest
        A lower bound on inf H.
    smoothing
        delta > 0, or 0 for the kinked cost, which has no finite L.
    """
    pieces = replace(form.pieces, smoothing=smoothing)
    smoothed = replace(form, pieces=pieces)
    gradient_bound, order = pieces.steepest, form.order
    k = (pieces.up + pieces.down) / (2.0 * smoothing) if smoothing > 0.0 else math.inf
    outcome_share = form.inverse_kappa if order == 1 else math.sqrt(form.inverse_kappa)
    norm = math.hypot(float(np.linalg.norm(theta[form.movable])), outcome_share)
    move = _largest_move(form, norm, multiplier)
    lengths = context_lengths(form) + move
    longest = float(lengths.max())
    l_xx = _product(k, norm**2)
    l_tx = _product(k, longest * norm) + gradient_bound
    mu = 2.0 * multiplier - l_xx if order == 2 else 0.0
    l_tt, l_xg = _product(k, longest**2), 2.0 * move if order == 2 else 1.0
    share = 1.0 / mu if mu > 0.0 else math.inf
    l_1, l_2 = _product(share, l_xg), _product(share, l_tx)
    l_3, l_4 = _product(share, l_tx * l_xg), l_tt + _product(share, l_tx**2)
    budget = form.radius**order
    farthest = max(budget, move**order - budget)
    return Constants(
        smoothing=smoothing, context_norm=longest, parameter_norm=norm, multiplier=multiplier,
        move=move, l_tt=l_tt, l_tx=l_tx, l_xt=l_tx, l_xx=l_xx, l_xg=l_xg, mu=mu,
        l_1=l_1, l_2=l_2, l_3=l_3, l_4=l_4,
        smoothness=_spectral(l_4, l_3, _product(l_xg, l_2), _product(l_xg, l_1)),
        smoothness_printed=math.sqrt(
            max(l_1**2 + l_3**2, l_2**2 + l_4**2) + _product(l_1, l_2) + _product(l_3, l_4)
        ),
        variance_theta=gradient_bound**2 * float(form.weights @ lengths**2),
        variance_gamma=0.25 * move ** (2 * order),  # of a number between 0 and move^p
        gap_at_start=max(_dual_value(smoothed, *start(form), multiplier) - lowest, 0.0),
        gradient_squared=(gradient_bound * float(form.weights @ lengths)) ** 2 + farthest**2,
    )  # fmt: skip


def _product(factor: float, other: float) -> float:
    """Return a product in which nothing times infinity is nothing."""
    return 0.0 if other == 0.0 or factor == 0.0 else factor * other


def _spectral(a: float, b: float, c: float, d: float) -> float:
    """Return the spectral norm of [[a, b], [c, d]], infinite if an entry is."""
    matrix = np.array([[a, b], [c, d]])
    return float(np.linalg.norm(matrix, 2)) if np.isfinite(matrix).all() else math.inf


def _largest_move(form: WassersteinForm, norm: float, multiplier: float) -> float:
    """Return how far the adversary moves a row at most: G R / (2 gamma), or across the box."""
    sides = (form.upper - form.lower)[form.movable]
    across = float(np.linalg.norm(sides)) if len(sides) else 0.0
    if form.order == 1:  # at gamma >= G R nothing moves on a free support
        return across if math.isfinite(across) else 0.0
    free = form.pieces.steepest * norm / (2.0 * multiplier) if multiplier > 0.0 else 0.0
    return min(free, across)


def _dual_value(form: WassersteinForm, theta: FloatArray, intercept: float, multiplier: float) -> float:
    """Return H(theta, gamma) of the problem's cost."""
    if form.dual_norm(theta) == 0.0 or multiplier == 0.0:
        values = form.pieces.evaluate(form.residuals(theta, intercept))
    else:
        values = best_moves(form, theta, intercept, multiplier).value
    return multiplier * form.radius**form.order + float(form.weights @ values)
