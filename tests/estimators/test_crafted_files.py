"""Model files made to do harm, with checksums that match: refused within a second, by ``load``.

Checksums are no signature. A file that loads must be a model that decides, learns on and can be asked
whatever a fitted one can be asked; every other file gets a ``ModelFileError``.
"""

import numpy as np
import pandas as pd
import pytest

from surefoot import DASGD, PreparedPolicy, RobustNewsvendor, RobustPolicy, WassersteinBall, load
from surefoot.costs import Newsvendor
from surefoot.forecasts import Forecaster
from surefoot.policies import MLP, Linear, RandomFourier
from tests.io.forging import edit, refused

COST = Newsvendor(1.0, 0.2)
QUICK = DASGD(max_steps=500, gap_tol=1e3)


def wave(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 3))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n)


def prepared():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"heat": rng.normal(size=60), "city": rng.choice(["Rome", "Oslo"], 60)})
    return PreparedPolicy(RobustNewsvendor(radius=0.1)).fit(table, rng.normal(size=60))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of fitted models, by name."""
    X, y = wave(50, 0)
    both = np.column_stack([y, 2.0 * y])
    named = pd.DataFrame(X, columns=["a", "b", "c"])
    models = {
        "plain": RobustNewsvendor(radius=0.1).fit(named, y),
        "forecast": RobustNewsvendor(nominal=Forecaster()).fit(X, y),
        "ensemble": RobustNewsvendor().fit(X, y),
        "frozen": RobustNewsvendor(frozen=(1,)).fit(X, y),
        "two": RobustNewsvendor(radius=0.1).fit(X, both),
        "fourier": RobustPolicy(COST, Linear(features=RandomFourier(5)), ball=WassersteinBall(0.1)).fit(
            X, y
        ),
        "neural": RobustPolicy(COST, MLP((4,)), ball=WassersteinBall(0.1), solver=QUICK).fit(X, y),
        "prepared": prepared(),
    }
    forecast = models["forecast"].problem_.policy.offset.forecasts[0]
    assert forecast.trees is not None
    assert forecast.smooth is not None
    place = tmp_path_factory.mktemp("models")
    for name, model in models.items():
        model.save(place / name)
    return {name: (place / name).read_bytes() for name in models}


def in_part(place, change):
    """Return a change of the array at a place of the header, such as "fitted/parameters/theta"."""

    def apply(header, arrays):
        name = at(header, place)["__array__"]
        arrays[name] = change(arrays[name].copy())

    return apply


def at(header, place):
    """Return what stands at a place: names of parts, fields of classes, positions in tuples."""
    found = header
    for step in place.split("/"):
        if isinstance(found, dict) and "fields" in found:
            found = found["fields"]
        if isinstance(found, dict) and "__tuple__" in found:
            found = found["__tuple__"]
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found


def put(place, value):
    """Return a change that puts a value in a place of the header."""
    parent, _, last = place.rpartition("/")

    def apply(header, arrays):
        del arrays
        found = at(header, parent) if parent else header
        found = found.get("fields", found)
        found[last] = value

    return apply


def set_entry(entry, value):
    def change(array):
        array[entry] = value
        return array

    return change


FORECAST = "fitted/policy/offset/forecasts/0"
TREES, SMOOTH = f"{FORECAST}/trees", f"{FORECAST}/smooth"


def tree_change(**nodes):
    """Return a change of the first two nodes of the trees; others stay."""

    def apply(header, arrays):
        for name, (first, second) in nodes.items():
            array = arrays[at(header, f"{TREES}/{name}")["__array__"]]
            array[0], array[1] = first, second

    return apply


def unvisited(**nodes):
    """Return a change that the context of zeros does not meet: it goes below at the first node."""

    def apply(header, arrays):
        names = {name: at(header, f"{TREES}/{name}")["__array__"] for name in (
            "feature", "threshold", "below", "above"
        )}  # fmt: skip
        leaf = int(np.flatnonzero(arrays[names["below"]] == np.arange(len(arrays[names["below"]])))[0])
        first = {"feature": 0, "threshold": 100.0, "below": leaf, "above": leaf} | nodes
        for name, value in first.items():
            arrays[names[name]][0] = value

    return apply


box = {"__class__": "Box", "fields": {"lower": 0.0, "upper": 1.0}}
linear = {"__class__": "Linear", "fields": {}}
ball = {"__class__": "WassersteinBall", "fields": {"radius": 0.1}}
nan = {"__float__": "nan"}
infinite = {"__float__": "inf"}


def deep(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


LEAVES = f"{FORECAST}/members/3"
CRAFTED = {
    # ensembles
    "members of other columns": ("ensemble", in_part(f"{FORECAST}/least", lambda a: a[:-1])),
    "a member less": ("ensemble", in_part(f"{FORECAST}/weights", lambda a: a[:-1])),
    "weights with NaN": ("ensemble", in_part(f"{FORECAST}/weights", set_entry(0, np.nan))),
    "limits the wrong way round": ("ensemble", in_part(f"{FORECAST}/least", set_entry(0, 1e9))),
    "a Box for a member": ("ensemble", put(f"{FORECAST}/members/1", box)),
    "a logarithm beyond all numbers": ("ensemble", put(f"{FORECAST}/members/2/most", 1e9)),
    "a leaf beyond the samples": ("ensemble", in_part(f"{LEAVES}/leaf", lambda a: a + 10**6)),
    "samples with NaN": ("ensemble", in_part(f"{LEAVES}/samples", lambda a: a * np.nan)),
    "samples beyond the outcomes": ("ensemble", in_part(f"{LEAVES}/samples", lambda a: a + 50)),
    "samples before the outcomes": ("ensemble", in_part(f"{LEAVES}/samples", lambda a: a - 50)),
    "samples that are no matrix": ("ensemble", in_part(f"{LEAVES}/samples", lambda a: a.ravel())),
    "outcomes with NaN": ("ensemble", in_part(f"{LEAVES}/outcomes", set_entry(-1, np.nan))),
    "outcomes from large to small": ("ensemble", in_part(f"{LEAVES}/outcomes", lambda a: a[::-1])),
    "outcomes as a matrix": ("ensemble", in_part(f"{LEAVES}/outcomes", lambda a: a[:, None])),
    "text for outcomes": ("ensemble", put(f"{LEAVES}/outcomes", "many")),
    "places without outcomes": ("ensemble", put(f"{LEAVES}/outcomes", None)),
    "a quantile of two": ("ensemble", put(f"{LEAVES}/quantile", 2.0)),
    # trees
    "trees in a circle": ("forecast", tree_change(below=(1, 0), above=(1, 0))),
    "trees in a circle that zeros do not meet": ("forecast", unvisited(above=0)),
    "a branch beyond the nodes": ("forecast", tree_change(below=(10**6, 1), above=(10**6, 1))),
    "a branch beyond the nodes that zeros do not meet": ("forecast", unvisited(above=10**6)),
    "a negative branch": ("forecast", tree_change(below=(-1, -1), above=(-1, -1))),
    "a negative branch that zeros do not meet": ("forecast", unvisited(above=-1)),
    "a column beyond those there are": ("forecast", tree_change(feature=(99, 99))),
    "a column beyond those there are that zeros do not meet": ("forecast", in_part(
        f"{TREES}/feature", lambda a: np.where(np.arange(len(a)) == len(a) - 2, 99, a))),
    "a negative column": ("forecast", in_part(f"{TREES}/feature", lambda a: a - 1)),
    "a root beyond the nodes": ("forecast", in_part(f"{TREES}/roots", set_entry(0, 10**6))),
    "a negative root": ("forecast", in_part(f"{TREES}/roots", set_entry(0, -1))),
    "branches that are no whole numbers": (
        "forecast", in_part(f"{TREES}/below", lambda a: a.astype(float))),
    "columns that are no whole numbers": (
        "forecast", in_part(f"{TREES}/feature", lambda a: a.astype(float))),
    "trees with fewer values than nodes": ("forecast", in_part(f"{TREES}/value", lambda a: a[:-1])),
    "trees with fewer limits than nodes": ("forecast", in_part(f"{TREES}/threshold", lambda a: a[:-1])),
    "trees with NaN": ("forecast", in_part(f"{TREES}/value", lambda a: a * np.nan)),
    "one leaf with NaN": ("forecast", in_part(f"{TREES}/value", set_entry(-1, np.nan))),
    "trees of matrices": ("forecast", in_part(f"{TREES}/value", lambda a: a[:, None])),
    "a Box for trees": ("forecast", put(TREES, box)),
    # other parts of a forecast
    "centres of other columns": ("forecast", in_part(f"{SMOOTH}/centres", lambda a: a[:, :1])),
    "fewer coefficients than centres": (
        "forecast", in_part(f"{SMOOTH}/coefficients", lambda a: a[:-1])),
    "coefficients with NaN": ("forecast", in_part(f"{SMOOTH}/coefficients", set_entry(0, np.nan))),
    "a length of zero": ("forecast", put(f"{SMOOTH}/length", 0.0)),
    "a negative length": ("forecast", put(f"{SMOOTH}/length", -1.0)),
    "a length of NaN": ("forecast", put(f"{SMOOTH}/length", nan)),
    "a forecast of other columns": ("forecast", in_part(f"{FORECAST}/theta", lambda a: a[:-1])),
    "a forecast with NaN": ("forecast", in_part(f"{FORECAST}/theta", set_entry(0, np.nan))),
    "a spread of zero": ("forecast", in_part(f"{FORECAST}/spread", set_entry(0, 0.0))),
    "a negative spread": ("forecast", in_part(f"{FORECAST}/spread", set_entry(0, -1.0))),
    "a mean of NaN": ("forecast", in_part(f"{FORECAST}/mean", set_entry(0, np.nan))),
    "a mean of other columns": ("forecast", in_part(f"{FORECAST}/mean", lambda a: a[:-1])),
    "no forecast": ("forecast", put("fitted/policy/offset/forecasts", {"__tuple__": []})),
    "a forecast too many": ("forecast", lambda h, a: at(h, "fitted/policy/offset/forecasts")[
        "__tuple__"].append(at(h, FORECAST))),
    "a Box for a forecast": ("forecast", put("fitted/policy/offset/forecasts", {"__tuple__": [box]})),
    "a Box for forecasts": ("forecast", put("fitted/policy/offset", box)),
    "a selection of columns that are not there": (
        "frozen", put("fitted/policy/features/columns", {"__tuple__": [0, 7]})),
    # parameters
    "parameters of fewer columns": ("plain", in_part("fitted/parameters/theta", lambda a: a[:-1])),
    "parameters of more columns": (
        "plain", in_part("fitted/parameters/theta", lambda a: np.vstack([a, a]))),
    "parameters of more products": (
        "plain", in_part("fitted/parameters/theta", lambda a: np.hstack([a, a]))),
    "parameters of fewer products": (
        "two", in_part("fitted/parameters/theta", lambda a: a[:, :1])),
    "flat parameters": ("plain", in_part("fitted/parameters/theta", lambda a: a[:, 0])),
    "an intercept too many": (
        "plain", in_part("fitted/parameters/intercept", lambda a: np.append(a, a))),
    "an intercept too few": ("two", in_part("fitted/parameters/intercept", lambda a: a[:1])),
    "an intercept of another shape": (
        "plain", in_part("fitted/parameters/intercept", lambda a: a[None, :])),
    "a plain number for an intercept": ("plain", put("fitted/parameters/intercept", 1.0)),
    "parameters with NaN": ("plain", in_part("fitted/parameters/theta", set_entry((0, 0), np.nan))),
    "parameters with infinity": ("plain", in_part("fitted/parameters/theta", set_entry((0, 0), np.inf))),
    "an intercept of NaN": ("plain", in_part("fitted/parameters/intercept", lambda a: a * np.nan)),
    "complex parameters": ("plain", in_part("fitted/parameters/theta", lambda a: a + 1j)),
    "parameters of text": ("plain", in_part("fitted/parameters/theta", lambda a: a.astype(str))),
    "variables of the cost with NaN": (
        "plain", in_part("fitted/parameters/auxiliary", lambda a: np.array([np.nan]))),
    "weights of a network with NaN": ("neural", lambda h, a: in_part(
        f"fitted/parameters/trained/{sorted(at(h, 'fitted/parameters/trained'))[0]}",
        lambda w: w * np.nan)(h, a)),
    "weights of a network of another shape": ("neural", lambda h, a: in_part(
        f"fitted/parameters/trained/{sorted(at(h, 'fitted/parameters/trained'))[-1]}",
        lambda w: w[:-1])(h, a)),
    "a network without weights": ("neural", put("fitted/parameters/trained", {})),
    "units of a network with NaN": (
        "neural", in_part("fitted/parameters/units/unit", lambda a: a * np.nan)),
    "units of a network of zero": (
        "neural", in_part("fitted/parameters/units/spread", lambda a: a * 0.0)),
    "units of a network of other columns": (
        "neural", in_part("fitted/parameters/units/mean", lambda a: a[:-1])),
    # classes in the wrong place, and of no place at all
    "a Box for a policy": ("plain", put("fitted/policy", box)),
    "a policy for a ball": ("plain", put("fitted/ball", linear)),
    "a Box for the ball that was asked for": ("plain", put("fitted/asked_ball", box)),
    "a Box for a certificate": ("plain", put("fitted/certificate", box)),
    "a Box for parameters": ("plain", put("fitted/parameters", box)),
    "a Box for a path of radii": ("plain", put("fitted/radius_path", box)),
    "a Box for a multiplier": ("plain", put("fitted/multiplier", box)),
    "a Box for a stream": ("plain", put("fitted/stream", box)),
    "a Box for a solver": ("plain", put("parameters/solver", box)),
    "a Box for a seed": ("plain", put("parameters/random_state", box)),
    "a ball for a nominal": ("plain", put("parameters/nominal", ball)),
    "a Box for a cost": ("neural", put("parameters/cost_function", box)),
    "a Box for features": ("fourier", put("fitted/policy/features", box)),
    "a number for limits": ("plain", put("fitted/policy/decisions", 3)),
    "a class that is not registered": (
        "plain", put("parameters/solver", {"__class__": "Popen", "fields": {"args": "true"}})),
    "a class that is not registered in the fit": (
        "plain", put("fitted/policy", {"__class__": "Popen", "fields": {"args": "true"}})),
    "parameters of a network for a linear policy": (
        "plain", lambda h, a: put("fitted/parameters", {"__class__": "PolicyParameters", "fields": {
            "trained": {}, "auxiliary": {"__array__": at(h, "fitted/multiplier")["__array__"]},
            "units": {"__class__": "Units", "fields": dict.fromkeys(
                ("mean", "spread", "centre", "unit"), at(h, "fitted/multiplier"))},
        }})(h, a)),
    "no model at all": ("plain", put("fitted", {})),
    "a list for a fit": ("plain", put("fitted", [])),
    "an estimator of another kind": ("plain", put("estimator", "Popen")),
    "an estimator that is no text": ("plain", put("estimator", ["RobustNewsvendor"])),
    # counts
    **{f"{value!r} {name}": ("plain", put(f"fitted/{name}", value))
       for name in ("columns", "outcomes") for value in (-1, 0, True, "3", 1.5, 10**9, None)},
    "columns by the million": ("plain", put("fitted/columns", 999_999)),
    "outcomes by the million": ("plain", put("fitted/outcomes", 999_999)),
    **{f"{value!r} steps": ("plain", put("fitted/n_steps", value))
       for value in (-5, "many", 1.5, None, infinite)},
    "a certificate of NaN": ("plain", put("fitted/certificate/upper", nan)),
    "a certificate of text": ("plain", put("fitted/certificate/upper", "small")),
    "a multiplier of NaN": ("plain", in_part("fitted/multiplier", lambda a: a * np.nan)),
    "a negative multiplier": ("plain", in_part("fitted/multiplier", lambda a: -1.0 - a)),
    "no multiplier": ("plain", in_part("fitted/multiplier", lambda a: a[:0])),
    "a multiplier too many": ("two", in_part("fitted/multiplier", lambda a: np.resize(a, 3))),
    "perhaps converged": ("plain", put("fitted/converged", "perhaps")),
    "perhaps single": ("plain", put("fitted/single", "perhaps")),
    # names, balls, streams
    "fewer names than columns": ("plain", put("fitted/names", ["a", "b"])),
    "names that are no text": ("plain", put("fitted/names", [1, 2, 3])),
    "one text for all names": ("plain", put("fitted/names", "abc")),
    "a name twice": ("plain", put("fitted/names", ["a", "b", "a"])),
    "a radius to be chosen": ("plain", put("fitted/ball/radius", "auto")),
    "a radius to be chosen by a stream": ("plain", put("fitted/asked_ball/radius", "auto")),
    "a negative radius": ("plain", put("fitted/ball/radius", -0.1)),
    "units for fewer columns": ("plain", put("fitted/ball/scale", {"__tuple__": [1.0, 1.0]})),
    "frozen columns that are not there": ("plain", put("fitted/ball/frozen", {"__tuple__": [7]})),
    "a stream without a part": ("plain", lambda h, a: at(h, "fitted/stream").pop("theta")),
    "a stream of nothing": ("plain", put("fitted/stream", {})),
    "no stream": ("plain", put("fitted/stream", None)),
    "a stream of fewer columns": (
        "plain", in_part("fitted/stream/columns", lambda a: a[:-1])),
    "a stream of plain columns": (
        "plain", in_part("fitted/stream/columns", lambda a: np.zeros((3, 12)))),
    "a stream with NaN": ("plain", in_part("fitted/stream/theta", lambda a: a * np.nan)),
    "a stream that decides NaN": ("plain", in_part("fitted/stream/average", lambda a: a * np.nan)),
    "a stream of a negative count": ("plain", in_part("fitted/stream/columns", set_entry("count", -9))),
    "a stream of negative time": ("plain", in_part("fitted/stream/clock", lambda a: -a)),
    "a stream of a network of another shape": (
        "neural", in_part("fitted/stream/leaf_0", lambda a: np.zeros(77))),
    "a stream of a network without a part": (
        "neural", lambda h, a: at(h, "fitted/stream").pop("units_mean")),
    # values beyond measure
    "values nested beyond measure": ("plain", put("fitted/names", deep(500))),
    "parameters nested beyond measure": ("plain", put("parameters/frozen", deep(500))),
    "features beyond measure": ("fourier", put("fitted/policy/features/n_features", 3 * 10**7)),
    "products of columns beyond measure": ("fourier", put("fitted/policy/features", {
        "__class__": "Polynomial", "fields": {"degree": 10**4}})),
    "powers of columns beyond measure": ("fourier", put("fitted/policy/features", {
        "__class__": "Polynomial", "fields": {"degree": 10**7, "interactions": False}})),
    # a prepared policy
    "a Box for a plan": ("prepared", put("plan", box)),
    "a plan of another table": ("prepared", put("plan/numbers", {"__tuple__": []})),
    "a plan with a column that is not there": ("prepared", put("plan/numbers/0/column", 7)),
    "a plan with a negative column": ("prepared", put("plan/numbers/0/column", -1)),
    "a plan that divides by zero": ("prepared", put("plan/numbers/0/scale", 0.0)),
    "a plan that fills with NaN": ("prepared", put("plan/numbers/0/fill", nan)),
    "a plan of a Box": ("prepared", put("plan/numbers", {"__tuple__": [box]})),
    "a plan with an unknown reading": ("prepared", put("plan/categories/0/reading", "horoscope")),
    "too few shares": ("prepared", put("plan/categories/0/shares", {"__tuple__": [0.5]})),
    "shares without numbers": ("prepared", put("plan/categories/0/shares", {"__tuple__": [[0], 0.5]})),
    "one number for all shares": ("prepared", put("plan/categories/0/shares", infinite)),
    "an option that cannot be": ("prepared", put("parameters/min_rows", "auto")),
    "negative columns of a table": ("prepared", put("columns", -2)),
    "names of a table too few": ("prepared", put("names", ["heat"])),
    "a Box for the model behind": ("prepared", put("model", box)),
    "no model behind": ("prepared", put("unfitted", {})),
}  # fmt: skip


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_is_refused_within_a_second(files, tmp_path, name):
    base, change = CRAFTED[name]
    path = tmp_path / "m.surefoot"
    path.write_bytes(files[base])
    load(path)
    edit(path, change)
    with np.errstate(all="ignore"):
        assert refused(load, path)


@pytest.mark.parametrize(
    "base", ["plain", "forecast", "frozen", "two", "fourier", "neural", "prepared"]
)
def test_a_file_written_again_by_hand_is_as_good(files, tmp_path, base):
    """So that it is the change that is refused above, and nothing else."""
    path = tmp_path / "m.surefoot"
    path.write_bytes(files[base])
    first = load(path)
    edit(path, lambda header, arrays: None)
    again = load(path)
    assert again.status_ == first.status_ if base != "prepared" else again.model_.status_
    if base not in ("plain", "prepared"):
        X, _ = wave(20, 1)
        np.testing.assert_array_equal(again.predict(X), first.predict(X))
