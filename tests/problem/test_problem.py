import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from surefoot.ambiguity import Box, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import Problem

PARTS = {
    "cost": Newsvendor(1.0, 0.2),
    "policy": Linear(),
    "nominal": Empirical([[1.0], [2.0]], [3.0, 4.0]),
    "ball": WassersteinBall(0.3),
}


def test_a_problem_holds_its_parts():
    problem = Problem(**PARTS)
    for name, part in PARTS.items():
        assert getattr(problem, name) is part
    assert problem.radius == 0.3
    assert type(Problem(**{**PARTS, "ball": WassersteinBall(1)}).radius) is float


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("cost", "newsvendor", "cost must be a cost such as Newsvendor(1.0, 0.2), got 'newsvendor'."),
        ("cost", Newsvendor, f"cost must be a cost such as Newsvendor(1.0, 0.2), got {Newsvendor!r}."),
        ("policy", None, "policy must be a policy such as Linear(), got None."),
        ("nominal", [[1.0]], "nominal must be a nominal such as Empirical(X, y), got [[1.0]]."),
        ("ball", 0.3, "ball must be a WassersteinBall, got 0.3."),
        (
            "ball",
            Box(0, 1),
            "ball must be a WassersteinBall, got Box(lower=0.0, upper=1.0, outcome=(-inf, inf)).",
        ),
    ],
)
def test_parts_of_the_wrong_kind_are_refused(name, value, message):
    with pytest.raises(InvalidTypeError, match=f"^{re.escape(message)}$"):
        Problem(**{**PARTS, name: value})


def test_parts_in_the_wrong_order_are_refused():
    with pytest.raises(InvalidTypeError, match=r"^cost must be a cost such as"):
        Problem(PARTS["policy"], PARTS["cost"], PARTS["nominal"], PARTS["ball"])


def test_a_problem_needs_a_radius_that_is_a_number():
    message = (
        "radius must be a number in a Problem, got 'auto': "
        "an estimator chooses it, for example RobustPolicy(cost).fit(X, y)."
    )
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Problem(**{**PARTS, "ball": WassersteinBall("auto")})


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (
            Newsvendor([1.0, 2.0, 3.0], 0.2),
            "backorder must be one number or one per product (2), got 3 numbers.",
        ),
        (Newsvendor(1.0, [0.2]), "holding must be one number or one per product (2), got 1 numbers."),
    ],
)
def test_costs_must_match_the_products(cost, message):
    nominal = Empirical([[1.0]], [[3.0, 4.0]])
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Problem(cost, Linear(), nominal, WassersteinBall(0.3))
    Problem(Newsvendor([1.0, 2.0], 0.2), Linear(), nominal, WassersteinBall(0.3))


def test_immutable():
    problem = Problem(**PARTS)
    for name in PARTS:
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(problem, name, PARTS[name])
    with pytest.raises(AttributeError, match="radius"):
        problem.radius = 0.5


def test_repr_is_short_and_names_the_parts():
    big = Empirical(np.zeros((500, 100)), np.zeros(500))
    text = repr(Problem(**{**PARTS, "nominal": big}))
    assert text == (
        "Problem(cost=Newsvendor(backorder=1.0, holding=0.2, smoothing=0.0), "
        "policy=Linear(features=None, decisions=None, intercept=True, offset=None), "
        "nominal=Empirical(500 rows, 100 columns, 1 product), "
        "ball=WassersteinBall(radius=0.3, order=2, outcome_cost=inf, support=None, frozen=(), "
        "scale=True, adversary='auto'))"
    )


def test_problems_of_the_same_parts_are_equal():
    assert Problem(**PARTS) == Problem(**PARTS)
    assert hash(Problem(**PARTS)) == hash(Problem(**PARTS))
    assert Problem(**PARTS) != Problem(**{**PARTS, "ball": WassersteinBall(0.4)})


def test_misspelt_and_missing_options_are_type_errors():
    with pytest.raises(TypeError, match="unexpected keyword argument 'loss'"):
        Problem(**PARTS, loss=None)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'ball'"):
        Problem(PARTS["cost"], PARTS["policy"], PARTS["nominal"])
