import numpy as np
import pandas as pd
import polars as pl
import pytest

from surefoot import Box, RobustNewsvendor, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError, InvalidTypeError, UnsupportedProblemError
from surefoot.online import ConstantStep, DecayingRadius, DecayingStep, Memory, OnlinePolicy, Window
from surefoot.policies import Linear, Polynomial
from surefoot.random import rng_for

COST = Newsvendor(backorder=1.0, holding=0.2)
UPPER_QUANTILE = 0.9674  # of the standard normal at 1 / 1.2


def samples(rows=400, name="policy", s=3, noise=1.0):
    rng = rng_for(0, "online", name)
    X = rng.normal(size=(rows, s)) * np.linspace(1.0, 3.0, s) + 2.0
    y = 5.0 + X @ np.linspace(1.0, 0.2, s) + noise * rng.normal(size=rows)
    return X, y


def as_dicts(X):
    return [{f"x{j}": value for j, value in enumerate(row)} for row in X.tolist()]


def psi(residuals):
    return np.maximum(0.2 * residuals, -residuals)


def same_state(first, second):
    """Compare states bit by bit."""
    assert first.keys() == second.keys()
    assert first["arrays"].keys() == second["arrays"].keys()
    for name, array in first["arrays"].items():
        np.testing.assert_array_equal(array, second["arrays"][name], err_msg=name)
    return all(first[name] == second[name] for name in first if name != "arrays")


def test_it_learns_the_oracle():
    X, y = samples(8_000)
    policy = OnlinePolicy(COST)
    decisions = policy.decide_and_learn(X, y)
    oracle = 5.0 + X @ np.linspace(1.0, 0.2, 3) + UPPER_QUANTILE
    late = slice(4_000, None)
    assert psi(decisions[late] - y[late]).mean() < 1.02 * psi(oracle[late] - y[late]).mean()
    assert policy.n_rows == 8_000


@pytest.mark.parametrize(
    "options",
    [
        {"ball": WassersteinBall(0.1)},
        {"ball": WassersteinBall(0.1), "radius": DecayingRadius(20)},
        {"ball": WassersteinBall(0.1, order=1)},
        {"ball": WassersteinBall(0.1, scale=False)},
        {"ball": WassersteinBall(0.1, support=Box(-40, 40))},
        {"policy": Linear(intercept=False)},
        {"policy": Linear(features=Polynomial(2))},
        {"policy": Linear(decisions=Box(0, 30))},
        {"step": DecayingStep(1.0)},
        {"step": ConstantStep(0.05)},
        {"drift": Window(500)},
    ],
    ids=repr,
)
def test_every_option_learns(options):
    X, y = samples(3_000)
    if "intercept=False" in repr(options):
        y = y - 5.0
    policy = OnlinePolicy(COST, **options)
    decisions = policy.decide_and_learn(X, y)
    constant = np.quantile(y, 1 / 1.2)
    late = slice(1_500, None)
    assert psi(decisions[late] - y[late]).mean() < 0.65 * psi(constant - y[late]).mean()


def test_dictionaries_and_arrays_are_one_stream():
    X, y = samples(200)
    arrays, dicts = OnlinePolicy(COST), OnlinePolicy(COST)
    arrays.partial_fit(X, y)
    for x, outcome in zip(as_dicts(X), y.tolist(), strict=True):
        assert dicts.learn_one(x, outcome) is None
    assert same_state(arrays.state_dict(), dicts.state_dict())
    assert arrays.columns == ("x0", "x1", "x2")
    one = [dicts.decide_one(x) for x in as_dicts(X[:20])]
    np.testing.assert_allclose(one, arrays.decide(X[:20]), rtol=1e-13)


def test_how_a_stream_is_cut_does_not_matter():
    X, y = samples(300)
    whole, cut = OnlinePolicy(COST), OnlinePolicy(COST)
    whole.partial_fit(X, y)
    for first in (0, 3, 16, 17, 120):
        last = {0: 3, 3: 16, 16: 17, 17: 120, 120: 300}[first]
        cut.partial_fit(X[first:last], y[first:last])
    assert same_state(whole.state_dict(), cut.state_dict())


def test_decide_and_learn_decides_before_it_learns():
    X, y = samples(60)
    policy, other = OnlinePolicy(COST, drift=Window(30)), OnlinePolicy(COST, drift=Window(30))
    decisions = policy.decide_and_learn(X, y)
    for k in range(60):
        assert other.decide(X[k : k + 1])[0] == pytest.approx(decisions[k], rel=1e-12, abs=1e-12)
        other.partial_fit(X[k : k + 1], y[k : k + 1])


def test_deciding_changes_nothing():
    X, y = samples(100)
    for learned in (0, 5, 100):
        policy = OnlinePolicy(COST)
        if learned:
            policy.partial_fit(X[:learned], y[:learned])
        before = policy.state_dict()
        policy.decide_one({"x0": 1.0, "new": 4.0, "city": "Rome"})
        policy.decide(X)
        assert same_state(before, policy.state_dict())
        policy.decide_one({"x0": 1.0}, tracked=True)  # the documented exception
        assert policy.state_dict()["next_id"] == 1


def test_first_decisions_are_the_best_constant():
    policy = OnlinePolicy(COST)
    assert policy.decide_one({"heat": 20.0}) == 0.0
    for outcome in (4.0, 9.0, 6.0):
        policy.learn_one({"heat": 20.0}, outcome)
    assert policy.decide_one({"heat": -50.0}) == 9.0  # the 5/6 quantile of three outcomes
    limited = OnlinePolicy(COST, Linear(decisions=Box(2.0, 5.0)))
    assert limited.decide_one({}) == 2.0
    limited.learn_one({"heat": 1.0}, 9.0)
    assert limited.decide_one({}) == 5.0


def test_several_products():
    X, y = samples(500)
    both = np.column_stack([y, 2.0 * y])
    policy = OnlinePolicy(Newsvendor(backorder=(1.0, 2.0), holding=(0.2, 0.1)))
    policy.partial_fit(X, both)
    assert policy.decide(X).shape == (500, 2)
    one = policy.decide_one(as_dicts(X)[0])
    np.testing.assert_allclose(one, policy.decide(X[:1])[0], rtol=1e-13)
    alone = OnlinePolicy(COST).partial_fit(X, y)  # products do not disturb each other
    np.testing.assert_allclose(policy.decide(X)[:, 0], alone.decide(X), rtol=1e-12)
    with pytest.raises(InvalidInputError, match=r"y must have 2 products as before, got 1"):
        policy.learn_one(as_dicts(X)[0], 3.0)


# --- keys -----------------------------------------------------------------------------------------


def test_a_missing_key_stands_at_its_running_mean():
    X, y = samples(300)
    policy = OnlinePolicy(COST).partial_fit(X, y)
    x = {"x0": 1.0, "x2": 3.0}
    full = x | {"x1": float(X[:, 1].mean())}
    assert policy.decide_one(x) == pytest.approx(policy.decide_one(full), rel=1e-12)
    assert policy.decide_one(x | {"x1": None}) == policy.decide_one(x)
    theta = policy.state_dict()["arrays"]["theta"][0, 1]
    policy.learn_one(x, 9.0)
    after = policy.state_dict()["arrays"]
    np.testing.assert_array_equal(after["columns"]["count"], [301.0, 300.0, 301.0])
    assert after["theta"][0, 1] != theta  # the pull of the ball: no information is no freeze
    at_zero = OnlinePolicy(COST, ball=WassersteinBall(0.0)).partial_fit(X, y)
    theta = at_zero.state_dict()["arrays"]["theta"][0, 1]
    at_zero.learn_one(x, 9.0)
    assert at_zero.state_dict()["arrays"]["theta"][0, 1] == theta


def test_a_new_key_starts_at_zero_and_is_learned():
    X, y = samples(3_000)
    policy = OnlinePolicy(COST, ball=WassersteinBall(0.0))
    dicts = as_dicts(X)
    for x, outcome in zip(dicts[:1_000], y[:1_000], strict=True):
        policy.learn_one({"x0": x["x0"], "x1": x["x1"]}, outcome)
    before = policy.decide_one(dicts[0])
    policy.learn_one(dicts[1_000], float(y[1_000]))
    assert policy.columns == ("x0", "x1", "x2")
    assert policy.decide_one(dicts[0]) == pytest.approx(before, abs=0.1)
    for x, outcome in zip(dicts[1_001:], y[1_001:], strict=True):
        policy.learn_one(x, float(outcome))
    average = policy.state_dict()["arrays"]["average"][0]
    np.testing.assert_allclose(average, [1.0, 0.6, 0.2], atol=0.1)


def test_texts_become_indicators_that_never_move():
    rng = rng_for(0, "online", "texts")
    policy = OnlinePolicy(COST, ball=WassersteinBall(0.05))
    height = {"Rome": 3.0, "Oslo": 8.0, "Lima": 5.0}
    for _ in range(3_000):
        city = str(rng.choice(list(height)))
        policy.learn_one({"city": city, "heat": rng.normal()}, height[city] + 0.1 * rng.normal())
    assert set(policy.columns) == {"heat", "city=Rome", "city=Oslo", "city=Lima"}
    for city, level in height.items():
        assert policy.decide_one({"city": city, "heat": 0.0}) == pytest.approx(level + 0.1, abs=0.2)
    frozen = dict(zip(policy.columns, policy.state_dict()["arrays"]["columns"]["frozen"], strict=True))
    assert frozen == {"heat": 0.0, "city=Rome": 1.0, "city=Oslo": 1.0, "city=Lima": 1.0}
    assert np.isfinite(policy.decide_one({"city": "Paris", "heat": 0.0}))


def test_the_number_of_columns_is_bounded():
    policy = OnlinePolicy(COST, memory=Memory(columns=5))
    for k in range(5):
        policy.learn_one({"id": f"customer {k}"}, 1.0)
    with pytest.raises(InvalidInputError, match=r"at most 5 columns in all, got the new key 'id'"):
        policy.learn_one({"id": "customer 5"}, 1.0)
    assert len(policy.columns) == 5
    policy.learn_one({"id": "customer 3"}, 1.0)
    with pytest.raises(InvalidInputError, match="at most 5 columns"):
        OnlinePolicy(COST, memory=Memory(columns=5)).partial_fit(np.ones((2, 6)), [1.0, 2.0])


def test_frozen_columns_by_key_and_position():
    X, y = samples(100)
    frames = pd.DataFrame(X, columns=["heat", "rain", "day"])
    for frozen in (("rain",), (1,)):
        policy = OnlinePolicy(COST, ball=WassersteinBall(0.3, frozen=frozen)).partial_fit(frames, y)
        np.testing.assert_array_equal(
            policy.state_dict()["arrays"]["columns"]["frozen"], [0.0, 1.0, 0.0]
        )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_go_by_name(frame):
    X, y = samples(200)
    names = ["heat", "rain", "day"]
    table = frame(dict(zip(names, X.T, strict=True)))
    policy = OnlinePolicy(COST).partial_fit(table, y)
    assert policy.columns == tuple(names)
    shuffled = table[["day", "heat", "rain"]]
    np.testing.assert_array_equal(policy.decide(shuffled), policy.decide(table))
    np.testing.assert_array_equal(policy.decide(X), policy.decide(table))
    fewer = policy.decide(table[["day", "heat"]])
    assert fewer[0] == pytest.approx(policy.decide_one({"day": X[0, 2], "heat": X[0, 0]}), rel=1e-12)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_with_texts(frame):
    X, y = samples(100)
    city = ["Rome", "Oslo"] * 50
    policy = OnlinePolicy(COST)
    decisions = policy.decide_and_learn(frame({"city": city, "heat": X[:, 0]}), y)
    other = OnlinePolicy(COST)
    for k in range(100):
        assert other.decide_one({"city": city[k], "heat": X[k, 0]}) == pytest.approx(
            decisions[k], rel=1e-12, abs=1e-12
        )
        other.learn_one({"city": city[k], "heat": X[k, 0]}, float(y[k]))
    assert same_state(policy.state_dict(), other.state_dict())


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"heat": np.nan}, r"x\['heat'\] must be finite and within .*got nan"),
        ({"heat": np.inf}, r"x\['heat'\] must be finite"),
        ({"heat": -1e200}, r"x\['heat'\] must be finite and within \+-1e\+100"),
        ({"heat": 10**400}, r"x\['heat'\] must fit in a float"),
        ({"heat": [1.0]}, r"x\['heat'\] must be a number, a text or None, got \[1.0\]"),
        ({"heat": np.ma.masked}, r"x\['heat'\] must be a number, a text or None, got a masked entry"),
        ({"heat": 1j}, r"x\['heat'\] must be a number"),
        ({"heat": "hot"}, r"x\['heat'\] must be a number as before, got the text 'hot'"),
        ({"city": 3.0}, r"x\['city'\] must be a text as before, got 3.0"),
        ({3: 1.0}, "keys of x must be texts, got 3"),
        ([1.0, 2.0], "x must be a dictionary"),
        (5.0, "x must be a dictionary"),
    ],
)
def test_bad_contexts_are_refused_by_key(x, message):
    policy = OnlinePolicy(COST)
    for k in range(20):
        policy.learn_one({"heat": float(k), "city": "Rome"}, 5.0 + k)
    before = policy.state_dict()
    with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
        policy.decide_one(x)
    with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
        policy.learn_one(x, 1.0)
    assert same_state(before, policy.state_dict())


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e150, "5", None, [[1.0]], []])
def test_bad_outcomes_are_refused(value):
    policy = OnlinePolicy(COST)
    policy.learn_one({"heat": 1.0}, 2.0)
    before = policy.state_dict()
    with pytest.raises((InvalidInputError, InvalidTypeError), match="y must"):
        policy.learn_one({"heat": 1.0, "new": 2.0}, value)
    assert same_state(before, policy.state_dict())


def test_bad_arrays_are_refused():
    X, y = samples(50)
    policy = OnlinePolicy(COST).partial_fit(X, y)
    before = policy.state_dict()
    gap = X.copy()
    gap[3, 1] = np.nan
    for bad, message in (
        ((gap, y), r"X must be finite .*row 3, column 1"),
        ((X[:, :2], y), "X must have 3 columns as before, got 2"),
        ((X, y[:-1]), r"y must have one row per row of X \(50\), got 49"),
        ((X[0], y), "X must be a matrix"),
        ((X, np.column_stack([y, y])), "y must have 1 product as before, got 2"),
        ((X * 1e150, y), "X must lie within"),
        ((pd.DataFrame(gap, columns=list("abc")), y), "row 3, column 'b'"),
        ((pd.DataFrame(X), y), "columns of X must have texts as names"),
    ):
        with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
            policy.partial_fit(*bad)
    assert same_state(before, policy.state_dict())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost": "newsvendor"}, "cost must be a cost"),
        ({"policy": "linear"}, "policy must be a policy"),
        ({"ball": 0.1}, "ball must be a WassersteinBall"),
        (
            {"ball": WassersteinBall("auto")},
            "radius of the ball must be a number on a stream, got 'auto'",
        ),
        ({"ball": WassersteinBall(0.1), "radius": 0.1}, "radius must be DecayingRadius"),
        ({"step": 0.1}, "step must be a rule"),
        ({"drift": 100}, "drift must be Restart"),
        ({"memory": 100}, "memory must be Memory"),
        ({"random_state": -1}, "random_state must be >= 0"),
    ],
)
def test_bad_options_are_refused_by_name(options, message):
    with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
        OnlinePolicy(**({"cost": COST} | options))


@pytest.mark.parametrize("make", [lambda: ConstantStep(0), lambda: DecayingStep(-1), lambda: DecayingRadius(0),
                                  lambda: Window(15), lambda: Memory(columns=0), lambda: Memory(pending=0)])  # fmt: skip
def test_bad_rules_are_refused(make):
    with pytest.raises(InvalidInputError, match=r"must be >"):
        make()


def test_a_window_shorter_than_the_first_samples_is_refused():
    # Steps that remember fewer rows grew without end: a cost of 1e26 after 3,000 rows.
    with pytest.raises(InvalidInputError, match=r"rows must be >= 16, got 8"):
        Window(8)


def test_a_frame_with_texts_and_no_row_is_refused():
    pd = pytest.importorskip("pandas")
    policy = OnlinePolicy(COST)
    for k in range(20):
        policy.learn_one({"heat": float(k), "city": "Rome"}, 5.0 + k)
    with pytest.raises(InvalidInputError, match="X must have at least one row, got none of 2 columns"):
        policy.decide(pd.DataFrame({"heat": [1.0], "city": ["Rome"]})[:0])


def test_a_key_and_a_key_with_its_text_cannot_share_a_name():
    policy = OnlinePolicy(COST)
    policy.learn_one({"city": "Rome", "heat": 1.0}, 3.0)
    with pytest.raises(InvalidInputError, match="distinct names, got 'city=Rome' twice"):
        policy.learn_one({"city=Rome": 1.0}, 3.0)
    assert (policy.n_rows, policy.columns) == (1, ("city=Rome", "heat"))
    assert policy.decide_one({"city=Rome": 1.0}) == 3.0  # a decision ignores keys never learned


@pytest.mark.parametrize(
    ("frozen", "message"),
    [
        (("holliday",), r"\(heat, holiday\), got 'holliday': the nearest is 'holiday'"),
        ((2,), r"positions below 2, the columns of the first contexts, got 2"),
        ((-3,), r"positions below 2, .* got -3"),
    ],
)
def test_a_frozen_column_that_no_context_has_is_refused(frozen, message):
    policy = OnlinePolicy(COST, ball=WassersteinBall(0.1, frozen=frozen))
    for k in range(15):
        policy.learn_one({"heat": float(k), "holiday": float(k % 2)}, 1.0)
    with pytest.raises(InvalidInputError, match=message):
        policy.learn_one({"heat": 0.0, "holiday": 1.0}, 1.0)
    assert policy.n_rows == 15


def test_frozen_positions_count_from_the_end_too():
    policy = OnlinePolicy(COST, ball=WassersteinBall(0.1, frozen=(-1,)))
    for k in range(20):
        policy.learn_one({"heat": float(k), "holiday": float(k % 2)}, 1.0)
    policy.learn_one({"heat": 1.0, "holiday": 0.0, "rain": 3.0}, 1.0)
    assert policy.state_dict()["arrays"]["columns"]["frozen"].tolist() == [0.0, 1.0, 0.0]


def test_contexts_outside_the_support_are_refused_by_key():
    policy = OnlinePolicy(COST, ball=WassersteinBall(0.1, support=Box(0.0, 10.0)))
    with pytest.raises(
        InvalidInputError, match=r"x\['heat'\] must lie in the ball's support \[0, 10\], got 11"
    ):
        policy.learn_one({"heat": 11.0}, 1.0)
    assert policy.n_rows == 0
    assert policy.columns == ()


# ---------------------------------------------------------------- odd input, and nothing lost


def small(**options):
    return OnlinePolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall(0.1), **options)


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X @ [1.0, 2.0] + 5.0 + 0.1 * rng.normal(size=n)


def test_frames_may_mix_bools_and_nullable_numbers_with_floats():
    X, y = rows(40)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0, "c": pd.array([1, 2] * 20, dtype="Int64")})
    plain = pd.DataFrame({name: frame[name].astype(float) for name in frame})
    first, second = small().partial_fit(frame, y), small().partial_fit(plain, y)
    np.testing.assert_array_equal(first.decide(frame), second.decide(plain))


def test_two_columns_of_one_name_are_refused():
    X, y = rows(40)
    with pytest.raises(InvalidInputError, match="distinct names, got 'a' twice"):
        small().partial_fit(pd.DataFrame(X, columns=["a", "a"]), y)


@pytest.mark.parametrize("kind", [np.float32, np.uint8, np.int64, bool])
def test_numbers_of_numpy_are_numbers(kind):
    policy = small()
    X, y = rows(40)
    policy.partial_fit(pd.DataFrame(X, columns=["a", "b"]), y)
    exact = policy.decide_one({"a": 1.0, "b": 0.0})
    assert policy.decide_one({"a": kind(1), "b": kind(0)}) == exact


@pytest.mark.parametrize("part", ["version", "settings", "columns", "pending", "arrays", "single"])
def test_a_state_without_a_part_is_refused_by_name_and_changes_nothing(part):
    X, y = rows(40)
    policy = small().partial_fit(X, y)
    before, state = policy.decide(X), policy.state_dict()
    del state[part]
    with pytest.raises(InvalidInputError, match=f"state must have the part '{part}'"):
        policy.load_state_dict(state)
    np.testing.assert_array_equal(policy.decide(X), before)


def test_a_state_with_an_array_of_another_shape_is_refused():
    X, y = rows(40)
    policy = small().partial_fit(X, y)
    state = policy.state_dict()
    name = next(name for name in state["arrays"] if name.endswith("average"))
    state["arrays"][name] = np.zeros((1, 1))
    with pytest.raises(InvalidInputError, match=r"average of the state must have shape \(1, 2\)"):
        small().load_state_dict(state)


def test_a_window_shorter_than_the_fit_keeps_the_scale():
    rng = np.random.default_rng(0)
    X = rng.normal(50.0, 5.0, size=(600, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=600)
    model = RobustNewsvendor(radius=0.1).fit(X, y)
    policy = OnlinePolicy.from_model(model, drift=Window(50))
    policy.partial_fit(X[:300], y[:300])
    cost = np.maximum(0.2 * (policy.decide(X) - y), y - policy.decide(X)).mean()
    assert cost < 3.5 * model.cost(X, y)  # a blown-up scale costs seven times as much


def test_a_bad_text_row_leaves_none_of_the_frame_learned():
    X, y = rows(40)
    frame = pd.DataFrame({"a": X[:, 0], "city": ["x", None] * 20})
    policy = small().partial_fit(frame, y)
    assert policy.n_rows == 40
    frame.loc[38, "a"] = np.inf
    with pytest.raises(InvalidInputError, match="a"):
        policy.partial_fit(frame, y)
    assert policy.n_rows == 40


# ---------------------------------------------------------------- values out of all proportion


def test_far_values_are_cut_and_counted_by_column():
    X, y = samples(300)
    frame = pd.DataFrame(X, columns=["heat", "rain", "day"])
    clean = OnlinePolicy(COST).partial_fit(frame, y)
    assert clean.n_cut == {}
    frame.loc[5, "rain"] = 1e9  # among the first rows
    frame.loc[[100, 200], "heat"] = [-1e6, 1e6]
    policy = OnlinePolicy(COST).partial_fit(frame, y)
    assert policy.n_cut == {"heat": 2, "rain": 1}
    costs = [psi(one.decide(X) - y).mean() for one in (clean, policy)]
    assert costs[1] < 1.3 * costs[0]
    again = OnlinePolicy(COST)
    again.load_state_dict(policy.state_dict())
    assert again.n_cut == policy.n_cut


def test_before_learning_starts_nothing_was_cut():
    X, y = samples(10)
    X[3, 1] = 1e9
    assert OnlinePolicy(COST).partial_fit(X, y).n_cut == {}


def test_a_decision_at_a_far_value_is_that_at_the_nearest_ordinary_one():
    X, y = samples(300)
    policy = OnlinePolicy(COST).partial_fit(X, y)
    before = policy.state_dict()
    x = dict(zip(policy.columns, X[0].tolist(), strict=True))
    most = max(X[:, 1].max(), X[:, 1].mean() + 6.0 * X[:, 1].std())
    far = policy.decide_one(x | {"x1": 1e8})
    assert far == pytest.approx(policy.decide_one(x | {"x1": most}), rel=1e-12)
    assert far != pytest.approx(policy.decide_one(x | {"x1": 0.9 * most}), rel=1e-6)
    assert same_state(before, policy.state_dict())  # a decision counts nothing


def test_a_level_that_moves_for_good_is_followed():
    X, y = samples(3_000)
    X[1_000:, 0] += 100.0
    y[1_000:] += 100.0
    decisions = OnlinePolicy(COST).decide_and_learn(X, y)
    late = slice(2_500, None)
    constant = np.quantile(y[late], 1 / 1.2)
    assert psi(decisions[late] - y[late]).mean() < psi(constant - y[late]).mean()


def test_a_stream_has_no_numbers_as_scale():
    X, y = samples(40)
    policy = OnlinePolicy(COST, ball=WassersteinBall(0.5, scale=(1.0,) * 3))
    with pytest.raises(UnsupportedProblemError, match="got numbers: divide the columns by them"):
        policy.partial_fit(X, y)


def test_a_model_without_a_seed_of_its_own_goes_on_with_the_one_it_drew():
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = RobustNewsvendor(radius=0.1, random_state=None).fit(X, X.sum(axis=1))
    assert OnlinePolicy.from_model(model).settings.random_state == model.seed_
