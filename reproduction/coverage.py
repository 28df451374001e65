"""Stated against measured coverage of the radius rules, by simulation.

Contexts are uniform on a cube with standard deviation 1 in every column (so the support is compact,
with diameter sqrt(12 d)), y = theta'x + noise with standard normal noise and |theta| = 2: the best
policy is affine and known, and the expected cost of any affine policy has a closed form given x.

Four questions are asked of every radius, each answered in every repetition:

- ``ball_low`` and ``ball_high`` bracket the share of samples whose ball holds the true distribution
  *of the contexts*, order 1. The distance is at most the mean distance to fresh samples of the same
  size (by convexity) and at least the mean distance from a fresh point to the nearest row. The true
  joint distribution is never in a ball that moves contexts alone: the outcome is continuous.
- ``score``: the score of the true best policy can be cancelled within the ball, what "profile" states.
- ``compatible``: the true best policy is the best one of some distribution in the ball (a convex
  program; small cells only).
- ``certificate``: the true expected cost of the fitted policy is at most its certificate.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from statistics import NormalDist

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import ndtr

from reproduction.profile_distance import profile_distance
from surefoot.ambiguity import WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.estimators.paper_radius import paper_radius
from surefoot.estimators.radius_rules import ruled_radius, score_distance, transport_forms
from surefoot.estimators.radius_selection import choose_radius
from surefoot.forecasts import Question
from surefoot.nominals import Empirical
from surefoot.policies import Linear, LinearParameters
from surefoot.problem import Problem
from surefoot.random import rng_for
from surefoot.solvers import PrimalDual
from surefoot.typing import FloatArray
from surefoot.validation import check_integer

SIGNAL = 2.0
HALF_SIDE = math.sqrt(3.0)
# Points that estimate the distance to the true contexts and the cost of a policy.
FRESH_POINTS = 2_000
# Fresh samples over which the upper end of the distance is averaged.
FRESH_SAMPLES = 2
RULES = ("paper", "paper, true diameter", "profile", "auto")


@dataclass(frozen=True)
class Coverage:
    """One rule in one cell: shares of the repetitions, and means over them.

    Attributes
    ----------
    rule, columns, rows
        What was tried: the rule, d and N.
    stated
        The probability that the rule states, None for cross-validation.
    ball_low, ball_high, score, compatible, certificate
        Measured shares (see the module's text); None where not measured.
    radius, share_of_max
        Mean radius, and mean ratio to rho_max.
    norm
        Mean norm of the fitted theta, as a share of the true one.
    cost_ratio
        Mean true cost of the fitted policy, as a multiple of the best one's.
    """

    rule: str
    columns: int
    rows: int
    repetitions: int
    stated: float | None
    ball_low: float
    ball_high: float
    score: float
    compatible: float | None
    certificate: float
    radius: float
    share_of_max: float
    norm: float
    cost_ratio: float

    def as_row(self) -> Mapping[str, object]:
        """Return the fields by name."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}


@dataclass(frozen=True, eq=False)
class World:
    """The true distribution of an experiment, and what it says about policies.

    Examples
    --------
    >>> world = World(columns=3, cost=Newsvendor(1.0, 0.2))
    >>> best = world.expected_cost(world.theta, world.intercept)
    >>> best < world.expected_cost(world.theta, world.intercept + 0.1)
    True
    """

    columns: int
    cost: Newsvendor
    fresh: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Draw the fresh contexts on which expectations are taken."""
        drawn = self.contexts(rng_for(0, "coverage", "fresh", self.columns), FRESH_POINTS)
        object.__setattr__(self, "fresh", drawn)

    @property
    def theta(self) -> FloatArray:
        """True coefficients, shape (columns,)."""
        return np.full(self.columns, SIGNAL / math.sqrt(self.columns))

    @property
    def intercept(self) -> float:
        """Intercept of the best policy: the noise quantile at b / (b + h)."""
        return NormalDist().inv_cdf(self.cost.pieces(1)[0].quantile)

    @property
    def diameter(self) -> float:
        """Diameter of the support of the contexts."""
        return 2.0 * HALF_SIDE * math.sqrt(self.columns)

    def contexts(self, rng: np.random.Generator, rows: int) -> FloatArray:
        """Draw contexts, shape (rows, columns)."""
        return rng.uniform(-HALF_SIDE, HALF_SIDE, (rows, self.columns))

    def sample(self, rng: np.random.Generator, rows: int) -> tuple[FloatArray, FloatArray]:
        """Draw contexts and outcomes."""
        X = self.contexts(rng, rows)
        return X, X @ self.theta + rng.standard_normal(rows)

    def expected_cost(self, theta: FloatArray, intercept: float) -> float:
        """Return the true expected cost of a policy: exact over the noise, a mean over contexts."""
        piece = self.cost.pieces(1)[0]
        lead = self.fresh @ (theta - self.theta) + intercept  # r = lead - noise
        over = lead * ndtr(lead) + np.exp(-0.5 * lead**2) / math.sqrt(2.0 * math.pi)
        return float(np.mean(piece.up * over + piece.down * (over - lead)))

    def context_distance(self, X: FloatArray, rng: np.random.Generator) -> tuple[float, float]:
        """Return bounds on the order-1 distance between the rows and the true contexts."""
        low = float(cdist(self.fresh, X).min(axis=1).mean())
        high = 0.0
        for _ in range(FRESH_SAMPLES):
            distances = cdist(X, self.contexts(rng, len(X)))
            high += float(distances[linear_sum_assignment(distances)].mean()) / FRESH_SAMPLES
        return low, high


def coverage_cell(
    columns: int,
    rows: int,
    *,
    repetitions: int = 200,
    order: int = 2,
    compatible: bool = False,
    seed: int = 0,
) -> list[Coverage]:
    """Measure every rule on the same samples of one size.

    Parameters
    ----------
    columns, rows, repetitions
        d, N and how many samples to draw.
    order
        Order of the ball; the distance of the true contexts is always of order 1, the smaller one.
    compatible
        Whether to solve the convex program of ``Coverage.compatible``.

    Examples
    --------
    >>> paper, _, profile, auto = coverage_cell(2, 30, repetitions=4)
    >>> profile.stated, auto.stated
    (0.95, None)
    """
    check_integer("repetitions", repetitions, at_least=1)
    world = World(columns, Newsvendor(1.0, 0.2))
    seen: dict[str, list[tuple[float, ...]]] = {rule: [] for rule in RULES}
    for repetition in range(repetitions):
        rng = rng_for(seed, "coverage", columns, rows, repetition)
        X, y = world.sample(rng, rows)
        low, high = world.context_distance(X, rng)
        problem = Problem(world.cost, Linear(), Empirical(X, y), WassersteinBall(0.0, order=order))
        # In the user's units: the truth is given in them.
        product = transport_forms(problem, "coverage")[0].in_plain_units()
        truth = world.theta * product.scale
        slopes = np.where(product.residuals(truth, world.intercept) >= 0.0, product.pieces.up,
                          -product.pieces.down)  # fmt: skip
        score = float(score_distance(product, slopes))
        profile = profile_distance(product, truth, world.intercept) if compatible else math.nan
        for rule, radius in _radii(problem, world, rows, repetition).items():
            fitted = _fitted(problem, radius, world, repetition)
            covered = (high <= radius, low <= radius, score <= radius, profile <= radius)
            seen[rule].append((*covered, *fitted, radius, radius / product.collapse_radius()))
    best = world.expected_cost(world.theta, world.intercept)
    return [_summary(rule, columns, rows, np.array(found), best, compatible)
            for rule, found in seen.items()]  # fmt: skip


def _radii(problem: Problem, world: World, rows: int, seed: int) -> dict[str, float]:
    return {
        "paper": ruled_radius("paper", problem).radius,
        "paper, true diameter": paper_radius(world.diameter, rows),
        "profile": ruled_radius("profile", problem, seed=seed).radius,
        "auto": choose_radius(_question(problem), PrimalDual(), seed).radius,
    }


def _question(problem: Problem) -> Question:
    """Return the problem as an estimator asks for its radius."""
    assert isinstance(problem.nominal, Empirical)  # made above
    return Question(problem, problem.around(problem.nominal.distinct()))


def _fitted(problem: Problem, radius: float, world: World, seed: int) -> tuple[float, float, float]:
    """Fit at a radius: whether the certificate covers the true cost, the norm, the true cost."""
    solution = PrimalDual().solve(problem.at_radius(radius), seed)
    assert isinstance(solution.parameters, LinearParameters)  # the policy is Linear
    theta, intercept = solution.parameters.theta[:, 0], float(solution.parameters.intercept[0])
    cost = world.expected_cost(theta, intercept)
    return float(cost <= solution.certificate.upper), float(np.linalg.norm(theta)) / SIGNAL, cost


def _summary(
    rule: str, columns: int, rows: int, found: FloatArray, best: float, compatible: bool
) -> Coverage:
    held_high, held_low, score, profile, certificate, norm, cost, radius, share = found.mean(axis=0)
    return Coverage(
        rule=rule, columns=columns, rows=rows, repetitions=len(found),
        stated=None if rule == "auto" else 0.95,
        ball_low=float(held_high), ball_high=float(held_low), score=float(score),
        compatible=float(profile) if compatible else None, certificate=float(certificate),
        radius=float(radius), share_of_max=float(share), norm=float(norm),
        cost_ratio=float(cost) / best,
    )  # fmt: skip
