"""What trials amount to: verdicts follow from paired intervals."""

import dataclasses

import numpy as np
import pytest
from sklearn.base import clone

from surefoot import Folds
from surefoot.costs import MeanCVaR
from surefoot.report.facts import gather
from surefoot.report.judgement import LESS, MORE, OPEN, judge
from surefoot.report.page import page
from surefoot.report.words import above_bound, beside_others, costs_what, decides_what, how_judged


def with_costs(facts, **costs):
    """Return facts in which some methods cost something else."""
    methods = tuple(
        dataclasses.replace(method, costs=costs.get(method.name.replace("-", "_"), method.costs))
        for method in facts.trials.methods
    )
    return dataclasses.replace(facts, trials=dataclasses.replace(facts.trials, methods=methods))


def test_means_and_differences_are_those_of_the_trials(linear_facts):
    found = judge(linear_facts)
    by_label = {method.label: method.costs.mean() for method in linear_facts.trials.methods}
    for row in found.methods:
        assert row.cost.value == pytest.approx(by_label[row.label])
        assert row.cost.low < row.cost.value < row.cost.high
        assert row.difference.value == pytest.approx(by_label[row.label] - by_label["Surefoot"])
    assert [row.cost.value for row in found.methods] == pytest.approx(sorted(by_label.values()))


def test_verdicts_follow_from_intervals(linear_facts):
    ours = linear_facts.trials.ours.costs
    noise = np.random.default_rng(0).normal(size=len(ours))
    found = judge(
        with_costs(linear_facts, erm=ours + 1.0, forest=ours - 0.1 * ours.min(), saa=ours + noise)
    )
    verdicts = {row.label: row.verdict for row in found.methods}
    assert verdicts["linear policy"] == MORE
    assert verdicts["constant order"] == OPEN
    assert verdicts["Surefoot"] == ""
    assert found.ours.difference.value == 0.0


def test_something_cheaper_is_said_so(linear_facts):
    ours = linear_facts.trials.ours.costs
    found = judge(with_costs(linear_facts, forest=ours - 1.0))
    assert found.cheapest.verdict == LESS
    assert beside_others(found).startswith("The weighted forest was cheaper, by 1, beyond chance")


def test_the_saving_is_a_share_of_the_constant_order(linear_facts):
    ours = linear_facts.trials.ours.costs
    saving = judge(with_costs(linear_facts, saa=2.0 * ours)).saving
    assert saving.value == pytest.approx(0.5)
    assert np.isnan(saving.low)  # a width of zero would claim certainty


def test_few_rows_settle_nothing(linear, data):
    X, y = data.X[:12], data.y[:12]
    model = clone(linear).fit(X, y)
    facts = gather(model, X, y, time=np.arange(12.0))
    found = judge(facts)
    assert {row.verdict for row in found.methods} == {"", OPEN}
    assert "too little for an interval" in costs_what(facts, found)
    assert "nan" not in page(facts).partition("<h2>To repeat it")[0].lower()


def test_repeated_folds_count_every_row_once(linear, data):
    once = judge(gather(linear, data.X, data.y, splits=Folds(3, repeats=1)))
    often = judge(gather(linear, data.X, data.y, splits=Folds(3, repeats=3)))
    width = [found.ours.cost.high - found.ours.cost.low for found in (once, often)]
    assert width[1] > 0.8 * width[0]
    assert "On 60 rows" in costs_what(gather(linear, data.X, data.y, splits=Folds(2, 2)), often)


def test_of_costs_that_may_be_negative_no_share_is_saved(linear_facts):
    assert judge(dataclasses.replace(linear_facts, cost=MeanCVaR())).saving is None


def test_enough_is_counted_and_planned(linear_facts):
    found = judge(linear_facts)
    assert found.planned == pytest.approx(1.0 / 1.2)
    assert 0.5 < found.enough <= 1.0


def test_a_cost_above_its_bound_is_said_and_explained(linear_facts):
    high = dataclasses.replace(linear_facts.promise, bound=1e9)
    low = dataclasses.replace(linear_facts.promise, bound=1e-9)
    found = judge(linear_facts)
    assert above_bound(dataclasses.replace(linear_facts, promise=high), found) is None
    told = above_bound(dataclasses.replace(linear_facts, promise=low), found)
    assert "lies above the bound of 1e-09" in told
    assert linear_facts.promise.why_above in told


def test_without_a_bound_nothing_lies_above_it(linear_facts):
    silent = dataclasses.replace(linear_facts.promise, bound=None)
    assert above_bound(dataclasses.replace(linear_facts, promise=silent), judge(linear_facts)) is None


def test_sentences_are_in_units_and_in_the_words_of_the_trade(linear_facts, evil_facts):
    told = decides_what(linear_facts)
    assert "A unit short costs 1 (backorder), a unit left over 0.2 (holding)" in told
    assert "enough on 83 of 100 rows" in told
    assert decides_what(evil_facts).startswith("For each day the policy decides how much <img")
    assert "On 60 rows not seen before such a policy cost" in costs_what(
        linear_facts, judge(linear_facts)
    )
    assert "runs of neighbouring rows" in how_judged(evil_facts)
    assert "single rows" in how_judged(linear_facts)


def test_a_recipe_that_gave_no_answer_is_said_so(linear_facts):
    ours = dataclasses.replace(linear_facts.trials.ours, reason="ValueError: no")
    trials = dataclasses.replace(linear_facts.trials, methods=(ours, *linear_facts.trials.methods[1:]))
    facts = dataclasses.replace(linear_facts, trials=trials)
    assert judge(facts) is None
    assert "could not be measured: ValueError: no" in costs_what(facts, None)
