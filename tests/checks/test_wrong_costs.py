"""Costs as a hurried author writes them: each is wrong in one way, and the check names it."""

import math
import random
import re
from dataclasses import dataclass

import numpy as np
import pytest

from surefoot import RobustPolicy, WassersteinBall
from surefoot.checks import ConformanceError, check
from surefoot.costs import ConvexPiecewiseCost, Cost, Pieces
from surefoot.datasets import synthetic
from surefoot.exceptions import InvalidInputError
from surefoot.io import codec
from surefoot.nominals import Empirical
from surefoot.online import OnlinePolicy
from surefoot.policies import Linear
from surefoot.problem import Problem


@dataclass(frozen=True)
class Squares(Cost):
    """Sound: what wrong ones are made of."""

    def evaluate(self, decisions, outcomes, xp=np):
        return ((decisions - outcomes) ** 2).sum(axis=-1)


@dataclass(frozen=True)
class Kinks(ConvexPiecewiseCost):
    """Sound: one kink for each product."""

    def pieces(self, n_products):
        return (Pieces.kinked(0.2, 1.0),) * n_products


def made(base, **methods):
    """Return a part of a sound class with some methods replaced."""
    return type("Wrong", (base,), methods)()


def evaluating(function):
    def evaluate(self, decisions, outcomes, xp=np):
        return function(decisions, outcomes, xp)

    return made(Squares, evaluate=evaluate)


def in_place(z, y, xp):
    z -= y
    return (z**2).sum(axis=-1)


def outcomes_in_place(z, y, xp):
    y -= z
    return (y**2).sum(axis=-1)


def branching(z, y, xp):
    return (z - y).sum(axis=-1) if z > y else (y - z).sum(axis=-1)


def seeding(z, y, xp):
    np.random.seed(0)  # noqa: NPY002  the slip that is tried
    return ((z - y) ** 2).sum(axis=-1)


def python_random(z, y, xp):
    random.random()
    return ((z - y) ** 2).sum(axis=-1)


def noisy(z, y, xp):
    return ((z - y) ** 2).sum(axis=-1) + np.random.default_rng().normal()


def row_by_row(z, y, xp):
    return np.array([math.fabs(a - b) for a, b in zip(z, y, strict=True)])


WRONG = {
    "numpy alone": (
        evaluating(lambda z, y, xp: np.maximum(np.asarray(z) - np.asarray(y), 0.0).sum(axis=-1)),
        r"Wrong.evaluate must return c\(z, y\) per row: .* with the functions of xp, .* got Tracer",
    ),
    "numpy branch": (
        evaluating(lambda z, y, xp: ((z - y) ** 2).sum(axis=-1) * (1 if xp is np else 2)),
        "evaluate must give the same in numpy and jax.numpy",
    ),
    "python branch": (evaluating(branching), r"Wrong.evaluate must .* got ValueError: The truth value"),
    "python loop": (evaluating(row_by_row), r"Wrong.evaluate must .* got TypeError"),
    "no xp": (
        made(Squares, evaluate=lambda self, z, y: ((z - y) ** 2).sum(axis=-1)),
        r"with the functions of xp, .* got TypeError",
    ),
    "sum of all": (evaluating(lambda z, y, xp: ((z - y) ** 2).sum()), "evaluate must return shape"),
    "sum of rows": (evaluating(lambda z, y, xp: ((z - y) ** 2).sum(axis=0)), "must return shape"),
    "sum of axis 1": (evaluating(lambda z, y, xp: ((z - y) ** 2).sum(axis=1)), "keep leading axes"),
    "kept axis": (evaluating(lambda z, y, xp: (z - y) ** 2), r"evaluate must return shape \(12,\)"),
    "pairs of rows": (evaluating(lambda z, y, xp: z - y.reshape(-1)), "evaluate must return shape"),
    "mean of rows": (
        evaluating(lambda z, y, xp: ((z - y) ** 2).sum(axis=-1) - ((z - y) ** 2).mean()),
        "evaluate must keep leading axes|the cost of a row must not depend on other rows",
    ),
    "list": (
        evaluating(lambda z, y, xp: list(((z - y) ** 2).sum(axis=-1))),
        "what evaluate returns must be an array of floats, got list",
    ),
    "nothing": (evaluating(lambda z, y, xp: None), "must be an array of floats, got NoneType"),
    "whole numbers": (
        evaluating(lambda z, y, xp: xp.round((z - y) ** 2).sum(axis=-1).astype(int)),
        "must be an array of floats, got an array of int64",
    ),
    "flags": (evaluating(lambda z, y, xp: (z > y).all(axis=-1)), "array of floats, got an array of bool"),
    "logarithm": (
        evaluating(lambda z, y, xp: xp.log(z - y - 1e3).sum(axis=-1)),
        "evaluate must be finite near typical decisions",
    ),
    "in place": (evaluating(in_place), "evaluate must not change decisions"),
    "outcomes in place": (evaluating(outcomes_in_place), "evaluate must not change outcomes"),
    "noise": (evaluating(noisy), "evaluate must depend on decisions and outcomes alone"),
    "seed": (evaluating(seeding), "must leave the global random state alone"),
    "python's random": (evaluating(python_random), "must leave the global random state alone"),
    "one product": (
        made(Kinks, pieces=lambda self, n: (Pieces.kinked(0.2, 1.0),)),
        "pieces must return one Pieces for each product, got 1 for 2",
    ),
    "two products": (
        made(Kinks, pieces=lambda self, n: (Pieces.kinked(0.2, 1.0),) * 2),
        "pieces must return one Pieces for each product, got 2 for 1",
    ),
    "no tuple": (
        made(Kinks, pieces=lambda self, n: Pieces.kinked(0.2, 1.0)),
        "pieces must return one Pieces for each product, got Pieces",
    ),
    "plain lines": (
        made(Kinks, pieces=lambda self, n: (((-1.0, 0.2), (0.0, 0.0)),) * n),
        "pieces must return one Pieces for each product, got",
    ),
    "lines that are not convex": (
        made(Kinks, pieces=lambda self, n: (Pieces((0.2, -1.0), (0.0, 0.0)),) * n),
        "Wrong.pieces must return the lines of each product's cost, got InvalidInputError: slopes",
    ),
    "no pieces": (made(Kinks, pieces=lambda self, n: None), "one Pieces for each product, got None"),
    "other than its pieces": (
        made(Kinks, evaluate=lambda self, z, y, xp=np: xp.abs(z - y).sum(axis=-1)),
        "evaluate must be the sum of the pieces",
    ),
    "floor": (made(Squares, floor=lambda self, n=1: 1.0), r"no cost may be below floor\(\), 1"),
    "floor of one product": (
        made(
            Squares,
            evaluate=lambda self, z, y, xp=np: xp.tanh(z - y - 99.0).sum(axis=-1),
            floor=lambda self, n=1: -1.0,
        ),
        r"no cost may be below floor\(\), -1 with 2 outcomes",
    ),
    "no floor": (made(Squares, floor=lambda self, n=1: None), "floor returns must be a number, got None"),
    "floor of its own": (made(Squares, floor=lambda self: 0.0), "Wrong must keep this: .* got TypeError"),
    "floor of affine policies": (
        made(Squares, affine_floor=lambda self, design, y, weights: 1e3),
        r"no affine policy may be below affine_floor\(\)",
    ),
    "floor within limits": (
        made(Squares, limited_floor=lambda self, limits, groups, y, weights: 1e4),
        r"no decisions may be below limited_floor\(\)",
    ),
    "curvature": (made(Squares, curvature=lambda self: 1.0), "second derivatives must be <= 1"),
    "curvatures": (
        made(Squares, curvature=lambda self: 2.0, curvatures=lambda self, n: np.full(n, 1.0)),
        "second derivatives must be <= 1",
    ),
    "one of curvatures": (
        made(Squares, curvatures=lambda self, n: np.array([2.0])),
        r"curvatures must return shape \(2,\), got \(1,\)",
    ),
    "growth": (made(Squares, growth=lambda self: 1.0), r"no cost may grow faster than \|z\|\^1"),
    "growth in words": (made(Squares, growth=lambda self: "2"), "growth returns must be a number"),
    "convex": (
        made(
            Squares,
            evaluate=lambda self, z, y, xp=np: xp.sin(z - y).sum(axis=-1),
            convex=lambda self: True,
        ),
        "may not lie above its chords",
    ),
    "mean without weights": (
        made(Squares, mean=lambda self, z, y, weights: float(self.evaluate(z, y).mean())),
        "a weight of two must be the row twice|mean must be the weighted mean",
    ),
    "sum for mean": (
        made(Squares, mean=lambda self, z, y, weights: float(3.0 * weights @ self.evaluate(z, y))),
        "mean must be the weighted mean of evaluate",
    ),
    "array for mean": (
        made(Squares, mean=lambda self, z, y, weights: weights * self.evaluate(z, y)),
        "what mean returns must be a number",
    ),
    "typical numbers": (
        made(Squares, typical=lambda self, y, weights: (0.0, 1.0)),
        "each array of typical must be an array of floats, got float",
    ),
    "typical unit": (
        made(Squares, typical=lambda self, y, weights: (np.zeros(y.shape[1]), np.zeros(y.shape[1]))),
        "the unit of decisions must be positive",
    ),
    "typical alone": (
        made(Squares, typical=lambda self, y, weights: weights @ y), "typical must return two arrays"
    ),
    "typical nowhere": (
        made(Squares, typical=lambda self, y, weights: (np.full(y.shape[1], np.nan), np.ones(y.shape[1]))),
        "typical must return a finite decision",
    ),
    "decisions": (made(Squares, n_decisions=lambda self, n: 0), "n_decisions must return a whole number"),
    "reason": (made(Squares, why_not=lambda self, n: True), "why_not must return a sentence, or None"),
    "never": (made(Squares, why_not=lambda self, n: "no"), "why_not must be None for some number"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_cost_is_named(name):
    cost, message = WRONG[name]
    with pytest.raises(ConformanceError, match=message) as caught:
        check(cost)
    assert "\n" not in str(caught.value).split(", got")[0]


def test_what_they_are_made_of_is_sound():
    check(Squares())
    check(Kinks())


def test_what_was_raised_is_kept_as_the_cause():
    with pytest.raises(ConformanceError) as caught:
        check(WRONG["python branch"][0])
    assert isinstance(caught.value.__cause__, ValueError)


@dataclass(frozen=True)
class Named(Kinks):
    """Registered in tests, and wrong in what a file makes of it."""

    share: float = 0.5

    def __post_init__(self):
        object.__setattr__(self, "share", 0.5 * self.share)


def test_a_registered_cost_must_come_back_equal(monkeypatch):
    monkeypatch.setattr(codec, "_CLASSES", {**codec._CLASSES, "Named": Named})
    with pytest.raises(ConformanceError, match="a registered part must come back equal"):
        check(Named())


class Forgotten(Kinks):
    """Names a field, and is no dataclass of its own."""

    share: float = 0.5


class Plain(Cost):
    """Is no dataclass at all."""

    def evaluate(self, decisions, outcomes, xp=np):
        return ((decisions - outcomes) ** 2).sum(axis=-1)


@pytest.mark.parametrize("cost", [Forgotten(), Plain()], ids=lambda cost: type(cost).__name__)
def test_what_is_no_frozen_dataclass_is_refused(cost):
    with pytest.raises(ConformanceError, match=f"{type(cost).__name__} must be a frozen dataclass"):
        check(cost)


# ---------------------------------------------------------------- a cost that loses products


@pytest.mark.parametrize("name", ["one product", "no tuple", "no pieces"])
def test_a_cost_that_loses_products_is_refused_wherever_it_comes(name):
    cost = WRONG[name][0]
    data = synthetic(n=20, s=3, seed=0, test=1)
    two = np.column_stack([data.y, data.y])
    message = re.escape("Wrong.pieces(n_products) must return one Pieces for each product, got ")
    with pytest.raises(InvalidInputError, match=message):
        Problem(cost, Linear(), Empirical(data.X, two), WassersteinBall(0.1))
    for model in (
        RobustPolicy(cost),
        RobustPolicy(cost, ball=WassersteinBall(0.1)),
        OnlinePolicy(cost),
    ):
        with pytest.raises(InvalidInputError, match=message):
            (model.partial_fit if isinstance(model, OnlinePolicy) else model.fit)(data.X, two)
    with pytest.raises(InvalidInputError, match=message):
        cost.evaluate(two, two)
