import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from surefoot import RobustNewsvendor, RobustPolicy, WassersteinBall, load
from surefoot.costs import Newsvendor, Pieces, TieredNewsvendor
from surefoot.datasets import synthetic
from surefoot.exceptions import DataWarning, InvalidInputError
from surefoot.forecasts.ensemble import FIRST_WEIGHT, HOLD, Ensemble, stack_weights, worst_weights
from surefoot.forecasts.members import Exponential, LeafQuantile, Level, Spreading
from surefoot.io import pack, unpack
from surefoot.policies import Linear
from surefoot.random import rng_for
from surefoot.sets import Box

PIECES = Pieces.kinked(up=0.2, down=1.0)


def wave(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = 10.0 + 2.0 * X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.normal(size=n)
    return X, np.abs(y)


@pytest.fixture(scope="module")
def honest():
    return Ensemble().fit(*wave(), None, PIECES, 0)


def test_members_that_decide_in_different_ways(honest):
    kinds = [type(member) for member in honest.stack.members]
    assert kinds == [Level, Level, Exponential, Spreading, LeafQuantile]
    assert honest.stack.weights.sum() == pytest.approx(1.0)
    assert (honest.stack.weights > 0.0).all()
    X = np.clip(wave(30, 1)[0], honest.stack.least, honest.stack.most)
    parts = np.column_stack([member(X) for member in honest.stack.members])
    np.testing.assert_allclose(honest.stack(X), parts @ honest.stack.weights, rtol=1e-12)


def test_honest_decisions_cost_what_decisions_on_new_rows_cost(honest):
    X, y = wave(4000, 1)
    fresh = PIECES.evaluate(honest.stack(X) - y).mean()
    own = PIECES.evaluate(honest.decisions - wave()[1][honest.kept]).mean()
    in_sample = PIECES.evaluate(honest.stack(wave()[0]) - wave()[1]).mean()
    assert own == pytest.approx(fresh, rel=0.25)
    assert in_sample < own


def test_an_ensemble_comes_back_from_a_file(honest):
    arrays = {}
    again = unpack(pack("stack", honest.stack, arrays), arrays)
    X, _ = wave(30, 1)
    np.testing.assert_array_equal(again(X), honest.stack(X))


def test_weights_minimise_cost_and_divergence():
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    H = np.column_stack([y + rng.normal(size=200), y + 0.3 * rng.normal(size=200), 0.0 * y])
    weights = stack_weights(H, y, np.ones(200), PIECES, 200.0)
    prior = np.array([FIRST_WEIGHT, (1 - FIRST_WEIGHT) / 2, (1 - FIRST_WEIGHT) / 2])

    def value(logits):
        w = np.exp(logits - logits.max())
        w /= w.sum()
        return 200 * np.log(PIECES.evaluate(H @ w - y).mean()) + HOLD * w @ np.log(w / prior)

    best = minimize(value, np.zeros(3), method="Nelder-Mead", options={"maxiter": 5000, "xatol": 1e-6})
    assert value(np.log(weights)) <= best.fun + 0.5  # half a unit of likelihood
    assert value(np.log(prior)) > best.fun + 50.0
    assert weights[1] > prior[1]


def test_few_rows_leave_weights_near_the_start_and_many_do_not():
    rng = np.random.default_rng(0)
    y = rng.normal(size=2000)
    H = np.column_stack([0.0 * y, 0.5 * y])
    few = stack_weights(H[:5], y[:5], np.ones(5), PIECES, 5.0)
    many = stack_weights(H, y, np.ones(2000), PIECES, 2000.0)
    assert abs(few[0] - FIRST_WEIGHT) < 0.15
    assert many[1] > 0.95


def test_a_member_that_hardly_errs_is_believed_with_few_rows():
    y = np.random.default_rng(0).normal(size=20)
    H = np.column_stack([0.5 * y, 0.0 * y, 0.3 * y, y + 1e-3 * np.cos(np.arange(20))])
    weights = stack_weights(H, y, np.ones(20), PIECES, 20.0)
    assert PIECES.evaluate(H @ weights - y).mean() < 0.1 * PIECES.evaluate(H[:, 0] - y).mean()


@pytest.mark.parametrize("share", [1e-9, 1e-16, 1e-20, 1e-100])
def test_rows_of_negligible_weight_say_nothing(share):
    X, y = wave(60)
    wild, far = np.vstack([X, X + 50.0]), np.append(y, 1e6 + y)
    weights = np.repeat([1.0, share], 60)
    once = RobustNewsvendor(1.0, 0.2).fit(X, y)
    again = RobustNewsvendor(1.0, 0.2).fit(wild, far, sample_weight=weights)
    assert again.predict(X) == pytest.approx(once.predict(X), rel=1e-9)
    assert again.suspects_ == ()


def test_suspects_beside_rows_of_negligible_weight_keep_their_places():
    X, y = wave(60)
    y[40] *= 100.0
    weights = np.where(np.arange(60) < 10, 1e-12, 1.0)
    with pytest.warns(DataWarning, match="row 40"):
        model = RobustNewsvendor(1.0, 0.2).fit(X, y, sample_weight=weights)
    assert [one.row for one in model.suspects_] == [40]


def test_the_unit_of_costs_does_not_move_weights():
    rng = np.random.default_rng(1)
    y = rng.normal(size=40)
    H = y[:, None] + rng.normal(size=(40, 3)) * [1.0, 0.5, 2.0]
    once = stack_weights(H, y, np.ones(40), PIECES, 40.0)
    assert stack_weights(1e3 * H, 1e3 * y, np.ones(40), PIECES, 40.0) == pytest.approx(once, abs=1e-9)


@pytest.mark.parametrize(("row", "factor"), [(5, 100.0), (17, -1.0), (40, 10.0)])
def test_one_gross_error_is_named_and_does_no_harm(row, factor):
    X, y = wave(60)
    fresh, more = wave(4000, 1)
    clean = RobustNewsvendor(1.0, 0.2).fit(X, y).cost(fresh, more)
    dirty = y.copy()
    dirty[row] *= factor
    with pytest.warns(DataWarning, match=f"Numbers that look like errors were not followed .row {row}"):
        model = RobustNewsvendor(1.0, 0.2).fit(X, dirty)
    assert [(s.row, s.column) for s in model.suspects_] == [(row, "outcome")]
    assert model.suspects_[0].value == dirty[row]
    assert model.cost(fresh, more) < 1.05 * clean


def test_a_gross_context_is_named_and_does_no_harm():
    pd = pytest.importorskip("pandas")
    X, y = wave(60)
    fresh, more = wave(4000, 1)
    clean = RobustNewsvendor(1.0, 0.2).fit(X, y).cost(fresh, more)
    ratios = []
    for row in (7, 21, 35, 49):
        lost = RobustNewsvendor(1.0, 0.2).fit(np.delete(X, row, 0), np.delete(y, row)).cost(fresh, more)
        frame = pd.DataFrame(X.copy(), columns=["a", "b", "c"])  # older versions would write into X
        frame.loc[row, "b"] = 500.0
        with pytest.warns(DataWarning, match=rf"row {row}, 'b': 500"):
            model = RobustNewsvendor(1.0, 0.2).fit(frame, y)
        cost = model.cost(pd.DataFrame(fresh, columns=["a", "b", "c"]), more)
        assert cost < 1.005 * lost  # it costs what the loss of a row costs
        assert "look like errors (1) left out" in model.certificate_.message
        ratios.append(cost / clean)
    assert np.mean(ratios) < 1.05
    assert max(ratios) < 1.2


def test_clean_rows_are_not_suspected():
    for seed in range(10):
        data = synthetic(n=60, s=5, seed=seed, test=1)
        assert RobustNewsvendor().fit(data.X, data.y).suspects_ == ()


def test_a_price_typed_without_its_point_is_taken_as_the_nearest_seen():
    X, y = wave(60)
    model = RobustNewsvendor(1.0, 0.2).fit(X, y)
    new = wave(5, 1)[0]
    new[3, 0] = 200.0
    with pytest.warns(
        DataWarning, match=r"1 of 5 rows have contexts far outside those seen .column 0 is 200 in row 3"
    ):
        decided = model.predict(new)
    assert decided[3] <= 2.0 * y.max()
    assert (decided >= 0.0).all()


def test_what_was_seen_is_neither_cut_nor_called_far():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.exponential(size=200) ** 4])  # rain: no number alone
    y = 10.0 + X[:, 0] + rng.normal(size=200)
    stack, model = Ensemble().fit(X, y, None, PIECES, 0).stack, RobustNewsvendor(1.0, 0.2).fit(X, y)
    assert stack.most[1] == X[:, 1].max()
    assert model.suspects_ == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)
    with pytest.warns(DataWarning, match="1 of 1 rows have contexts far outside those seen .column 1"):
        model.predict([[0.0, 3.0 * X[:, 1].max()]])


def test_decisions_are_never_negative_where_outcomes_never_were():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4))
    y = np.maximum(X @ [3.0, 1.0, 0.0, 0.0] + rng.normal(size=20), 0.0)
    model = RobustNewsvendor(1.0, 5.0).fit(X, y)
    with pytest.warns(DataWarning, match="of 500 rows have contexts far outside"):
        assert (model.predict(2.0 * rng.normal(size=(500, 4))) >= 0.0).all()


def test_the_worst_case_grows_with_the_radius():
    X, y = wave(60)
    model = RobustNewsvendor(1.0, 0.2).fit(X, y)
    values = [model.worst_case(X, y, radius=k * model.radius_).value for k in (0.0, 1.0, 3.0, 10.0)]
    assert values[0] < 0.97 * values[1] < 0.97 * values[2] < 0.97 * values[3]
    assert model.augmentation().worst_case == pytest.approx(model.certificate_.upper, rel=1e-6)


@settings(max_examples=5, deadline=None)
@given(st.floats(0.01, 100.0))
def test_units_of_outcomes_change_nothing(unit):
    X, y = wave(40)
    one, other = RobustNewsvendor().fit(X, y), RobustNewsvendor().fit(X, unit * y)
    np.testing.assert_allclose(other.predict(X), unit * one.predict(X), rtol=1e-5)
    assert other.radius_ == pytest.approx(one.radius_, rel=1e-3)


def test_limits_and_several_products():
    X, y = wave(60)
    model = RobustPolicy(
        Newsvendor((1.0, 2.0), (0.2, 0.5)), Linear(decisions=Box(0.0, 9.0)), nominal="auto"
    ).fit(X, np.column_stack([y, 2.0 * y]))
    decided = model.predict(X)
    assert decided.shape == (60, 2)
    assert decided.max() <= 9.0
    assert model.guarantee().endswith(".")
    assert "shift" not in model.guarantee()  # outcomes stay where decisions have limits


def test_costs_of_three_lines_decide_by_their_best_constant():
    X, y = wave(60)
    cost = TieredNewsvendor(shortage=((0, 1.0), (2, 3.0)), leftover=0.5)
    model = RobustPolicy(cost, nominal="auto").fit(X, y)
    assert [type(m) for m in model.problem_.policy.offset.forecasts[0].members] == [Level, Level]


def test_a_saved_ensemble_decides_and_learns_alike(tmp_path):
    X, y = wave(60)
    fresh, more = wave(40, 1)
    model = RobustNewsvendor(1.0, 0.2).fit(X, y)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(fresh), model.predict(fresh))
    for one in (model, again):
        one.partial_fit(fresh, more)
    np.testing.assert_array_equal(again.predict(fresh), model.predict(fresh))


def rehearsals(seed=0, ways=4, n=50):
    """One member that follows contexts, one that follows them by half, one that stays."""
    rng = rng_for(seed, "rehearsals of a test")
    y, moves = rng.standard_normal(n), 2.0 * rng.standard_normal((ways, n))
    moves[0] = 0.0
    return np.stack([y + moves, y + 0.5 * moves, np.zeros((ways, n))], axis=2), y


@pytest.mark.parametrize("seed", range(5))
def test_weights_for_the_worst_cost_less_where_it_comes(seed):
    honest, y = rehearsals(seed)
    shares, many = np.ones(len(y)), 1e6  # so many observations leave nothing of the prior weights
    flat = stack_weights(honest.reshape(-1, 3), np.tile(y, 4), np.tile(shares, 4), PIECES, many)
    safe = worst_weights(honest, y, shares, PIECES, many)
    assert safe.sum() == pytest.approx(1.0)

    def worst(weights):
        return PIECES.evaluate(honest @ weights - y).max(axis=0).mean()

    def mean(weights):
        return PIECES.evaluate(honest @ weights - y).mean()

    assert worst(safe) < 0.98 * worst(flat)
    assert mean(flat) < mean(safe)
    grid = [
        np.array([a, b, 1.0 - a - b]) for a in np.linspace(0, 1, 41) for b in np.linspace(0, 1 - a, 41)
    ]
    assert worst(safe) < 1.03 * min(worst(weights) for weights in grid)


def test_weights_for_one_way_are_the_usual_ones():
    honest, y = rehearsals(ways=1)
    np.testing.assert_array_equal(
        worst_weights(honest, y, np.ones(len(y)), PIECES, 50.0),
        stack_weights(honest[0], y, np.ones(len(y)), PIECES, 50.0),
    )


def test_honest_decisions_are_for_contexts_that_stay():
    X, _ = wave(60)
    y = 50.0 + 5.0 * X[:, 0]
    found = Ensemble(protect=0.2).fit(X, y, None, PIECES, 0)
    assert np.abs(found.decisions - found.stack(X[found.kept])).mean() < 0.6  # rows that move: 1.2


def test_protection_follows_no_trend():
    sales = 100.0 + 2.0 * np.arange(62.0)
    X, y = np.column_stack([sales[1:-1], sales[:-2]]), sales[2:]
    plain, safe = (Ensemble(protect=p).fit(X, y, None, PIECES, 0).stack for p in (0.0, 1.0))
    far = X[-1:] + 100.0
    assert plain(far)[0] > 280.0
    assert safe(far)[0] == pytest.approx(safe(np.clip(far, safe.least, safe.most))[0], rel=0.05)
    assert safe(far) == safe(far + 100.0)


def test_protection_costs_little_and_pays_when_contexts_shift():
    data = synthetic(n=100, s=10, seed=0)
    plain, safe = (RobustNewsvendor(1.0, 0.2, protect=p).fit(data.X, data.y) for p in (0.0, 0.3))
    rng = np.random.default_rng(0)
    moved = data.X_test + data.X.std(axis=0) * rng.standard_normal(data.X_test.shape)
    assert safe.cost(moved, data.y_test) < plain.cost(moved, data.y_test)
    assert safe.cost(data.X_test, data.y_test) < 1.1 * plain.cost(data.X_test, data.y_test)


@pytest.mark.parametrize("options", [{"radius": 0.1}, {"nominal": None}, {"intercept": False}])
def test_protection_is_for_the_default(options):
    with pytest.raises(
        InvalidInputError, match="protect must be 0 beside a radius, a nominal, a policy or a solver"
    ):
        RobustNewsvendor(protect=0.5, **options).fit(*wave(20))


def test_the_guarantee_is_a_sentence_about_new_days():
    X, y = wave(100)
    model = RobustNewsvendor(1.0, 0.2).fit(X, y)
    text = model.guarantee(0.3)
    assert text.startswith("With 95 % confidence the expected cost on new days like these is at most")
    assert f"at most {model.certificate_.upper:.3g}; if outcomes shift by 0.3" in text
    with pytest.raises(InvalidInputError, match="guarantee needs the ensemble of nominal='auto'"):
        RobustNewsvendor(radius=0.1).fit(X, y).guarantee()
    with pytest.raises(InvalidInputError, match="shift must be >= 0"):
        model.guarantee(-1.0)
    with pytest.raises(InvalidInputError, match="or one that has learned on"):
        model.partial_fit(*wave(10, 1)).guarantee()


def test_a_radius_of_the_users_own_is_taken():
    X, y = wave(60)
    model = RobustPolicy(Newsvendor(1.0, 0.2), nominal="auto", ball=WassersteinBall(0.25)).fit(X, y)
    assert model.radius_ == 0.25


def test_few_rows_state_no_bound():
    model = RobustNewsvendor(19.0, 1.0).fit(*wave(50))
    assert model.guarantee().startswith("No bound is stated: of 50 rows only about 2.5 lie")


def test_equal_outcomes_state_no_bound():
    model = RobustNewsvendor(4.0, 1.0).fit(wave(50)[0], np.zeros(50))
    assert model.guarantee().startswith("No bound is stated: all 50 outcomes are equal")


def test_a_few_kinds_of_rows_are_observations():
    X = np.repeat([[1.0], [3.0]], 20, axis=0)
    y = np.where(X[:, 0] == 1.0, 1000.0, 5.0)
    np.testing.assert_allclose(
        RobustNewsvendor(3.0, 2.0).fit(X, y).predict([[1.0], [3.0]]), [1000.0, 5.0], atol=60.0
    )
