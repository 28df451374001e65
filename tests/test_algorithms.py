"""The table "which algorithm runs where" says what runs."""

import re
from pathlib import Path

import numpy as np
import pytest

from surefoot import Box, Budget, Contamination, Problem, WassersteinBall
from surefoot.costs import Newsvendor, Quadratic, TieredNewsvendor
from surefoot.engines.choice import engine_class, why_no_stream
from surefoot.engines.step_rules import AdaptiveStep
from surefoot.engines.stream import StreamOptions
from surefoot.exceptions import SurefootError
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import MLP, Linear
from surefoot.problem import affine_forms
from surefoot.solvers import default_solver

PAGE = Path(__file__).parent.parent / "docs" / "howto" / "solve.md"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
ROWS = Empirical(X, X.sum(axis=1) + RNG.normal(size=12))
SAMPLER = Gaussian(mean=np.zeros(3), covariance=np.eye(3))
TWO, TIERS = Newsvendor(1.0, 0.2), TieredNewsvendor(((0, 1.0), (3, 2.0)), 0.2)
BALL, BOX = WassersteinBall(0.1), Box(-9, 9)
# Of several products: as it comes, and one adversary where the user asks for it.
SEVERAL, JOINT = WassersteinBall(0.2), WassersteinBall(0.1, order=1, adversary="joint")
TWO_ROWS = Empirical(X, X + RNG.normal(size=(12, 2)))
TWO_SAMPLER = Gaussian(mean=np.zeros(4), covariance=np.eye(4), n_products=2)

CASES = {
    "linear, cost of two slopes": [
        (TWO, Linear(), BALL), (TWO, Linear(), WassersteinBall(0.1, order=1)),
        (TWO, Linear(), WassersteinBall(0.1, frozen=(0,))), (TWO, Linear(decisions=BOX), BALL),
        (TWO, Linear(), WassersteinBall(0.1, outcome_cost=1.0)),
        (TWO, Linear(offset=lambda X: X[:, :1]), BALL),
    ],
    "linear; more slopes": [
        (TIERS, Linear(), BALL), (TWO, Linear(), WassersteinBall(0.1, support=BOX)),
    ],
    "linear, several products, order 2": [(TWO, Linear(), SEVERAL), (TIERS, Linear(), SEVERAL)],
    "linear, several products under one adversary": [
        (TWO, Linear(), JOINT), (TIERS, Linear(), JOINT),
        (TWO, Linear(), WassersteinBall(0.1, support=BOX, adversary="joint")),
    ],
    "linear, smoothed cost": [(Newsvendor(1.0, 0.2, smoothing=0.5), Linear(), BALL)],
    "linear, `Contamination`": [(TWO, Linear(), Contamination(0.1)), (TIERS, Linear(), Contamination(0.1))],
    "everything else, Wasserstein ball": [
        (TWO, MLP((3,)), BALL), (Quadratic(), Linear(), BALL), (TIERS, Linear(decisions=BOX), BALL),
        (TWO, Linear(decisions=Budget(9.0)), BALL),
        (TWO, Linear(decisions=BOX), WassersteinBall(0.1, outcome_cost=1.0)),
    ],
    "everything else, another set": [
        (TWO, MLP((3,)), Contamination(0.1)), (Quadratic(), Linear(), Contamination(0.1)),
    ],
}  # fmt: skip


def how(problem):
    """How steps are computed, in the words of the table."""
    if engine_class(problem).__name__ == "Autodiff":
        return "autodiff"
    return "compiled" if affine_forms(problem.around(ROWS))[0].geometry is not None else "NumPy"


def nominals(ball):
    """Rows and a sampler, of several products where one adversary faces them."""
    several = ball == SEVERAL or getattr(ball, "adversary", "each") == "joint"
    return (TWO_ROWS, TWO_SAMPLER) if several else (ROWS, SAMPLER)


def solved(cost, policy, ball, nominal):
    problem = Problem(cost, policy, nominal, ball)
    solver = default_solver(problem)
    if solver.why_not(problem) is not None:
        return "refused"
    return f"{type(solver).__name__} {how(problem)}"


def followed(cost, policy, ball):
    try:
        options = StreamOptions(cost, policy, ball, None, AdaptiveStep(), 0.0, 0)
    except SurefootError:
        return "refused"
    rows, _ = nominals(ball)
    assert why_no_stream(options, rows.n_products) is None
    return f"DA-SGD {how(Problem(cost, policy, rows, ball))}"


def told(cell):
    """Return the algorithm and the engine that a cell names."""
    words = re.findall(
        r"PrimalDual|CuttingPlanes|SmoothedNewton|DASGD|DA-SGD|compiled|NumPy|autodiff|refused", cell
    )
    return " ".join(words)


def table():
    lines = re.findall(r"^\| (.*) \|$", PAGE.read_text().split("### Which algorithm")[1], re.MULTILINE)
    return [line.split(" | ") for line in lines[1:]]


def test_every_line_of_the_table_has_a_case():
    starts = [next(key for key in CASES if line[0].startswith(key)) for line in table()]
    assert starts == list(CASES)


@pytest.mark.parametrize("line", table(), ids=lambda line: line[0])
def test_the_table_says_what_runs(line):
    for parts in next(CASES[key] for key in CASES if line[0].startswith(key)):
        made = [*(solved(*parts, nominal) for nominal in nominals(parts[2])), followed(*parts)]
        assert [told(cell) for cell in line[1:]] == made, parts
