import itertools

import numpy as np
import pandas as pd
import pytest

from surefoot import RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor, Quadratic
from surefoot.datasets import synthetic
from surefoot.diagnostics import radius_report
from surefoot.estimators.radius_rules import ruled_radius
from surefoot.exceptions import InvalidInputError, InvalidTypeError, UnsupportedProblemError
from surefoot.nominals import Empirical


@pytest.fixture(scope="module")
def data():
    return synthetic(n=150, s=4, seed=1, test=1)


@pytest.fixture(scope="module")
def report(data):
    return radius_report(data.X, data.y, RobustNewsvendor(1.0, 0.2), radii=(0.05,))


def test_every_rule_stands_beside_rho_max(report):
    assert {row.rule for row in report.rows} == {
        "plain",
        "auto",
        "profile",
        "paper",
        "rho_max",
        "given",
    }
    radii = [row.radius for row in report.rows]
    assert radii == sorted(radii)
    assert report.rows[0].rule == "plain"
    at = {row.rule: row for row in report.rows}
    assert at["rho_max"].radius == report.collapse_radius
    assert at["rho_max"].share_of_max == 1.0
    assert at["given"].radius == 0.05


def test_what_a_radius_does_to_the_policy(report):
    rows = {row.rule: row for row in report.rows}
    assert rows["plain"].norm_share == 1.0
    assert rows["plain"].constant_share == 0.0
    assert rows["plain"].worst_case == pytest.approx(rows["plain"].nominal_cost)
    assert rows["rho_max"].norm_share == pytest.approx(0.0, abs=0.02)
    assert rows["paper"].constant_share == pytest.approx(1.0, abs=1e-9)
    worst = [row.worst_case for row in report.rows]
    assert all(b >= a * 0.99 for a, b in itertools.pairwise(worst))
    for row in report.rows:
        assert row.worst_case >= row.nominal_cost - 1e-9
        assert row.gap <= 0.01


def test_agrees_with_fits_and_rules(data, report):
    rows = {row.rule: row for row in report.rows}
    given = RobustNewsvendor(1.0, 0.2, radius=0.05).fit(data.X, data.y)
    assert rows["given"].worst_case == given.certificate_.upper
    assert rows["given"].nominal_cost == pytest.approx(given.cost(data.X, data.y))
    auto = RobustNewsvendor(1.0, 0.2, nominal=None).fit(data.X, data.y)
    assert rows["auto"].radius == auto.radius_
    problem = given.problem_.around(Empirical(data.X, data.y)).at_radius(0.0)
    assert rows["profile"].radius == ruled_radius("profile", problem).radius


def test_prints_a_table_and_the_statements(report):
    text = str(report)
    lines = text.splitlines()
    assert lines[0].split()[:2] == ["rule", "radius"]
    assert len(lines) == 1 + 6 + 1 + 6
    assert "the statement is false. But the ball moves contexts alone" in text
    assert "95%" in text


def test_as_a_frame(report):
    frame = report.to_pandas()
    assert list(frame["rule"]) == [row.rule for row in report.rows]
    assert frame.loc[frame["rule"] == "given", "radius"].item() == 0.05


def test_frames_with_frozen_columns_by_name(data):
    frame = pd.DataFrame(data.X, columns=list("abcd"))
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall("auto", order=1, frozen=("a",)))
    report = radius_report(frame, data.y, model)
    assert np.isfinite(report.collapse_radius)


def test_no_signal_at_all():
    X, y = np.ones((10, 1)), np.arange(10.0)
    report = radius_report(X, y)
    assert report.collapse_radius == 0.0
    assert all(row.radius == 0.0 for row in report.rows)
    assert "nan" in str(report)


def test_refusals(data):
    with pytest.raises(InvalidTypeError, match="model must be an estimator"):
        radius_report(data.X, data.y, 3)
    with pytest.raises(InvalidInputError, match=r"radii must be >= 0, got -1\.0\."):
        radius_report(data.X, data.y, radii=(-1.0,))
    with pytest.raises(UnsupportedProblemError, match="radius_report has no rho_max for this model"):
        radius_report(data.X, data.y, RobustPolicy(Quadratic()))


def test_frozen_columns_keep_the_policy_from_collapsing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, 1.0, 2.0] + 0.3 * rng.normal(size=80)
    free, held = (str(radius_report(X, y, RobustNewsvendor(frozen=f))) for f in ((), (2,)))
    assert "From here on the best policy is the constant order" in free
    assert "From here on the best policy is the constant order" not in held


@pytest.mark.parametrize("rows", [1])
def test_one_row_is_refused(rows):
    with pytest.raises(InvalidInputError, match="at least 2 rows"):
        radius_report(np.ones((rows, 2)), np.ones(rows))
