"""Driving the general engine: judging, stopping, going on."""

import numpy as np
import pytest

from surefoot import Box, Problem, WassersteinBall
from surefoot.certificates import costs_of, distances_of
from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical
from surefoot.policies import MLP
from surefoot.problem import general_problem
from surefoot.solvers.general_run import GeneralRun, GeneralSettings

SETTINGS = GeneralSettings(1_000, 1, 10)


def form(n=60, radius=0.3, seed=0, **ball):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = 3.0 + X @ [1.0, -0.5] + 0.3 * rng.normal(size=n)
    nominal = Empirical(X, y, rng.uniform(0.5, 2.0, size=n))
    return general_problem(
        Problem(Newsvendor(1.0, 0.2), MLP((8,)), nominal, WassersteinBall(radius, **ball))
    )


def started(problems, seeds=None):
    run = GeneralRun(problems, SETTINGS, seeds or [0] * len(problems))
    assert run.advance() is None
    return run


def policy_of(run, number=0):
    return {name: np.asarray(leaf[number]) for name, leaf in run.state.trained["policy"].items()}


@pytest.fixture(scope="module")
def single():
    return started([form()])


@pytest.fixture(scope="module")
def pair():
    """A problem beside one of other rows and radius, and support for its samples."""
    other = form(n=45, radius=0.1, seed=1, support=Box(-5, 5), frozen=(1,))
    return started([form(), other, form(radius=0.05)], [0, 7, 8])


def test_problems_side_by_side_step_as_alone(single, pair):
    for name, leaf in policy_of(single).items():
        np.testing.assert_allclose(policy_of(pair)[name], leaf, rtol=0, atol=1e-12)
    assert single.steps == pair.steps == 250
    judged, alone = pair.judge(pair.state.trained), single.judge(single.state.trained)
    assert judged.value[0] == pytest.approx(alone.value[0], rel=1e-12)
    assert judged.multiplier[0] == pytest.approx(alone.multiplier[0], rel=1e-12)


def test_a_judgement_keeps_to_the_ball_and_is_never_below_the_expected_cost(pair):
    judged = pair.judge(pair.state.trained, last=True)
    for number, problem in enumerate(pair.problems):
        rows = pair.moved_rows(judged, number)
        assert len(rows.weights) == len(problem.weights)  # nothing of what only fills up
        assert rows.weights.sum() == pytest.approx(1.0)
        distances = distances_of(problem, rows)
        spent = rows.weights @ distances
        assert 0.5 * problem.radius**2 <= spent <= problem.radius**2 * (1 + 1e-6)
        costs = [
            rows.weights @ costs_of(problem, policy_of(pair, number), np.zeros(0), X, rows.outcomes)
            for X in (rows.contexts, rows.moved_contexts)
        ]
        value = judged.value[number]
        assert costs[0] < costs[1] <= value + 1e-9
        assert value == pytest.approx(
            costs[1] + judged.multiplier[number] * (problem.radius**2 - spent), rel=1e-9
        )
    boxed = pair.moved_rows(judged, 1)
    assert np.abs(boxed.moved_contexts).max() <= 5 + 1e-9
    np.testing.assert_array_equal(boxed.moved_contexts[:, 1], boxed.contexts[:, 1])


def test_the_worst_case_grows_with_the_radius_and_starts_at_the_expected_cost(single):
    values = []
    for radius in (0.0, 0.01, 0.1, 0.3, 1.0):
        run = GeneralRun([form(radius=radius)], SETTINGS, [0])
        values.append(float(run.judge(single.state.trained, last=True).value[0]))
    problem = form()
    costs = costs_of(problem, policy_of(single), np.zeros(0), problem.contexts, problem.outcomes)
    assert values[0] == pytest.approx(problem.weights @ costs, rel=1e-12)
    assert (np.diff(values) > 0).all()


@pytest.mark.parametrize("place", [0, 1])
def test_a_problem_in_which_nothing_moves_has_its_expected_cost(single, place):
    still = form(frozen=(0, 1))
    problems = [form(), form(), form()]  # as many as above, so that they share compiled code
    problems[place] = still
    run = started(problems)
    judged = run.judge(run.state.trained, last=True)
    costs = costs_of(still, policy_of(run, place), np.zeros(0), still.contexts, still.outcomes)
    assert judged.value[place] == pytest.approx(still.weights @ costs, rel=1e-9)
    # Its neighbour's multiplier is found as closely as if it were alone.
    alone = single.judge(single.state.trained, last=True)
    assert judged.value[1 - place] == pytest.approx(alone.value[0], rel=1e-9)
    assert judged.multiplier[1 - place] == pytest.approx(alone.multiplier[0], rel=1e-9)


def test_many_rows_are_judged_by_some_of_them():
    problem = form(n=300)
    run = GeneralRun([problem], SETTINGS, [0])
    few, all_rows = run.judge(run.state.trained), run.judge(run.state.trained, last=True)
    assert (few.weights > 0).sum() == 128
    assert (all_rows.weights > 0).sum() == 300
    assert few.weights.sum() == pytest.approx(1.0)
    assert few.value[0] == pytest.approx(all_rows.value[0], rel=0.3)


def test_learning_goes_on_from_its_arrays(single):
    first, second = started([form()]), started([form()], [9])
    leaves = first.leaves(0)
    second.restore(leaves)
    rows = first.problems[0].contexts[None], first.problems[0].outcomes[None]
    first.learn(*(np.resize(part, (1, 250, part.shape[2])) for part in rows))
    second.learn(*(np.resize(part, (1, 250, part.shape[2])) for part in rows))
    for one, other in zip(first.leaves(0), second.leaves(0), strict=True):
        np.testing.assert_array_equal(one, other)
    assert second.steps == 500


def test_seeds_decide_start_and_draws(single):
    again, other = started([form()]), started([form()], [1])
    for name, leaf in policy_of(single).items():
        np.testing.assert_array_equal(policy_of(again)[name], leaf)
    assert np.abs(policy_of(other)["weight0"] - policy_of(single)["weight0"]).max() > 0.01


def test_a_stream_says_at_which_step_it_failed():
    run = GeneralRun([form()], SETTINGS, [0])
    with pytest.raises(
        InvalidInputError, match="got NaN or infinity at step 1,234 of the stream; none"
    ):
        run.refuse_failure(1234)
