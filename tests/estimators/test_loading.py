import hashlib
import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import surefoot
from surefoot import DASGD, Box, Exact, RobustNewsvendor, RobustPolicy, WassersteinBall, load
from surefoot.costs import Newsvendor
from surefoot.exceptions import ModelFileError
from surefoot.policies import Linear

COST = Newsvendor(1.0, 0.2)
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
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(parts["model.json"])
    change(header)
    parts["model.json"] = json.dumps(header).encode()
    parts["sha256"] = hashlib.sha256(parts["model.json"]).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


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
    assert again.history_


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
    with pytest.raises(ModelFileError, match="^callback must be made of"):
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
        "assert 'pickle' not in surefoot.estimators.persistence.__dict__; "
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
    part = {"class": "Popen", "fields": {"args": ["true"]}}
    edit_header(path, lambda header: header["parameters"].update(solver=part))
    with pytest.raises(ModelFileError, match="must hold Surefoot's own classes, got .*Popen"):
        load(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: h["parameters"].update(turbo=True), "unexpected keyword argument 'turbo'"),
        (lambda h: h.pop("parameters"), "'parameters'"),
        (lambda h: h.update(parameters=[1]), "'list' object has no attribute 'items'"),
        (
            lambda h: h["parameters"].update(solver={"class": "DASGD", "fields": {"turbo": 1}}),
            "unexpected keyword argument 'turbo'",
        ),
    ],
    ids=["parameter", "no parameters", "a list", "field"],
)
def test_parameters_of_another_version(path, data, change, words):
    RobustNewsvendor(radius=0.1).fit(data.X, data.y).save(path)
    edit_header(path, change)
    with pytest.raises(ModelFileError, match=f"does not fit this version of Surefoot: .*{words}"):
        load(path)


def test_load_is_a_public_name():
    assert surefoot.load is load
