"""The radius of the paper's Corollary 4, and the diameter that it asks for.

``radius_rules`` says what stands against it.
"""

import math

import numpy as np
from scipy.spatial.distance import cdist

from surefoot.problem import Problem, general_form
from surefoot.typing import FloatArray

# Up to this many rows all pairs are measured for the diameter; beyond, twice the largest distance
# from the mean bounds it.
PAIRS_UP_TO = 3_000


def paper_radius(diameter: float, rows: float, confidence: float = 0.95) -> float:
    """Return the radius of the paper's Corollary 4 (radius with high probability).

    sqrt(2 (1 + D^2) log(1/(1-q)) / n) for D >= 1, and 2 D sqrt(log(1/(1-q)) / n) below.

    >>> round(paper_radius(3.0, 100, 0.95), 3)
    0.774
    """
    factor = 2.0 * (1.0 + diameter**2) if diameter >= 1.0 else 4.0 * diameter**2
    return math.sqrt(-math.log1p(-confidence) * factor / rows)


def paper_probability(diameter: float, rows: float, radius: float) -> float:
    """Return the probability that the paper's Theorem 2 states for a radius: the inverse of the above.

    >>> round(paper_probability(3.0, 100, 0.774), 2)
    0.95
    """
    factor = 2.0 * (1.0 + diameter**2) if diameter >= 1.0 else 4.0 * diameter**2
    return -math.expm1(-rows * radius**2 / factor) if factor > 0.0 else 1.0


def transport_geometry(problem: Problem, seed: int = 0) -> tuple[FloatArray, float]:
    """Return rows as points whose Euclidean distance is that of the ball, and the diameter D.

    Movable columns in units of the ball, and outcomes times their transport cost where they move (for
    order 1 the ball adds both parts, and the Euclidean distance is a lower bound). D is the diagonal of
    the ball's box, or the largest distance between two rows without one.
    """
    form = general_form(problem, seed)
    points = (form.contexts / form.scale)[:, form.movable]  # offsets do not move
    sides = ((form.upper - form.lower) / form.scale)[form.movable]
    if form.outcomes_move:
        unit = form.outcome_cost if form.order == 1 else math.sqrt(form.outcome_cost)
        points = np.column_stack([points, unit * form.outcomes])
        sides = np.append(sides, unit * (form.outcome_bounds[1] - form.outcome_bounds[0]))
    points = points[form.weights > 0.0]
    if points.shape[1] == 0:
        return points, 0.0
    if np.isfinite(sides).all():
        return points, float(np.linalg.norm(sides))
    if len(points) > PAIRS_UP_TO:
        return points, 2.0 * float(np.linalg.norm(points - points.mean(axis=0), axis=1).max())
    return points, float(cdist(points, points).max())


def nearest_distance(points: FloatArray, counts: FloatArray | None = None) -> float:
    """Return the mean distance from a row to the nearest other row, of at most PAIRS_UP_TO rows.

    Any plan carries a fresh point to some row, so E min_i |x - x_i| is a lower bound of the distance
    of order 1 (and of order 2) between the true and the empirical distribution. Left-out rows stand
    for fresh points. A row that stands for several has another one where it is.
    """
    kept = points[:PAIRS_UP_TO]
    if len(kept) < 2 or kept.shape[1] == 0:
        return 0.0
    distances = cdist(kept, kept)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.min(axis=1)
    if counts is None:
        return float(nearest.mean())
    counts = counts[:PAIRS_UP_TO]
    return float(np.average(np.where(counts > 1.0, 0.0, nearest), weights=counts))
