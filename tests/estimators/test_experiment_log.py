"""MLflow keeps our models, and its autologging records them instead of what is inside."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import surefoot
from surefoot import PreparedPolicy, RobustNewsvendor
from surefoot.baselines import Forest
from surefoot.datasets import synthetic
from surefoot.estimators import skops_types
from surefoot.exceptions import InvalidInputError, MissingExtraError, SurefootWarning

DATA = synthetic(n=40, s=3, seed=0)
LINEAR = RobustNewsvendor(1.0, 0.2, radius=0.1)

pytestmark = [  # warnings are those of MLflow and of what it imports
    pytest.mark.nightly, pytest.mark.filterwarnings("default"),
]  # fmt: skip


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """MLflow with a place of its own, its autologging switched off afterwards."""
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_PYTHON_REFRESH", "quiet")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    yield mlflow
    mlflow.sklearn.autolog(disable=True)
    while mlflow.active_run():
        mlflow.end_run()


def runs(mlflow):
    return mlflow.search_runs(output_format="list")


def test_names_of_classes_for_skops():
    skops = pytest.importorskip("skops.io")
    model = clone(LINEAR).fit(DATA.X, DATA.y)
    names = skops_types(model)
    assert "surefoot.estimators.robust_newsvendor.RobustNewsvendor" in names
    assert all(name.startswith("surefoot.") for name in names)
    again = skops.loads(skops.dumps(model), trusted=names)
    np.testing.assert_array_equal(again.predict(DATA.X), model.predict(DATA.X))


def test_skops_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(MissingExtraError, match="skops_types needs skops: pip install skops"):
        skops_types(LINEAR)


def test_a_model_comes_back_from_mlflow(mlflow):
    model = PreparedPolicy(RobustNewsvendor(1.0, 0.2)).fit(DATA.X, DATA.y)
    with mlflow.start_run():
        kept = mlflow.sklearn.log_model(
            model, name="model", skops_trusted_types=skops_types(model), pip_requirements=[]
        )
    again = mlflow.sklearn.load_model(kept.model_uri)
    np.testing.assert_array_equal(again.predict(DATA.X), model.predict(DATA.X))


@pytest.mark.parametrize(
    "model",
    [RobustNewsvendor(1.0, 0.2), PreparedPolicy(LINEAR), Forest(n_trees=5)],
    ids=["ensemble", "prepared", "baseline"],
)
def test_autologging_records_the_model_and_nothing_inside(mlflow, model):
    mlflow.sklearn.autolog(log_models=False)
    clone(model).fit(DATA.X, DATA.y)
    (run,) = runs(mlflow)
    assert run.info.status == "FINISHED"
    assert run.data.tags["estimator_name"] == type(model).__name__
    assert run.data.params["random_state" if hasattr(model, "random_state") else "model__radius"]
    assert "bootstrap" not in run.data.params  # of a forest of scikit-learn


def test_autologging_keeps_bounds_and_parts(mlflow):
    mlflow.sklearn.autolog(log_models=False)
    with mlflow.start_run() as own:
        model = clone(LINEAR).fit(DATA.X, DATA.y)
        assert mlflow.active_run().info.run_id == own.info.run_id
    (run,) = runs(mlflow)
    assert run.data.metrics["radius"] == 0.1
    assert run.data.metrics["certificate_upper"] == pytest.approx(model.certificate_.upper)


def test_autologging_keeps_the_model(mlflow, monkeypatch):
    kept = []
    monkeypatch.setattr(mlflow.sklearn, "log_model", lambda model, **told: kept.append((model, told)))
    mlflow.sklearn.autolog()
    model = clone(LINEAR).fit(DATA.X, DATA.y)
    assert kept == [(model, {"name": "model", "skops_trusted_types": skops_types(model)})]


def test_a_model_that_cannot_be_kept_is_fitted_all_the_same(mlflow):
    mlflow.sklearn.autolog()
    with pytest.warns(SurefootWarning, match="did not record the fit: .*sklearn.tree._tree.Tree"):
        model = Forest(n_trees=5).fit(DATA.X, DATA.y)  # skops asks for trust in trees of scikit-learn
    assert model.predict(DATA.X).shape == (40,)
    (run,) = runs(mlflow)
    assert run.info.status == "FINISHED"


def test_a_store_that_fails_does_not_fail_the_fit(mlflow, monkeypatch):
    def broken(*args, **kwargs):
        raise mlflow.MlflowException("the store is gone")

    mlflow.sklearn.autolog()
    monkeypatch.setattr(mlflow, "start_run", broken)
    with pytest.warns(SurefootWarning, match="MLflow did not record the fit: the store is gone"):
        model = clone(LINEAR).fit(DATA.X, DATA.y)
    assert model.converged_
    monkeypatch.undo()
    monkeypatch.setattr(mlflow, "log_metrics", broken)
    with pytest.warns(SurefootWarning, match="MLflow did not record the fit: the store is gone"):
        clone(LINEAR).fit(DATA.X, DATA.y)
    assert mlflow.active_run() is None


def test_a_fit_that_fails_is_a_run_that_failed(mlflow):
    mlflow.sklearn.autolog(log_models=False)
    with pytest.raises(InvalidInputError, match="radius must be"):
        RobustNewsvendor(1.0, 0.2, radius=-1.0).fit(DATA.X, DATA.y)
    (run,) = runs(mlflow)
    assert run.info.status == "FAILED"
    clone(LINEAR).fit(DATA.X, DATA.y)
    assert len(runs(mlflow)) == 2


def test_a_grid_search_is_recorded_by_mlflow_and_not_by_each_fold(mlflow):
    mlflow.sklearn.autolog(log_models=False)
    GridSearchCV(LINEAR, {"radius": [0.1, 0.2]}, cv=2).fit(DATA.X, DATA.y)
    parents = [run for run in runs(mlflow) if "mlflow.parentRunId" not in run.data.tags]
    assert [run.data.tags["estimator_name"] for run in parents] == ["GridSearchCV"]
    assert len(runs(mlflow)) <= 3  # the search, and one for each radius


def test_the_page_on_habits_runs(mlflow, capsys):
    page = Path(__file__).parents[2] / "docs" / "howto" / "scikit-learn.md"
    blocks = re.findall(r"^```(py|python)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    (kept,) = [code for mark, code in blocks if mark == "py"]  # other tests run the rest
    namespace = {}
    for code in (blocks[0][1], kept):
        exec(code, namespace)
    assert capsys.readouterr().out.splitlines()[-2:] == ["True", "0.2"]


def test_nothing_is_recorded_and_nothing_imported_without_autologging(mlflow):
    clone(LINEAR).fit(DATA.X, DATA.y)
    assert runs(mlflow) == []
    code = "import sys, surefoot.estimators; assert 'mlflow' not in sys.modules"
    env = {**os.environ, "PYTHONPATH": str(Path(surefoot.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
