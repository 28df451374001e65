"""Algorithm 1 as printed: it runs, repeats itself and does not hide its gap."""

import numpy as np
import pytest

from surefoot import DASGD, Box
from surefoot.exceptions import ConvergenceWarning, InvalidInputError, UnsupportedProblemError
from surefoot.random import rng_for
from tests.oracles.literal_twin import literal_update

PRINTED = {"alpha": 0.01, "beta": 0.01, "eta": 0.05, "K": 5, "epsilon": 1e-3, "steps": 3_000}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_it_runs_repeats_itself_and_warns_of_its_gap(make_demand, in_form, order, intercept):
    problem = make_demand(order=order, intercept=intercept, smoothing=0.1)
    with pytest.warns(ConvergenceWarning, match=r"multiplier was negative in \d+ % of the steps"):
        first, again, other = (DASGD.literal(**PRINTED).solve(problem, seed=seed) for seed in (0, 0, 1))
    assert first.parameters.theta.tobytes() == again.parameters.theta.tobytes()
    assert first.parameters.theta.tobytes() != other.parameters.theta.tobytes()
    assert first.n_steps == 3_000
    assert not first.converged
    assert "DASGD() solves the same problem" in first.status
    assert intercept or first.parameters.intercept[0] == 0.0
    assert first.status.startswith("LiteralDASGD ran out of steps after 3,000 ")
    form, theta, t = in_form(problem, first)
    assert first.certificate.upper == pytest.approx(form.worst_value(theta, t)[0], rel=1e-12)


@pytest.mark.filterwarnings("ignore::surefoot.exceptions.ConvergenceWarning")
def test_it_is_the_printed_algorithm_from_a_random_start(make_demand, in_form):
    problem = make_demand(frozen=(1,), order=1)
    options = {**PRINTED, "steps": 60, "K": 2}
    solution = DASGD.literal(**options).solve(problem, seed=4)
    (form, *found), rng = in_form(problem, solution), rng_for(4, "literal", 0)
    rows = np.column_stack([form.contexts, np.ones(40)])
    theta, gamma = rng.normal(size=4), rng.uniform()
    for i in rng.choice(40, size=60, p=form.weights):
        theta, gamma = literal_update(
            theta, gamma, (rows[i], form.outcomes[i]),
            slopes=(0.2, 1.0, 0.0), radius=form.radius, order=1, step_sizes=(0.01, 0.01, 0.05),
            inner_steps=2, epsilon=1e-3, movable=np.array([1.0, 0.0, 1.0, 0.0]),
        )  # fmt: skip
    np.testing.assert_allclose(found[0], theta[:3], atol=1e-8)
    assert found[1] == pytest.approx(theta[3], abs=1e-8)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"support": Box(0, 1)}, "has no support"), ({"outcome_cost": 1.0}, "moves contexts only")],
)
def test_what_the_paper_has_no_room_for_is_refused(make_demand, options, reason):
    solver, problem = DASGD.literal(**PRINTED), make_demand(**options)
    assert reason in solver.why_not(problem)
    with pytest.raises(UnsupportedProblemError, match=f"LiteralDASGD cannot solve this: .*{reason}"):
        solver.solve(problem)


@pytest.mark.parametrize(
    ("name", "value"),
    [("alpha", 0.0), ("beta", -1.0), ("eta", 0.0), ("K", -1), ("epsilon", -1e-9), ("steps", 0)],
)
def test_options_are_checked_by_name(name, value):
    with pytest.raises(InvalidInputError, match=f"{name} must be >"):
        DASGD.literal(**{**PRINTED, name: value})
