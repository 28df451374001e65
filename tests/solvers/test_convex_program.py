"""The convex program: right answers, clear refusals, and life without CVXPY."""

import importlib
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from surefoot import Box, ConvexProgram, Exact
from surefoot.exceptions import (
    InvalidInputError,
    MissingExtraError,
    SurefootError,
    UnsupportedProblemError,
)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {}, {"outcome_cost": 0.7}, {"frozen": (0,)}, {"frozen": (0, 1)}, {"intercept": False},
        {"support": Box(0, 1)}, {"support": Box(0, math.inf), "outcome_cost": 4.0}, {"share": 0.0},
        {"share": 1e-4}, {"share": 2.0},
    ],
    ids=str,
)  # fmt: skip
def test_no_search_finds_a_better_policy(make_demand, in_form, order, options):
    problem = make_demand(12, 2, order=order, **options)
    solution = ConvexProgram().solve(problem)
    form, theta, intercept = in_form(problem, solution)
    assert solution.converged
    optimum = solution.certificate.upper
    free = 3 if form.intercept else 2

    def value(p):
        return form.worst_value(p[:2], p[2] if form.intercept else 0.0)[0]

    start = np.append(theta, intercept)[:free]
    assert value(start) == pytest.approx(optimum, rel=1e-9)
    simplex = start + 0.3 * np.vstack([np.zeros(free), np.eye(free)])
    options = {"maxfev": 40, "initial_simplex": simplex}
    best = minimize(value, start, method="Nelder-Mead", options=options)
    assert best.fun >= optimum * (1 - 1e-5)


def test_small_radii_keep_their_digits(make_demand):
    # gamma grows like 1 / rho; stated in gamma itself the program lost digits or failed outright.
    for share in (1e-3, 1e-2, 1.0):
        solution = ConvexProgram().solve(make_demand(40, 60, share=share))
        assert solution.certificate.gap < 1e-4


def test_a_smoothed_cost_is_refused(make_demand):
    with pytest.raises(UnsupportedProblemError, match="ConvexProgram cannot solve this: .*smoothing"):
        ConvexProgram().solve(make_demand(smoothing=0.1))


def test_the_missing_package_is_named_with_the_command(make_demand, monkeypatch):
    real = importlib.import_module

    def without_cvxpy(name, *args):
        if name == "cvxpy":
            raise ImportError("No module named 'cvxpy'")
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", without_cvxpy)
    with pytest.raises(MissingExtraError, match=r'pip install "surefoot\[exact\]"'):
        ConvexProgram().solve(make_demand())
    with pytest.raises(MissingExtraError, match=r'pip install "surefoot\[exact\]"'):
        Exact().solve(make_demand(support=Box(0, 1)))
    assert Exact().solve(make_demand()).converged  # free supports need no CVXPY


def test_an_unknown_solver_is_an_error_of_ours(make_demand):
    pytest.importorskip("cvxpy")
    with pytest.raises(SurefootError, match="NOPE"):
        ConvexProgram(solver="NOPE").solve(make_demand())


def test_options_are_checked_by_name():
    with pytest.raises(InvalidInputError, match="gap_tol must be > 0"):
        ConvexProgram(gap_tol=0.0)
