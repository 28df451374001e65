"""The answers to many problems: read like a list, or as arrays."""

import copy
import pickle
import re
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from surefoot import Problem, WassersteinBall, solve_many
from surefoot.costs import Newsvendor, TieredNewsvendor
from surefoot.datasets import synthetic
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.solvers.base import Solution
from surefoot.solvers.solutions import Solutions

COST = Newsvendor(1.0, 0.2)


def describe(seed, columns=3, cost=COST, products=1):
    data = synthetic(n=20, s=columns, seed=seed, test=1)
    outcomes = np.column_stack([data.y] * products)
    return Problem(cost, Linear(), Empirical(data.X, outcomes), WassersteinBall(0.1))


@pytest.fixture(scope="module")
def answers():
    """Most from the compiled loop, two of another cost by themselves."""
    other = TieredNewsvendor(((0, 1.0), (1, 3.0)), 0.5)
    return solve_many([describe(0, cost=other), *map(describe, range(20)), describe(1, cost=other)])


def test_they_are_read_like_a_list(answers):
    listed = list(answers)
    assert len(answers) == len(listed) == 22
    assert all(isinstance(one, Solution) for one in listed)
    assert answers[-1] is listed[21]
    assert answers[np.int64(3)] is listed[3]  # made once
    assert answers[2:20:5] == listed[2:20:5]
    assert answers == listed
    assert listed == answers
    assert answers != listed[1:]
    assert listed[4] in answers
    assert listed.index(listed[7]) == answers.index(listed[7]) == 7
    with pytest.raises(IndexError):
        answers[22]
    assert repr(answers) == "Solutions(22 problems, 22 converged)"


@pytest.mark.parametrize("index", [True, "a", 1.0, None, np.True_])
def test_what_is_no_number_of_an_answer_is_refused(answers, index):
    with pytest.raises(
        InvalidTypeError,
        match=rf"^the number of an answer must be a whole number or a slice, got {re.escape(repr(index))}\.$",
    ):
        answers[index]


@pytest.mark.parametrize("name", ["upper", "lower", "gap"])
def test_arrays_of_bounds_are_those_of_the_certificates(answers, name):
    expected = [getattr(one.certificate, name) for one in answers]
    np.testing.assert_array_equal(getattr(answers, name), expected)


def test_arrays_of_parameters_are_those_of_the_solutions(answers):
    assert answers.theta.shape == (22, 3, 1)
    assert answers.intercept.shape == (22, 1)
    np.testing.assert_array_equal(answers.theta, [one.parameters.theta for one in answers])
    np.testing.assert_array_equal(answers.intercept, [one.parameters.intercept for one in answers])
    assert answers.converged.tolist() == [True] * 22


def test_parameters_of_different_shapes_are_refused():
    shapes = r"^theta and intercept .* of one shape, got \(3, 1\) and \(4, 1\): read the parameters"
    for given in ([describe(0), describe(0, 4)], [describe(k, 3 + k % 2) for k in range(20)]):
        found = solve_many(given)
        assert (found.gap <= 0.01).all()
        with pytest.raises(InvalidInputError, match=shapes):
            _ = found.theta


def test_parameters_of_other_policies_are_refused(answers):
    odd = Solution({"weights": np.ones(2)}, np.ones(1), answers[0].certificate, None, "odd", 1)
    with pytest.raises(InvalidInputError, match="must be those of linear policies, got dict"):
        _ = Solutions(1, {0: odd}, []).theta
    assert Solutions(1, {0: odd}, []).converged.tolist() == [False]


def test_no_answers_are_empty_arrays():
    nothing = solve_many([])
    assert (len(nothing), nothing.gap.shape, nothing.theta.shape) == (0, (0,), (0,))


def test_they_travel_between_processes(answers):
    other = pickle.loads(pickle.dumps(answers))
    np.testing.assert_array_equal(other.theta, answers.theta)
    assert other[5].certificate == answers[5].certificate
    assert other[5].status == answers[5].status


def test_costs_of_each_product_are_solved_beside_others():
    two = describe(0, cost=Newsvendor([1.0, 2.0], [0.2, 0.3]), products=2)
    answers = solve_many([two, *[describe(1)] * 20])
    assert answers.converged.all()
    assert answers[0].parameters.theta.shape == (3, 2)
    assert answers[0].certificate.upper == pytest.approx(solve_many([two])[0].certificate.upper)


def test_an_answer_is_put_together_when_it_is_read():
    found = solve_many([describe(k) for k in range(20)])
    one = found[3]
    assert {"parameters", "certificate", "status"} <= set(dir(one))
    assert set(vars(one)) == {"_source"}
    assert (one.certificate.upper, one.certificate.lower) == (found.upper[3], found.lower[3])
    assert set(vars(one)) == {"_source", "certificate"}
    assert one.certificate is one.certificate
    last = one.n_steps, found.upper[3], found.lower[3], one.certificate.gap
    assert one.history[-1][:4] == pytest.approx(last, rel=1e-12)  # no gap is below zero by rounding
    assert one.status == (
        f"PrimalDual converged after {one.n_steps:,} steps "
        f"(certified gap {100 * one.certificate.gap:.2g} %, tolerance 1 %)."
    )
    with pytest.raises(AttributeError, match="'Solution' object has no attribute 'certificates'"):
        _ = one.certificates
    with pytest.raises(FrozenInstanceError):
        one.status = "other"


def test_an_answer_leaves_the_others_behind():
    found = solve_many([describe(k) for k in range(200)])
    assert repr(found[3]).startswith("Solution(parameters=LinearParameters(3 columns, 1 product, ")
    assert len(pickle.dumps(found[3])) < 3_000
    for other in (pickle.loads(pickle.dumps(found[3])), copy.deepcopy(found[3]), replace(found[3])):
        assert repr(other) == repr(found[3])
        assert repr(other.history) == repr(found[3].history)  # seconds are not a number
        np.testing.assert_array_equal(other.parameters.theta, found.theta[3])
        np.testing.assert_array_equal(other.multiplier, found[3].multiplier)
        assert (other.certificate, other.converged) == (found[3].certificate, True)
    assert replace(found[3], n_steps=7).n_steps == 7
