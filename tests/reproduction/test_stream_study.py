"""The study: regret followed on streams, verdicts that can fail, tables that read back."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from reproduction import stream_study
from reproduction.stream_figures import stream_figures
from reproduction.stream_laws import draw_stream
from reproduction.stream_page import stream_page, write_stream_page
from reproduction.stream_results import (
    CurvePoint,
    RegretPoint,
    RestaurantResult,
    StreamFindings,
    StreamResult,
    mean_and_half,
    read_findings,
    write_settings,
    write_table,
)
from reproduction.stream_study import COST, Plan, followed_regret
from reproduction.stream_summary import (
    better_elsewhere,
    growths,
    method_summaries,
    stream_claims,
)
from surefoot.exceptions import InvalidInputError


class Still:
    """A policy that never learns: affine, with given parameters."""

    def __init__(self, theta, intercept):
        self.theta, self.intercept = theta, intercept

    def decide(self, X):
        return X @ self.theta + self.intercept

    def decide_and_learn(self, X, y):
        return self.decide(X)


def test_the_robust_optimum_has_no_robust_regret_and_the_oracle_no_plain_one():
    stream = draw_stream("stationary", 3_000, 4, "mixed", COST, 0)
    law = stream.before
    theta, intercept, _ = law.robust_best(0.1)
    times, plain, robust = followed_regret(Still(theta, intercept), stream, 0.1)
    assert times[-1] == 3_000
    assert abs(robust).max() < 1e-6
    assert plain[-1] > 1.0
    _, plain, robust = followed_regret(Still(law.theta, law.intercept + law.quantile), stream, 0.1)
    assert abs(plain).max() < 1e-6
    assert robust[-1] > 1.0


def test_a_policy_that_never_learns_has_linear_regret():
    stream = draw_stream("stationary", 3_000, 4, "mixed", COST, 0)
    theta = stream.before.theta + 0.5
    times, plain, robust = followed_regret(Still(theta, stream.before.intercept), stream, 0.1)
    assert robust / times == pytest.approx(robust[-1] / times[-1])
    expected = stream.before.expected_cost(theta, stream.before.intercept) - stream.before.oracle_cost
    assert plain[-1] / 3_000 == pytest.approx(expected, rel=0.1)


def made_findings(*, power=0.4, ours=100, theirs=900):
    """Tables as a study could have written them."""
    times = np.unique(np.logspace(0, 4, 41).astype(int))
    regret = [
        RegretPoint(radius, c, seed, int(t), 2.0 * t**power, None if radius == "falling" else t**power)
        for radius in ("fixed", "falling")
        for c in ("positive", "mixed")
        for seed in range(2)
        for t in times
    ]
    recoveries = {
        "online": 500, "online-restart": ours, "online-both": ours, "online-window": ours,
        "refit": theirs, "saa-window": None,
    }  # fmt: skip
    results = [
        StreamResult(stream, c, seed, m, 1_000, 350.0, 300.0, 80.0, 75.0,
                     back if stream == "abrupt" else None, 0.1)
        for stream in ("stationary", "abrupt", "gradual")
        for c in ("positive", "mixed")
        for seed in range(2)
        for m, back in recoveries.items()
    ]  # fmt: skip
    curves = [
        CurvePoint(stream, c, m, row, 0.4, 0.3)
        for stream in ("abrupt", "gradual") for c in ("positive", "mixed")
        for m in recoveries for row in (50, 150)
    ]  # fmt: skip
    restaurant = [
        RestaurantResult(p, m, 735, 7350.0, 0.2) for p in ("fish", "lamb") for m in recoveries
    ]
    settings = {"machine": "a machine", "date": "2026-01-01", "versions": "v", "first": 30}
    parts = (regret, results, curves, restaurant)
    return StreamFindings(*(tuple(part) for part in parts), settings)


def test_verdicts_follow_the_numbers():
    claims = stream_claims(made_findings())
    assert len(claims) == 5
    assert [claim.verdict for claim in claims] == ["holds"] * 5
    assert "exponent 0.400 ± " in claims[0].readings[0]
    assert "median 100 rows against 900 rows; sooner on 2 of 2 streams" in claims[2].readings[0]
    assert "without any handling: 500 rows" in claims[2].readings[0]
    fast = stream_claims(made_findings(power=0.56))
    assert [claim.verdict for claim in fast] == ["fails"] * 2 + ["holds"] * 3
    slow = stream_claims(made_findings(ours=900, theirs=900))
    assert [claim.verdict for claim in slow] == ["holds"] * 2 + ["fails"] * 3
    never = stream_claims(made_findings(ours=None))
    assert "median never against 900 rows; sooner on 0 of 2" in never[2].readings[0]
    assert stream_claims(made_findings(theirs=None))[2].holds


def test_one_kind_of_coefficients_is_enough_to_fail():
    found = made_findings()
    results = tuple(
        dataclasses.replace(one, recovery=9_999)
        if (one.coefficients, one.method, one.stream) == ("mixed", "online-restart", "abrupt")
        else one
        for one in found.results
    )
    claims = stream_claims(dataclasses.replace(found, results=results))
    assert [claim.holds for claim in claims] == [True, True, False, True, True]


def test_summaries_are_multiples_of_the_oracle():
    found = made_findings()
    one = method_summaries(found)[0]
    assert one.cost == pytest.approx(350 / 300)
    assert one.late == pytest.approx(80 / 75)
    assert one.regret == pytest.approx(50)
    assert one.per_second == pytest.approx(10_000)
    assert {growth.exponent.__round__(6) for growth in growths(found)} == {0.4}
    assert mean_and_half([2.0, 4.0]) == (3.0, pytest.approx(1.96))


def test_the_start_does_not_hide_growth_in_what_is_added():
    found = made_findings(power=0.8)
    lifted = tuple(
        dataclasses.replace(one, robust=None if one.robust is None else one.robust + 1e5)
        for one in found.regret
    )
    grown = growths(dataclasses.replace(found, regret=lifted))[0]
    assert grown.exponent < 0.01
    assert grown.added == pytest.approx(0.8, abs=0.01)


def test_where_others_do_better_is_said():
    assert better_elsewhere(made_findings()) == []
    sentences = better_elsewhere(made_findings(theirs=50))
    assert len(sentences) == 2
    assert sentences[0] == (
        "recovery after a jump, positive coefficients: “refit every day on all data” 50 rows, the best "
        "of ours, “online, restart on a change”, 100 rows"
    )
    found = made_findings()
    restaurant = tuple(
        dataclasses.replace(one, cost=735.0) if one.method == "refit" else one
        for one in found.restaurant
    )
    (sentence,) = better_elsewhere(dataclasses.replace(found, restaurant=restaurant))
    assert "restaurant, cost a day: “refit every day on all data” 2.0, the best of ours" in sentence


def test_tables_read_back_as_they_were_written(tmp_path):
    found = made_findings()
    for name in ("regret", "results", "curves", "restaurant"):
        write_table(tmp_path, name, getattr(found, name))
    write_settings(tmp_path, {"machine": "x", "old": 1})
    write_settings(tmp_path, found.settings)
    again = read_findings(tmp_path)
    assert again == dataclasses.replace(found, settings={"old": 1, **found.settings})
    (tmp_path / "regret.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInputError, match="regret.csv must have the columns radius, "):
        read_findings(tmp_path)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="must be a folder with results of a study"):
        read_findings(tmp_path)


def test_the_page_shows_what_the_tables_say(tmp_path):
    pytest.importorskip("matplotlib")
    found = made_findings(power=0.6)
    figures = stream_figures(found)
    assert [figure.name for figure in figures] == ["regret", "costs", "restaurant"]
    page = stream_page(found, figures, "images/streams")
    assert "| **fails** | On stationary streams the regret of the robust objective" in page
    assert "| robust objective, fixed radius | positive | 0.600 ± 0.000 | 0.600 | 251 | 2 |" in page
    assert "| online | **1.167** (1.067) |" in page
    assert "| online | 350 (50) |" in page
    assert "| online, window | 100 rows (2 of 2) | 100 rows (2 of 2) | 10,000 |" in page
    assert "| SAA on a window | never (0 of 2) | never (0 of 2) | 10,000 |" in page
    assert "| online | 10.0 | 10.0 | **20.0** |" in page
    with pytest.raises(InvalidInputError, match="--docs must be an existing folder"):
        write_stream_page(found, figures, tmp_path / "none")
    assert write_stream_page(found, figures, tmp_path).read_text() == page
    assert (tmp_path / "images" / "streams" / "costs.png").read_bytes().startswith(b"\x89PNG")


def test_a_part_alone_makes_a_page_of_its_own():
    pytest.importorskip("matplotlib")
    found = StreamFindings(restaurant=made_findings().restaurant)
    page = stream_page(found, stream_figures(found), "images")
    assert "## The restaurant" in page
    assert "## Regret" not in page
    alone = tuple(one for one in found.restaurant if one.method == "online")
    assert stream_figures(StreamFindings(restaurant=alone)) == []  # nothing to measure it by


def test_a_small_study_runs_every_method():
    plan = Plan(3, 300, 2, 300, 1, 150, ("lamb",))
    told = []
    results, curves = stream_study.run_streams(plan, told.append)
    methods = {one.method for one in results}
    assert {"online", "online-restart", "online-window", "refit", "saa-window"} <= methods
    assert len(results) == 3 * 2 * len(methods)
    assert len(told) == 3 * 2 * len(methods)
    assert all(one.cost > one.oracle_cost for one in results)
    assert {one.recovery is None for one in results if one.stream != "abrupt"} == {True}
    assert {one.row for one in curves} == {50, 150, 250}
    points = stream_study.run_regret(plan, told.append)
    assert {(one.radius, one.robust is None) for one in points} == {("fixed", False), ("falling", True)}
    assert {one.seed for one in points} == {0, 1}


def test_a_small_restaurant(monkeypatch):
    names = ("online", "saa-window")
    methods = stream_study.restaurant_methods(30)
    monkeypatch.setattr(
        stream_study, "restaurant_methods", lambda first: {name: methods[name] for name in names}
    )
    plan = Plan(3, 300, 2, 600, 2, 100, ("lamb",))
    found = stream_study.run_restaurant(plan, lambda line: None)
    assert [(one.product, one.method, one.days) for one in found] == [
        ("lamb", "online", 735),
        ("lamb", "saa-window", 735),
    ]
    assert all(one.cost > 0 for one in found)


def test_no_panel_of_costs_has_more_than_seven_named_lines(monkeypatch):
    findings = read_findings(Path(__file__).parents[2] / "benchmarks" / "results" / "streams")
    drawn = {}
    monkeypatch.setattr(
        "reproduction.stream_figures.finish", lambda figure, name, _: drawn.update({name: figure})
    )
    stream_figures(findings)
    named = [axes.get_legend_handles_labels()[1] for axes in drawn["costs"].axes]
    assert [len(names) for names in named] == [7] * 4
