"""What a plan proves: never more than is true, whatever the plan, and all of it for the right one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from surefoot.ambiguity import Plan
from tests.oracles.plan import Question, optimum

law = settings(derandomize=True, deadline=None, max_examples=40)
GEOMETRIES = [
    {"order": 1}, {"order": 2}, {"order": 1, "outcome_cost": 0.8}, {"order": 2, "outcome_cost": 0.8},
    {"order": 1, "box": "closed"}, {"order": 2, "box": "closed", "outcome_cost": 0.8},
    {"order": 1, "box": "open", "outcome_cost": 0.8}, {"order": 2, "box": "open"},
    {"order": 1, "intercept": False, "frozen": (0,)}, {"order": 2, "frozen": (1,), "box": "closed"},
]  # fmt: skip


def question_of(form):
    """The same form in plain numbers; what cannot move is held by a box."""
    held = ~form.movable
    if held.any():
        return None
    return Question(
        form.contexts, form.outcomes, form.weights, np.array(form.pieces.slopes),
        np.array(form.pieces.intercepts), form.radius, form.order, form.outcome_cost, form.intercept,
        form.lower, form.upper, float(form.outcome_lower[0]), float(form.outcome_upper[0]),
    )  # fmt: skip


def random_plan(form, rng, atoms=30):
    """Any plan at all: masses, moves and mass that has gone, most of it out of bounds."""
    rows = rng.integers(-1, len(form.weights), size=atoms)
    lines = rng.integers(0, len(form.pieces.slopes), size=atoms)
    masses = rng.uniform(-0.1, 1.0, size=atoms)
    contexts = rng.normal(size=(atoms, form.contexts.shape[1])) * rng.choice([0.0, 0.1, 3.0])
    every = np.arange(len(form.weights))
    return Plan(
        np.concatenate([rows, every, every]),
        np.concatenate([lines, np.zeros_like(every), np.ones_like(every)]),
        np.concatenate([masses, rng.uniform(0.0, 1.0, size=2 * len(every))]),
        np.vstack([contexts, np.zeros((2 * len(every), contexts.shape[1]))]),
        np.concatenate([rng.normal(size=atoms), np.zeros(2 * len(every))]),
    )


@pytest.fixture(scope="module")
def truths(make_affine):
    known = {}
    for k, options in enumerate(GEOMETRIES):
        form = make_affine(k, rows=6, columns=2, weighted=True, **options)
        asked = question_of(form)
        known[k] = (form, optimum(asked) if asked else form_optimum(form))
    return known


def form_optimum(form):
    """Frozen columns: the smallest worst case that a search finds, from many starts."""
    free = form.contexts.shape[1] + form.intercept

    def value(p):
        return form.worst_value(p[: form.contexts.shape[1]], p[-1] if form.intercept else 0.0)[0]

    rng = np.random.default_rng(0)
    return min(
        minimize(value, rng.normal(size=free), method="Nelder-Mead", options={"maxfev": 400}).fun
        for _ in range(3)
    )


@law
@given(seed=st.integers(0, 10**6), k=st.integers(0, len(GEOMETRIES) - 1))
def test_no_plan_proves_more_than_is_true(truths, seed, k):
    form, truth = truths[k]
    bound = form.lower_bound(random_plan(form, np.random.default_rng(seed)))
    assert bound <= truth * (1 + 1e-6)


def test_a_plan_that_forgets_a_row_proves_nothing_beyond_the_least_cost(make_affine):
    form = make_affine(0, rows=4)
    one = Plan(np.zeros(1, int), np.zeros(1, int), np.ones(1), np.zeros((1, 3)), np.zeros(1))
    assert form.lower_bound(one) == form.pieces.least
