"""Summaries against pandas and scipy; Table 1 against the paper's own figures."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reproduction.summary import PAPER_SECONDS, summarise, table1
from reproduction.timing import RowTimes


@pytest.fixture(scope="module")
def results(made_up):
    rng = np.random.default_rng(0)
    return [
        made_up(method, float(rng.lognormal()), n=n, repetition=k, gap=gap * float(rng.random()),
                fit_seconds=float(rng.random()), radius=float(rng.random()))
        for n in (10, 30)
        for method, gap in (("saa", 0.0), ("literal", 1.0))
        for k in range(6)
    ]  # fmt: skip


def test_means_deviations_and_bands_are_those_of_pandas(results):
    frame = pd.DataFrame([vars(one) if hasattr(one, "__dict__") else one for one in results])
    found = {(one.n, one.method): one for one in summarise(results)}
    groups = frame.groupby(["n", "method"])
    assert set(groups.groups) == set(found)
    for key, group in groups:
        one = found[key]
        assert one.runs == len(group) == 6
        assert one.mean == pytest.approx(group.cost.mean())
        assert one.deviation == pytest.approx(group.cost.std())
        assert one.variance == pytest.approx(group.cost.var())
        low, high = stats.t.interval(0.95, 5, group.cost.mean(), stats.sem(group.cost))
        assert (one.mean_low, one.mean_high) == pytest.approx((low, high))
        assert one.gap_mean == pytest.approx(group.gap.mean())
        assert one.gap_max == group.gap.max()
        assert one.fit_seconds == pytest.approx(group.fit_seconds.median())
        assert one.radius == pytest.approx(group.radius.median())


def test_the_interval_of_the_variance_covers_it_as_often_as_it_says(made_up):
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(400):
        rows = [made_up("saa", float(rng.normal(5.0, 2.0)), repetition=k) for k in range(8)]
        (one,) = summarise(rows)
        covered.append(one.variance_low <= 4.0 <= one.variance_high)
    assert 0.91 < np.mean(covered) < 0.985


def test_failures_are_counted_and_left_out_of_the_mean(made_up):
    rows = [
        made_up("saa", 1.0, repetition=0),
        made_up("saa", 3.0, repetition=1),
        made_up("saa", None, repetition=2, status="failed"),
        made_up("saa", None, repetition=3, status="refused"),
    ]
    (one,) = summarise(rows)
    assert (one.runs, one.failed, one.refused, one.mean) == (2, 1, 1, 2.0)


def test_one_run_has_a_mean_and_no_spread(made_up):
    (one,) = summarise([made_up("saa", 1.5)])
    assert one.mean == 1.5
    assert one.deviation is one.variance is one.mean_low is one.variance_high is None
    (none,) = summarise([made_up("saa", None, status="failed")])
    assert none.mean is None


def test_table_1_sets_our_times_beside_the_papers():
    row = RowTimes(n=100, s=100, steps=0.002, decisions=0.003, certified=0.007, shapley=0.1,
                   shapley_decisions=0.15)  # fmt: skip
    other = RowTimes(n=11, s=100, steps=1, decisions=1, certified=1, shapley=1, shapley_decisions=1)
    (found,) = table1([other, row])  # n = 11 is not in the paper
    assert found.dasgd_paper == 1.5113
    assert found.shapley_paper == 125.1831
    assert found.dasgd_steps == pytest.approx(0.005)
    assert found.dasgd_certified == pytest.approx(0.010)
    assert found.dasgd_speedup == pytest.approx(151.13)
    assert found.shapley_speedup == pytest.approx(125.1831 / 0.25)
    assert found.shapley_over_dasgd == pytest.approx(25.0)


def test_the_papers_table_is_whole():
    assert len(PAPER_SECONDS) == 14
    assert PAPER_SECONDS[1000, 500] == (1.8376, 3494.8938)
