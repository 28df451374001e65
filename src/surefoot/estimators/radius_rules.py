r"""Radii from rules: what each one promises, and what it does not.

**Profile** (robust Wasserstein profile inference). Let z = theta'x + t be the best policy of the
true distribution, and u_i in {-b, h} the slope of the cost at its residual in row i. The best policy
of a distribution P is where the score vanishes: E_P[u (x, 1)] = 0. On the data the score is not zero,
S = sum_i w_i u_i x_i, with x_i net of the intercept and of frozen columns. Moving row i by Delta_i
without crossing the kink keeps u_i and turns the score into S + sum_i w_i u_i Delta_i, so the cheapest
moves that cancel it solve

    order 2:  min sum_i w_i |Delta_i|^2  s.t.  sum_i w_i u_i Delta_i = -S:  |S|^2 / sum_i w_i u_i^2
    order 1:  min sum_i w_i |Delta_i|    s.t.  the same:                    |S| / max(b, h)

In both cases the distance is |S| / C with C the slope constant of the ball, sqrt(b h) or max(b, h).
The radius is the quantile of |S| / C under the true distribution. If the quantile b/(b+h) of the
outcome given the context is affine, then given the contexts the u_i are independent, h with
probability b/(b+h) and -b otherwise, whatever the noise: the law of S is known and needs no estimate
(the pivotal penalty of Belloni and Chernozhukov). With s scaled columns its typical size is
sqrt(b h s / n) / C: like 1/sqrt(n), and like sqrt(s), because the norm of the ball adds up columns.

What holds. (1) Exactly, for any number of rows and columns: with the stated probability |S| / C is
at most the radius, counting the simulation (the order statistic of the draws is that of an exact
Monte Carlo test). (2) Then, by convexity, no policy of the family undercuts the best policy's cost on
the data by more than radius * C * |theta - theta_best| (intercept and frozen columns at their score).
(3) For many rows: some distribution in the ball has the true best policy as its own best one, so that
the policies which are best for a distribution in the ball form a confidence region. Rows that the
moves push over the kink stop there, where any slope is a subgradient, at a cost of lower order; so
does balancing the intercept and frozen columns, by letting rows near the kink cross. Crossing could
even cancel the whole score at lower order, so (3) errs on the safe side. (4) It says nothing about
the realised cost of the fitted policy.

References: Blanchet, Kang, Murthy (2019), Robust Wasserstein profile inference, J. Appl. Probab. 56;
Blanchet, Murthy, Si (2022), Confidence regions in Wasserstein distributionally robust estimation,
Biometrika 109; Belloni, Chernozhukov (2011), l1-penalized quantile regression, Ann. Statist. 39.

**Paper** (its Theorem 2 and the Corollary): sqrt(2 (1 + D^2) log(1/(1-q)) / n) for a support of
diameter D >= 1. It is dimension-free, and false: see ``docs/theory.md``.
"""

import math
from dataclasses import dataclass

import numpy as np

from surefoot.ambiguity import WassersteinForm
from surefoot.estimators.paper_radius import nearest_distance, paper_radius, transport_geometry
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical
from surefoot.problem import Problem, affine_forms, why_not_affine, with_adversaries
from surefoot.problem.problem import check_problem
from surefoot.random import rng_for
from surefoot.typing import FloatArray
from surefoot.validation import check_choice, check_integer, check_number

CONFIDENCE = 0.95
# Measured with ``reproduction.profile_distance`` on 200 samples each: order 2, b = 1, h = 0.2, uniform
# contexts and normal noise of unit variance, the best parameters of length 0.2 (at 0.5: 95 and 99 %, at
# 2: 100 %). A policy that hardly turns with the context makes rows travel far to cross the kink.
FEW_ROWS = (
    "For few rows and a best policy that is nearly constant this is less often so: with exact minimal "
    "transport 68 % at 20 rows and 1 column, 85 % at 40 rows and 2 columns, instead of 95 %."
)
# Draws of the score. The order statistic is exact for any number; more of them steady the radius.
DRAWS = 4_000
# Beyond this many rows the score is normal for all purposes, and s normals stand for n slopes.
NORMAL_FROM = 5_000
# So many slopes are drawn at once; more draws than this would take minutes.
DRAWN_NUMBERS, MOST_DRAWS = 2_000_000, 1_000_000


@dataclass(frozen=True)
class RuledRadius:
    """A radius, what the rule states about it, and what to know before trusting it.

    Attributes
    ----------
    rule
        "profile" or "paper".
    radius
        In units of the ball: standard deviations of the columns if they are scaled.
    confidence
        The probability in the statement.
    statement
        What the rule states, as a sentence.
    warnings
        What stands against it here; empty if nothing does.
    """

    rule: str
    radius: float
    confidence: float
    statement: str
    warnings: tuple[str, ...] = ()


def ruled_radius(
    rule: str,
    problem: Problem,
    *,
    confidence: float = CONFIDENCE,
    draws: int = DRAWS,
    seed: int = 0,
) -> RuledRadius:
    """Return the radius that a rule sets for a problem; the problem's own radius is not looked at.

    Parameters
    ----------
    rule
        "profile" or "paper" (see the module's text for what they mean).
    problem
        A problem with an Empirical nominal; "profile" needs a Linear policy and a kinked cost, too.
    confidence
        The probability that the rule states, between 0 and 1.
    draws, seed
        Of the simulated scores of "profile".

    Examples
    --------
    >>> from surefoot import Problem, WassersteinBall
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.datasets import synthetic
    >>> from surefoot.policies import Linear
    >>> data = synthetic(n=200, s=5, seed=0)
    >>> problem = Problem(Newsvendor(1.0, 0.2), Linear(), Empirical(data.X, data.y), WassersteinBall(0))
    >>> rule = ruled_radius("profile", problem)
    >>> 0.1 < rule.radius < 0.3
    True
    """
    check_choice("rule", rule, _RULES)
    check_problem(problem)
    confidence = check_number("confidence", confidence, above=0, below=1)
    if not isinstance(problem.nominal, Empirical):
        raise UnsupportedProblemError(
            f"radius={rule!r} needs the rows of an Empirical nominal, got "
            f"{type(problem.nominal).__name__}: give a number."
        )
    return _RULES[rule](
        problem,
        problem.nominal,
        confidence,
        check_integer("draws", draws, at_least=1),
        check_integer("seed", seed, at_least=0),
    )


def whole_masses(nominal: Empirical) -> FloatArray | None:
    """Return weights that are whole numbers, of the rows that have one; None if they are not.

    Whole numbers count: a row of weight 2 is the row twice, and there are as many samples as the
    weights sum to. Other weights say how much a single sample matters.
    """
    masses = nominal.masses[nominal.masses > 0.0]
    return masses if (masses == np.round(masses)).all() else None


def repetitions(nominal: Empirical) -> FloatArray | None:
    """Return how many samples each distinct row stands for; None if one, or no whole number."""
    if whole_masses(nominal) is None:
        return None
    counts = nominal.distinct().masses
    return counts if (counts > 1.0).any() else None


def net_columns(form: WassersteinForm) -> FloatArray:
    """Return movable columns net of what costs nothing to balance: intercept and frozen columns.

    Shape (rows, movable columns): the residuals of a weighted least squares fit.
    """
    movable = form.contexts[:, form.movable]
    free = form.contexts[:, ~form.movable]
    if form.intercept:
        movable, free = (part - form.weights @ part for part in (movable, free))
        free = np.column_stack([np.ones(len(free)), free])
    if free.shape[1] == 0:
        return movable
    root = np.sqrt(form.weights)[:, None]
    fitted = np.linalg.lstsq(root * free, root * movable, rcond=None)[0]
    return np.asarray(movable - free @ fitted)


def score_distance(form: WassersteinForm, slopes: FloatArray) -> FloatArray:
    r"""Return how far mass must move to cancel the score of given slopes without crossing the kink.

    .. math:: |\sum_i w_i u_i \tilde x_i| / C, \quad
              C = \max(b, h) \text{ (order 1)}, \ \sqrt{b h + (h - b) \bar u} \text{ (order 2)}

    Parameters
    ----------
    form
        One product.
    slopes
        u, shape (..., rows), in {-b, h}.

    Returns
    -------
    array of shape (...)
        Distances in the units of the form. The mean slope is zero where the intercept is free.
    """
    weighted = form.weights[:, None] * net_columns(form)
    if weighted.shape[1] > weighted.shape[0]:  # lengths are kept by the triangular factor
        weighted = np.asarray(np.linalg.qr(weighted.T, mode="r")).T
    sizes = np.linalg.norm(slopes @ weighted, axis=-1)
    constant: FloatArray | float = form.slope_constant
    if form.order == 2 and not form.intercept:
        up, down = form.pieces.up, form.pieces.down
        constant = np.sqrt(up * down + (up - down) * (slopes @ form.weights))
    return np.asarray(sizes / constant)


def profile_distances(
    form: WassersteinForm, draws: int, rng: np.random.Generator, counts: FloatArray | None = None
) -> FloatArray:
    """Simulate, given the contexts, how far the best policy's score is from zero; shape (draws,).

    ``counts`` says how many samples each row stands for, one without: each has a slope of its own.
    """
    up, down = form.pieces.up, form.pieces.down
    rows = len(form.weights)
    if rows > NORMAL_FROM:
        root = form.weights if counts is None else form.weights / np.sqrt(counts)
        spread = np.linalg.svd(root[:, None] * net_columns(form), compute_uv=False)
        normals = rng.standard_normal((draws, len(spread)))
        return np.asarray(np.sqrt(normals**2 @ spread**2) * form.pieces.geometric
                          / form.slope_constant)  # fmt: skip
    piece = max(1, DRAWN_NUMBERS // rows)
    distances = []
    for begin in range(0, draws, piece):
        shape = (min(piece, draws - begin), rows)
        if counts is None:
            slopes = np.where(rng.random(shape) < form.pieces.quantile, up, -down)
        else:
            covered = rng.binomial(counts.astype(np.int64), form.pieces.quantile, shape)
            slopes = covered / counts * (up + down) - down
        distances.append(score_distance(form, slopes))
    return np.concatenate(distances)


def transport_forms(problem: Problem, what: str, *, merge: bool = False) -> tuple[WassersteinForm, ...]:
    """Return the forms of an affine problem in a Wasserstein ball, or refuse it by name.

    Each product is looked at alone, whatever adversary they face together.
    """
    problem = with_adversaries(problem)
    reason = why_not_affine(problem)
    if reason is not None:
        raise UnsupportedProblemError(f"{what}: {reason}.")
    forms = affine_forms(problem, merge=merge)
    kept = tuple(form for form in forms if isinstance(form, WassersteinForm))
    if len(kept) < len(forms) or not all(form.pieces.two for form in kept):
        raise UnsupportedProblemError(
            f"{what}: it needs a WassersteinBall and a cost of two lines, got {problem.ball!r} and "
            f"{problem.cost!r}."
        )
    return kept


def _profile(
    problem: Problem, nominal: Empirical, confidence: float, draws: int, seed: int
) -> RuledRadius:
    what = "radius='profile' has no rule for this problem, use 'auto' or a number"
    counts = repetitions(nominal)
    products = transport_forms(problem, what, merge=counts is not None)
    # Products share contexts and may share noise; at level alpha / m each, all hold together.
    level = 1.0 - (1.0 - confidence) / len(products)
    needed = math.ceil(1.0 / (1.0 - level) - 1e-9)  # fewer draws have no such order statistic
    if needed > MOST_DRAWS:
        raise InvalidInputError(
            f"confidence must be <= {1.0 - len(products) / MOST_DRAWS:.6g} for {len(products)} "
            f"product{'s'[: len(products) > 1]}, got {confidence}."
        )
    draws = max(draws, needed)
    rank = min(math.ceil(level * (draws + 1) - 1e-9), draws)
    radius = 0.0
    for j, form in enumerate(products):
        rng = rng_for(seed, "profile", j)
        distances = profile_distances(form, draws, rng, counts) * form.column_unit
        radius = max(radius, float(np.partition(distances, rank - 1)[rank - 1]))
    every = "of every product " if len(products) > 1 else ""
    statement = (
        f"With probability {confidence:.0%} the score of the best policy {every}is within the radius, "
        "so that for many rows it can be cancelled within the ball: that policy is compatible with it. "
        f"{FEW_ROWS} Of the realised cost it says nothing."
    )
    return RuledRadius("profile", radius, confidence, statement, tuple(_profile_warnings(products)))


def _profile_warnings(products: tuple[WassersteinForm, ...]) -> list[str]:
    notes = []
    if any(product.supported for product in products):
        notes.append(
            "the support may stop moves that the rule counts on, so that its coverage is not proved"
        )
    if not products[0].movable.any():
        notes.append("no column moves, so that every radius gives the same policy")
    return notes


def _paper(
    problem: Problem, nominal: Empirical, confidence: float, draws: int, seed: int
) -> RuledRadius:
    del draws
    points, diameter = transport_geometry(problem, seed)
    counts = whole_masses(nominal)
    rows = 1.0 / float(nominal.weights @ nominal.weights) if counts is None else float(counts.sum())
    radius = paper_radius(diameter, rows, confidence)
    statement = (
        "The paper states that the ball holds the true distribution with probability "
        f"{confidence:.0%}; the statement is false."
    )
    return RuledRadius(
        "paper",
        radius,
        confidence,
        statement,
        tuple(_paper_warnings(problem, points, diameter, radius, counts)),
    )


def _paper_warnings(
    problem: Problem, points: FloatArray, diameter: float, radius: float, counts: FloatArray | None
) -> list[str]:
    notes = []
    if math.isinf(problem.ball.outcome_cost):
        notes.append(
            "the ball moves contexts alone, so it never holds the true distribution of a continuous "
            "outcome (coverage 0 %)"
        )
    nearest = nearest_distance(points, counts)
    if nearest > radius:
        notes.append(
            f"even of the contexts alone the true distribution is about {nearest:.3g} away or farther, "
            f"measured by the mean distance from a row to the nearest other one, and the radius is "
            f"{radius:.3g}"
        )
    if radius >= diameter:
        notes.append(f"the rule is for radii below the diameter {diameter:.3g}, got {radius:.3g}")
    collapse = _collapse(problem)
    if collapse is not None and radius >= collapse:
        notes.append(
            f"the radius {radius:.3g} is not below rho_max = {collapse:.3g}: the policy is constant"
        )
    notes.append("the theorem behind the rule does not hold: prefer 'auto' or 'profile'")
    return notes


def _collapse(problem: Problem) -> float | None:
    """Return the radius from which on the best policy is constant, or None where there is none."""
    try:
        forms = transport_forms(problem, "collapse")
    except UnsupportedProblemError:
        return None
    exact = all(form.collapses for form in forms)
    return max(form.largest_radius * form.column_unit for form in forms) if exact else None


_RULES = {"profile": _profile, "paper": _paper}
