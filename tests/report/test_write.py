"""The file: from every door, whole or not at all."""

import numpy as np
import pandas as pd
import pytest

import surefoot
from surefoot import Folds, PreparedPolicy, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.report import write_report

QUICK = {"splits": Folds(2, repeats=1)}


def test_the_method_and_the_function_write_the_same_bytes(linear, data, tmp_path):
    one = linear.report(data.X, data.y, tmp_path / "one.html", **QUICK)
    two = surefoot.write_report(linear, data.X, data.y, str(tmp_path / "two.html"), **QUICK)
    assert one == tmp_path / "one.html"
    assert one.read_bytes() == two.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.html", "two.html"]


def test_every_estimator_has_the_method(data, tmp_path):
    frame = pd.DataFrame(data.X, columns=list("abcd"))
    policy = RobustPolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall(0.1, frozen=("a",)))
    for k, model in enumerate((policy, PreparedPolicy(RobustNewsvendor(radius=0.1, frozen=("b",))))):
        path = model.fit(frame, data.y).report(frame, data.y, tmp_path / f"{k}.html", **QUICK)
        assert "How much to order" in path.read_text()


def test_several_products_have_a_page(data, tmp_path):
    y = np.column_stack([data.y, 2.0 * data.y])
    model = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, y)
    text = model.report(data.X, y, tmp_path / "two.html", **QUICK).read_text()
    assert "product 1" in text


def test_an_older_file_is_replaced_and_kept_if_something_fails(linear, data, tmp_path):
    path = tmp_path / "r.html"
    path.write_text("old")
    with pytest.raises(InvalidInputError):
        linear.report(data.X, data.y[1:], path)
    assert path.read_text() == "old"
    linear.report(data.X, data.y, path, **QUICK)
    assert path.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("r.pdf", "^path must end in .html or .htm, got"),
        ("missing/r.html", "^path must lie in an existing folder, got"),
        ("folder.html", "^path must be a file, got the folder"),
    ],
)
def test_paths_that_cannot_be_are_refused_before_any_work(linear, data, tmp_path, path, message):
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(InvalidInputError, match=message):
        write_report(linear, data.X, data.y, tmp_path / path, on_progress=pytest.fail)


def test_a_folder_that_cannot_be_written_is_named(linear, data, monkeypatch, tmp_path):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    with pytest.raises(
        InvalidInputError, match="must be a file that can be written, got Permission denied"
    ):
        write_report(linear, data.X, data.y, tmp_path / "r.html", **QUICK)
    assert list(tmp_path.iterdir()) == []


def test_other_bad_arguments_are_refused(linear, data, tmp_path):
    with pytest.raises(InvalidTypeError, match="^path must be where the report goes, got None"):
        write_report(linear, data.X, data.y, None)
    with pytest.raises(InvalidTypeError, match="^outcome must be what the outcome is called, got ''"):
        write_report(linear, data.X, data.y, tmp_path / "r.html", outcome="")
    with pytest.raises(InvalidTypeError, match="^model must be a fitted"):
        write_report(None, data.X, data.y, tmp_path / "r.html")
