"""What is stated about new days, and the words for it."""

import numpy as np
import pandas as pd
import pytest

from surefoot import Box, RobustNewsvendor, RobustPolicy
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.estimators.guarantees import Guarantee, guarantee_of
from surefoot.exceptions import DataWarning, InvalidInputError
from surefoot.policies import Linear


@pytest.fixture(scope="module")
def data():
    return synthetic(n=80, s=4, seed=0)


@pytest.fixture(scope="module")
def model(data):
    return RobustNewsvendor(1.0, 0.2).fit(data.X, data.y)


@pytest.mark.parametrize(
    ("suspects", "start"),
    [
        (0, "With 95 % confidence"),
        (1, "Leaving out 1 number that looks like an error: With"),
        (2, "Leaving out 2 numbers that look like errors: With"),
    ],
)
def test_numbers_left_out_are_counted_in_grammar(suspects, start):
    assert Guarantee(1.0, {0.3: 2.0}, suspects).sentence(0.3).startswith(start)


def test_without_shifts_only_the_bound_is_stated():
    told = Guarantee(1.0).sentence(0.3)
    assert told.endswith("is at most 1.")


def test_the_sentence_of_a_model_is_that_of_its_guarantee(model):
    found = guarantee_of(model, [0.0, 0.3, 1.0])
    assert model.guarantee() == found.sentence(0.3)
    assert model.guarantee(1.0) == found.sentence(1.0)


def test_the_bound_grows_with_the_shift_from_the_bound_without_one(model):
    found = guarantee_of(model, [0.0, 0.1, 0.5, 1.0])
    costs = list(found.shifted.values())
    assert costs == sorted(costs)
    assert costs[0] == pytest.approx(found.bound, rel=1e-3)


def test_one_error_in_the_data_is_said_in_the_singular(data):
    y = data.y.copy()
    y[7] *= 1000.0
    with pytest.warns(DataWarning, match="row 7, outcome"):
        model = RobustNewsvendor(1.0, 0.2).fit(data.X, y)
    assert model.guarantee().startswith("Leaving out 1 number that looks like an error: ")


def test_a_linear_policy_has_no_such_guarantee(data):
    model = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, data.y)
    with pytest.raises(InvalidInputError, match="^guarantee needs the ensemble"):
        guarantee_of(model, [0.3])


def test_learning_on_forgets_which_rows_were_seen(data):
    model = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, data.y)
    assert len(model.fingerprint_) == 64
    model.partial_fit(data.X[:2], data.y[:2])
    assert not hasattr(model, "fingerprint_")


@pytest.mark.parametrize(
    ("within", "words"),
    [
        ({}, "is at most 1;"),
        ({"'income'": (0.5, 70.0)}, "is at most 1 as long as 'income' is between 0.5 and 70;"),
        (
            {"'rain'": (0.0, 33.4), "'income'": (1.0, 70.0)},
            "as long as 'rain' is between 0 and 33.4, 'income' is between 1 and 70;",
        ),
    ],
)
def test_columns_with_long_tails_are_named(within, words):
    assert words in Guarantee(1.0, {0.3: 2.0}, within=within).sentence(0.3)


@pytest.mark.filterwarnings("ignore::surefoot.exceptions.DataWarning")
@pytest.mark.parametrize("policy", [Linear(), Linear(decisions=Box(0.0, 1e6))])
def test_a_bound_does_not_speak_of_rows_beyond_a_long_tail(policy):
    rng = np.random.default_rng(1)
    incomes, others = rng.lognormal(0.0, 1.5, 100), rng.normal(size=100)
    X, noise = pd.DataFrame({"income": incomes, "other": others}), rng.normal(size=100)

    def model_of(policy):
        return RobustPolicy(Newsvendor(4.0, 1.0), policy, nominal="auto")

    straight = model_of(policy).fit(X, 50.0 + 5.0 * incomes + noise)
    kept = np.delete(incomes, [one.row for one in straight.suspects_])
    assert guarantee_of(straight, [0.0]).within == {"'income'": (kept.min(), kept.max())}
    assert f"as long as 'income' is between {kept.min():.3g} and" in straight.guarantee()
    level = model_of(policy).fit(X, 50.0 + 5.0 * others + noise)
    assert guarantee_of(level, [0.0]).within == {}


@pytest.mark.filterwarnings("ignore::surefoot.exceptions.DataWarning")
def test_a_bent_effect_of_a_long_tail_is_named_too_and_so_are_tails_beside_it():
    rng = np.random.default_rng(2)
    X, noise = rng.lognormal(0.0, 1.0, (100, 3)), rng.normal(size=100)
    bent = RobustNewsvendor(4.0, 1.0).fit(X, 20.0 + X[:, 0] ** 2 + noise)
    assert "column 0" in guarantee_of(bent, [0.0]).within
    both = RobustNewsvendor(4.0, 1.0).fit(X, 20.0 + 5.0 * X[:, 0] + X[:, 1] + noise)
    assert {"column 0", "column 1"} <= set(guarantee_of(both, [0.0]).within)
