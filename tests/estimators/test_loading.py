import dataclasses
import importlib
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import surefoot
from surefoot import DASGD, Box, Exact, RobustNewsvendor, RobustPolicy, WassersteinBall, load
from surefoot.costs import Newsvendor
from surefoot.estimators.guarantees import decides
from surefoot.exceptions import ModelFileError
from surefoot.io import codec
from surefoot.policies import Linear
from tests.io.forging import edit

COST = Newsvendor(1.0, 0.2)
FILES = Path(__file__).parent / "files"
FULL = RobustPolicy(
    COST,
    Linear(intercept=True),
    ball=WassersteinBall(
        0.1, order=2, outcome_cost=3.0, support=Box(-1.0, (2, 2, 2, 2, 3), outcome=(-9, 9)),
        frozen=("b", 4),
    ),
    solver=DASGD(gap_tol=0.1),
    random_state=3,
)  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.surefoot"


@pytest.fixture
def frame(data):
    return pd.DataFrame(data.X, columns=list("abcde"))


def edit_header(path, change):
    """Apply a change to the header and make every checksum match."""
    edit(path, lambda header, arrays: change(header))


def test_a_file_of_a_former_version_decides_as_it_did(path):
    """Written with a member for each array, and outcomes in the leaves of its forest."""
    model = load(FILES / "version_2.surefoot")
    asked = pd.DataFrame({"heat": [-2.0, 0.0, 1.0], "rain": [0.5, 0.0, -1.0]})
    decided = [16.25662183, 11.75524156, 12.93149024]
    np.testing.assert_allclose(model.predict(asked), decided, rtol=0, atol=1e-8)
    model.save(path)
    again = load(path)
    np.testing.assert_array_equal(again.predict(asked), model.predict(asked))
    assert again.model_.radius_ == model.model_.radius_ == pytest.approx(0.48250128214523924)
    again.model_.partial_fit(asked.to_numpy(), np.array([12.0, 11.0, 13.0]))


@pytest.mark.parametrize(
    "model",
    [RobustNewsvendor(), RobustNewsvendor(2.0, 0.5, radius=0.1, solver=Exact()), FULL],
    ids=["newsvendor", "exact", "policy in a box"],
)
def test_loaded_model_decides_and_learns_bit_for_bit_as_the_saved_one(path, frame, data, model):
    model = clone(model).fit(frame, data.y)
    model.save(path)
    again = load(path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.certificate_ == model.certificate_
    assert again.score(frame, data.y) == model.score(frame, data.y)
    before, after = (one.worst_case(frame, data.y) for one in (model, again))
    np.testing.assert_array_equal(before.contexts, after.contexts)
    for one in (model, again):
        one.partial_fit(frame[:25], data.y[:25])
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.certificate_ == model.certificate_
    again.fit(frame, data.y)
    assert bool(again.history_) != decides(again)  # an ensemble solves for nothing


def test_loaded_model_checks_columns_like_the_saved_one(path, frame, data):
    RobustNewsvendor(radius=0.1).fit(frame, data.y).save(path)
    again = load(path)
    assert again.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        again.predict(frame[["b", "a", "c", "d", "e"]])
    with pytest.raises(ValueError, match=r"yet now missing:\n- e"):
        again.predict(frame[["a", "b", "c", "d"]])


@pytest.mark.parametrize("products", [1, 2])
def test_no_silent_failure_an_intercept_dropped_on_load(path, data, products):
    y = data.y + 50.0
    outcomes = y if products == 1 else np.column_stack([y, y + 50.0])
    model = RobustNewsvendor(radius=0.1).fit(data.X, outcomes)
    model.save(path)
    again = load(path)
    assert (again.parameters_.intercept > 40.0).all()
    np.testing.assert_array_equal(again.parameters_.intercept, model.parameters_.intercept)
    np.testing.assert_array_equal(again.predict(0 * data.X[:1]), model.predict(0 * data.X[:1]))
    without = RobustNewsvendor(radius=0.1, intercept=False).fit(data.X, outcomes)
    without.save(path)
    np.testing.assert_array_equal(load(path).parameters_.intercept, np.zeros(products))


def test_saving_twice_overwrites(path, data):
    RobustNewsvendor(radius=0.1).fit(data.X, data.y).save(path)
    newer = RobustNewsvendor(radius=0.3).fit(data.X, data.y)
    newer.save(str(path))
    assert load(str(path)).radius_ == 0.3
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_model_that_cannot_be_saved_leaves_the_old_file(path, data):
    RobustNewsvendor(radius=0.1).fit(data.X, data.y).save(path)
    before = path.read_bytes()
    noisy = RobustNewsvendor(radius=0.2, solver=DASGD(callback=lambda progress: None))
    with pytest.raises(ModelFileError, match="^solver.callback must be made of"):
        noisy.fit(data.X, data.y).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_model_travels_to_another_process(path, data, tmp_path):
    model = RobustNewsvendor(radius=0.1).fit(data.X, data.y)
    model.save(path)
    np.save(tmp_path / "X.npy", data.X)
    code = (
        "import sys, numpy as np, surefoot; "
        "z = surefoot.load(sys.argv[1]).predict(np.load(sys.argv[2])); "
        "assert not {'pickle', 'joblib'} & set(vars(surefoot.io.archive) | vars(surefoot.io.codec)); "
        "np.save(sys.argv[3], z)"
    )
    arguments = [str(path), str(tmp_path / "X.npy"), str(tmp_path / "z.npy")]
    subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), model.predict(data.X))


def test_missing_file(path):
    with pytest.raises(ModelFileError, match=f"There is no model file at {path}."):
        load(path)


def test_unknown_estimator(path, data):
    RobustNewsvendor(radius=0.1).fit(data.X, data.y).save(path)
    edit_header(path, lambda header: header.update(estimator="Popen"))
    message = "must hold RobustPolicy or RobustNewsvendor, got 'Popen': upgrade Surefoot."
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_unknown_class_of_a_part(path, data):
    RobustNewsvendor(radius=0.1).fit(data.X, data.y).save(path)
    part = {"__class__": "Popen", "fields": {"args": ["true"]}}
    edit_header(path, lambda header: header["parameters"].update(solver=part))
    with pytest.raises(ModelFileError, match="must name registered classes, got 'Popen'"):
        load(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: h["parameters"].update(turbo=True), "unexpected keyword argument 'turbo'"),
        (lambda h: h.pop("parameters"), "'parameters'"),
        (lambda h: h.update(parameters=[1]), "'list' object has no attribute 'items'"),
    ],
    ids=["parameter", "no parameters", "a list"],
)
def test_parameters_of_another_version(path, data, change, words):
    RobustNewsvendor(radius=0.1).fit(data.X, data.y).save(path)
    edit_header(path, change)
    with pytest.raises(ModelFileError, match=f"does not fit this version of Surefoot: .*{words}"):
        load(path)


def test_fields_of_another_version(path, data):
    RobustNewsvendor(radius=0.1).fit(data.X, data.y).save(path)
    part = {"__class__": "DASGD", "fields": {"turbo": 1}}
    edit_header(path, lambda header: header["parameters"].update(solver=part))
    with pytest.raises(ModelFileError, match="not allowed: .*unexpected keyword argument 'turbo'"):
        load(path)


def test_load_is_a_public_name():
    assert surefoot.load is load


# ---------------------------------------------------------------- parts of one's own

OWN = """
    import dataclasses
    import numpy as np
    from surefoot import register
    from surefoot.costs import ConvexPiecewiseCost, Cost, Pieces
    from surefoot.policies import Policy


    @register
    @dataclasses.dataclass(frozen=True)
    class Perishing(ConvexPiecewiseCost):
        '''A unit short costs one, a unit left over the share that perishes.'''

        share: float

        def __post_init__(self):
            if not self.share > 0.0:
                raise ValueError("share must be > 0")

        def pieces(self, n_products):
            return (Pieces.kinked(self.share, 1.0, 0.0),) * n_products


    @register
    @dataclasses.dataclass(frozen=True)
    class Saturating(Policy):
        '''z = a + b tanh(w'x), one for each decision.'''

        steepness: float = 1.0

        def initial(self, rng, n_columns, n_decisions):
            w = 0.1 * rng.normal(size=(n_columns, n_decisions))
            return {"a": np.zeros(n_decisions), "b": np.ones(n_decisions), "w": w}

        def raw(self, trained, units, inputs, xp):
            seen = (inputs - units["mean"]) / units["spread"]
            bent = trained["a"] + trained["b"] * xp.tanh(self.steepness * (seen @ trained["w"]))
            return units["centre"] + units["unit"] * bent
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of the user's own, as it would lie beside a script."""
    monkeypatch.setattr(codec, "_CLASSES", dict(codec._CLASSES))
    (tmp_path / "own_parts.py").write_text(dedent(OWN))
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("own_parts")
    del sys.modules["own_parts"]


def decided_elsewhere(path, X, tmp_path, first):
    """What another process decides with a file, and again after it has learned."""
    np.savez(tmp_path / "data.npz", X=X)
    code = first + dedent(
        """
        import sys, numpy as np, surefoot
        X = np.load(sys.argv[2])["X"]
        model = surefoot.load(sys.argv[1])
        before = model.predict(X)
        model.partial_fit(X[:30], X[:30].sum(axis=1))
        np.savez(sys.argv[3], before=before, after=model.predict(X))
        """
    )
    arguments = [str(path), str(tmp_path / "data.npz"), str(tmp_path / "found.npz")]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
    )
    return done, tmp_path / "found.npz"


@pytest.mark.parametrize("part", ["cost", "policy"])
def test_parts_of_one_s_own_travel_to_another_process(own, path, data, tmp_path, part):
    if part == "cost":
        model = RobustPolicy(own.Perishing(0.3), nominal="auto")
    else:
        solver = DASGD(max_steps=500, gap_tol=1e3)
        policy = own.Saturating(0.5)
        model = RobustPolicy(COST, policy, ball=WassersteinBall(0.1), solver=solver)
    model.fit(data.X, data.y).save(path)
    again = load(path)
    assert again.get_params() == model.get_params()
    done, found = decided_elsewhere(path, data.X, tmp_path, "import own_parts\n")
    assert done.returncode == 0, done.stderr
    elsewhere = np.load(found)
    np.testing.assert_array_equal(elsewhere["before"], model.predict(data.X))
    model.partial_fit(data.X[:30], data.X[:30].sum(axis=1))
    np.testing.assert_array_equal(elsewhere["after"], model.predict(data.X))
    assert (elsewhere["before"] != elsewhere["after"]).any()


def test_without_its_module_a_file_says_which_class_is_missing(own, path, data, tmp_path):
    RobustPolicy(own.Perishing(0.3), ball=WassersteinBall(0.1)).fit(data.X, data.y).save(path)
    done, _ = decided_elsewhere(path, data.X, tmp_path, "")
    assert done.returncode != 0
    assert "must name registered classes, got 'Perishing': import the module" in done.stderr


def test_a_part_that_was_not_registered_is_not_saved(own, path, data):
    plain = dataclasses.make_dataclass("Plain", [], bases=(own.Perishing,), frozen=True)
    model = RobustPolicy(plain(0.3), ball=WassersteinBall(0.1)).fit(data.X, data.y)
    with pytest.raises(ModelFileError, match=r"^cost_function must be .*: see surefoot\.register\.$"):
        model.save(path)
    assert not path.exists()


def test_checks_of_one_s_own_constructor_hold_for_files(own, path, data):
    RobustPolicy(own.Perishing(0.3), ball=WassersteinBall(0.1)).fit(data.X, data.y).save(path)
    cost = {"__class__": "Perishing", "fields": {"share": -1.0}}
    edit_header(path, lambda header: header["parameters"].update(cost_function=cost))
    with pytest.raises(ModelFileError, match="not allowed: share must be > 0"):
        load(path)
