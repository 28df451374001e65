"""The profile function: how far the nearest distribution is for which a given policy is best.

A convex program, independent of the closed forms behind ``radius="profile"``; it needs
``pip install "surefoot[exact]"``.
"""

import importlib
from typing import Any

import numpy as np

from surefoot.ambiguity import WassersteinForm
from surefoot.exceptions import MissingExtraError, SurefootError
from surefoot.typing import FloatArray


def _cvxpy() -> Any:
    try:
        return importlib.import_module("cvxpy")
    except ImportError as error:
        raise MissingExtraError(
            'The profile function needs CVXPY: run pip install "surefoot[exact]".'
        ) from error


def profile_distance(
    problem: WassersteinForm, theta: FloatArray, intercept: float, *, may_cross: bool = True
) -> float:
    r"""Return the smallest transport distance to a distribution whose best policy is the given one.

    .. math:: \min \Big(\sum_{i,k} p_{ik} |\Delta_{ik}|^p\Big)^{1/p} \quad \text{s.t.} \quad
              \sum_{ik} p_{ik} w_k (x_i + \Delta_{ik}, 1) = 0, \quad
              w_k \in \partial\psi(\theta^\top (x_i + \Delta_{ik}) + t - y_i)

    Row i is split into an atom on each piece of the cost, k in {up, down}, with slope w_k and on the
    right side of the kink (or on it). With p_ik Delta_ik as variables this is a second-order cone
    program. Only contexts move, on a free support.

    Parameters
    ----------
    problem
        One product, in scaled units; its radius is not looked at.
    theta, intercept
        The policy, in scaled units.
    may_cross
        False: rows keep the slope that they have, on whichever side of the kink a move ends, and the
        intercept and frozen columns need not balance. This is what ``score_distance`` bounds.

    Returns
    -------
    float
        Infinite if no such distribution exists: a constant policy cannot make rows cross.

    Examples
    --------
    >>> from surefoot import Problem, WassersteinBall
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.nominals import Empirical
    >>> from surefoot.policies import Linear
    >>> from surefoot.problem import affine_forms
    >>> problem = Problem(Newsvendor(1.0, 1.0), Linear(), Empirical([[0.0], [1.0], [2.0]], [0, 1, 2]),
    ...                   WassersteinBall(0.0))
    >>> product = affine_forms(problem)[0]
    >>> profile_distance(product, product.scale, 0.0) < 1e-4
    True
    """
    program = _program(_cvxpy(), problem, theta, intercept, may_cross)
    program.solve(solver="CLARABEL")
    if program.status in ("infeasible", "infeasible_inaccurate"):
        return float("inf")
    if program.value is None:
        raise SurefootError(f"The profile program ended as {program.status}.")
    return float(max(program.value, 0.0) ** (1.0 / problem.order))


def _program(
    cp: Any, problem: WassersteinForm, theta: FloatArray, intercept: float, may_cross: bool
) -> Any:
    """Return the cone program: masses of the two atoms of each row, and mass times move."""
    moving, weights = problem.movable, problem.weights
    residuals = problem.residuals(theta, intercept)
    up, down = problem.pieces.up, problem.pieces.down
    n, columns = len(weights), int(moving.sum())
    slopes = np.concatenate([np.full(n, up), np.full(n, -down)])
    mass = cp.Variable(2 * n, nonneg=True)
    moves = cp.Variable((2 * n, columns)) if columns else np.zeros((2 * n, 1))
    shift = moves @ theta[moving] if columns else np.zeros(2 * n)
    both = np.vstack([problem.contexts, problem.contexts])
    weighted = cp.multiply(slopes, mass)
    constraints = [mass[:n] + mass[n:] == weights]
    if columns:
        constraints.append(both[:, moving].T @ weighted + moves.T @ slopes == 0)
    if may_cross:
        sides = cp.multiply(mass, np.tile(residuals, 2)) + shift
        constraints.append(cp.multiply(np.sign(slopes), sides) >= 0)
        if problem.intercept:
            constraints.append(cp.sum(weighted) == 0)
        if not moving.all():
            constraints.append(both[:, ~moving].T @ weighted == 0)
    else:
        constraints.append(mass[:n] == np.where(residuals >= 0.0, weights, 0.0))
    if problem.order == 1 or not columns:
        return cp.Problem(cp.Minimize(cp.sum(cp.norm(moves, 2, axis=1))), constraints)
    prices = cp.Variable(2 * n)  # >= |moves|^2 / mass, as a cone
    stacked = cp.vstack([2.0 * moves.T, cp.reshape(prices - mass, (1, 2 * n), order="C")])
    constraints.append(cp.SOC(prices + mass, stacked, axis=0))
    return cp.Problem(cp.Minimize(cp.sum(prices)), constraints)
