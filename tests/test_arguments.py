"""Every public callable refuses None, 3, "x" and [] in the wrong place in words of its own.

What is allowed in a place is not said here: an answer is fine, and so is an error of the package.
"""

import inspect

import numpy as np
import pytest
from scipy import stats

import surefoot
from surefoot import (
    DASGD,
    Box,
    Budget,
    Contamination,
    ConvexProgram,
    CuttingPlanes,
    Exact,
    Folds,
    PrimalDual,
    Problem,
    RobustPolicy,
    RollingWindow,
    SmoothedNewton,
    WassersteinBall,
    fit_many,
    solve_many,
)
from surefoot.costs import (
    CustomCost,
    MeanCVaR,
    Newsvendor,
    Pieces,
    Pricing,
    Quadratic,
    TieredNewsvendor,
)
from surefoot.estimators import ruled_radius
from surefoot.exceptions import InvalidTypeError, SurefootError
from surefoot.io import Reading, read_file
from surefoot.nominals import Empirical, Gaussian, Joint, Mixture, Sampler, SmoothedBootstrap
from surefoot.online import (
    ADWIN,
    ConstantStep,
    DecayingRadius,
    DecayingStep,
    Memory,
    PageHinkley,
    Restart,
    Window,
)
from surefoot.policies import ELU, MLP, Linear, MaxAffine, Polynomial, RandomFourier, Select, Sigmoid
from surefoot.problem import (
    affine_forms,
    fitted_problem,
    general_form,
    joint_form,
    one_adversary,
    why_not_affine,
    why_not_general,
    why_not_joint,
)
from surefoot.solvers import SGD, Adam, LiteralDASGD, default_solver

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
Y = X @ [1.0, 2.0] + RNG.normal(size=12) + 5.0
ROWS, COST, BALL = Empirical(X, Y), Newsvendor(1.0, 0.2), WassersteinBall(0.1)
PROBLEM = Problem(COST, Linear(), ROWS, BALL)
TWO = Problem(COST, Linear(), Empirical(X, np.column_stack([Y, Y])), BALL)
WRONG = (None, 3, "x", [])

MADE = [
    (Box, {"lower": 0.0, "upper": 1.0, "outcome": (0.0, 1.0)}), (Budget, {"total": 1.0}),
    (Contamination, {"radius": 0.1}), (WassersteinBall, {"radius": 0.1}), (Folds, {}),
    (RollingWindow, {"train": 5, "test": 2}),
    (Problem, {"cost": COST, "policy": Linear(), "nominal": ROWS, "ball": BALL}),
    *((solver, {}) for solver in (ConvexProgram, CuttingPlanes, DASGD, Exact, PrimalDual, SmoothedNewton)),
    (LiteralDASGD, {"alpha": 0.1, "beta": 0.1, "eta": 0.1, "K": 2, "epsilon": 0.1, "steps": 3}),
    (Adam, {}), (SGD, {}),
    (CustomCost, {"fn": lambda z, y: ((z - y) ** 2).sum()}), (MeanCVaR, {}), (Pricing, {}), (Quadratic, {}),
    (Newsvendor, {"backorder": 1.0, "holding": 1.0}),
    (Pieces, {"slopes": (-1.0, 1.0), "intercepts": (0.0, 0.0)}),
    (TieredNewsvendor, {"shortage": ((0, 1.0), (1, 2.0)), "leftover": 1.0}),
    (Empirical, {"contexts": X, "outcomes": Y}), (SmoothedBootstrap, {"contexts": X, "outcomes": Y}),
    (Gaussian, {"mean": [0.0, 1.0], "covariance": np.eye(2)}), (Mixture, {"components": [ROWS, ROWS]}),
    (Sampler, {"fn": lambda rng, size: (rng.normal(size=(size, 1)),) * 2, "n_columns": 1}),
    (Joint, {"distribution": stats.multivariate_normal([0, 1], np.eye(2))}),
    (ADWIN, {}), (ConstantStep, {"size": 1.0}), (DecayingRadius, {}), (DecayingStep, {"size": 1.0}),
    (Memory, {}), (PageHinkley, {}), (Restart, {}), (Window, {"rows": 3}),
    (ELU, {}), (Linear, {}), (MLP, {}), (MaxAffine, {}), (Polynomial, {}), (RandomFourier, {}),
    (Select, {"columns": (0,)}), (Sigmoid, {}), (Reading, {}),
]  # fmt: skip
SOLVERS = [
    (DASGD(max_steps=10), PROBLEM), (PrimalDual(), PROBLEM), (Exact(), PROBLEM),
    (CuttingPlanes(), PROBLEM), (SmoothedNewton(), TWO), (ConvexProgram(), PROBLEM),
    (LiteralDASGD(0.1, 0.1, 0.1, 2, 0.1, 3), PROBLEM),
]  # fmt: skip
CALLED = [
    *(
        (getattr(solver, method), arguments)
        for solver, problem in SOLVERS
        for method, arguments in (
            ("solve", {"problem": problem, "seed": 0}), ("why_not", {"problem": problem}),
            ("solve_path", {"problem": problem, "radii": [0.1], "seed": 0}),
            ("solve_together", {"problems": [problem], "seeds": [0]}),
        )
    ),
    *(
        (asked, {"problem": PROBLEM})
        for asked in (
            default_solver, affine_forms, general_form, fitted_problem, joint_form, why_not_affine,
            why_not_general, why_not_joint, one_adversary,
        )
    ),
    (solve_many, {"problems": [PROBLEM], "solver": None, "seeds": 0, "engine": "auto"}),
    (ruled_radius, {"rule": "paper", "problem": PROBLEM, "confidence": 0.95}),
    *(
        (cost.evaluate, {"decisions": X, "outcomes": X})
        for cost in (COST, Quadratic(), MeanCVaR(), Pricing(), CustomCost(lambda z, y: (z - y).sum(), 2))
    ),
]  # fmt: skip


def arguments():
    """Yield each callable with good arguments and the name of one to spoil."""
    everything = [(made, given, list(inspect.signature(made).parameters)) for made, given in MADE]
    for called, given, names in [*everything, *((one, given, list(given)) for one, given in CALLED)]:
        owner = getattr(called, "__self__", None)
        label = f"{type(owner).__name__}.{called.__name__}" if owner is not None else called.__name__
        for name in names:
            yield pytest.param(called, given, name, id=f"{label}-{name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("called", "given", "name"), list(arguments()))
def test_no_argument_ends_in_an_error_of_python(called, given, name):
    for wrong in WRONG:
        try:
            called(**{**given, name: wrong})
        except SurefootError as error:
            assert str(error).strip()


@pytest.mark.parametrize("wrong", [None, 3, []], ids=repr)
@pytest.mark.parametrize(
    "call", [surefoot.load, read_file, RobustPolicy(COST, ball=BALL).fit(X, Y).save]
)
def test_what_is_no_path_is_refused(call, wrong):
    with pytest.raises(InvalidTypeError, match="must be the path of a folder or file, got"):
        call(wrong)


@pytest.mark.parametrize("wrong", [None, 3, "x"], ids=repr)
def test_what_is_no_problem_is_named(wrong):
    for solver, _ in SOLVERS:
        for asked in (solver.solve, solver.why_not):
            with pytest.raises(InvalidTypeError, match=r"^problem must be a Problem\(cost, policy"):
                asked(wrong)


@pytest.mark.parametrize("option", ["reading", "known", "ignore"])
def test_options_of_a_reader_are_refused_by_name(option, tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    for wrong in (3, [3]) if option == "known" else (3,):
        with pytest.raises(InvalidTypeError, match=f"^{option} must be"):
            read_file(path, **{option: wrong})


def test_progress_is_a_flag_or_a_function():
    frame = pytest.importorskip("pandas").DataFrame({"shop": ["a"] * 12, "x": X[:, 0], "y": Y})
    for wrong in (None, 3, "x", []):
        with pytest.raises(InvalidTypeError, match="progress must be True, False or a function, got"):
            fit_many(frame, "shop", "y", cost=COST, progress=wrong)


@pytest.mark.parametrize("solver", [CuttingPlanes, DASGD, Exact, PrimalDual, SmoothedNewton])
def test_a_callback_is_a_function(solver):
    with pytest.raises(InvalidTypeError, match="^callback must be a function or None, got 3.$"):
        solver(callback=3)
