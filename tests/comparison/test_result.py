"""The table, the frame and the picture."""

import importlib
import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from surefoot.comparison import Comparison, Folds, Trial
from surefoot.exceptions import InvalidInputError, InvalidTypeError, MissingExtraError


def comparison(costs, reference="ours", yardstick=2.0, **options):
    """A comparison with given costs on each split; None is a failure."""
    trials = tuple(
        Trial(
            name,
            k,
            f"split {k}",
            30,
            10,
            30,
            10,
            cost,
            yardstick,
            0.5,
            "" if cost is not None else "Why: not.",
        )
        for k in range(len(next(iter(costs.values()))))
        for name, cost in ((name, series[k]) for name, series in costs.items())
    )
    given = {
        "methods": tuple(costs), "reference": reference, "trials": trials, "splits": Folds(4, 1),
        "rows_in_all": 40, "n_splits": 4, "confidence": 0.95, "status": "All 4 splits are done.",
    }  # fmt: skip
    return Comparison(**{**given, **options})


@pytest.fixture
def found():
    return comparison({
        "ours": [1.0, 1.2, 0.8, 1.0], "dear": [2.0, 2.1, 1.9, 2.0], "close": [1.0, 1.1, 0.9, 1.0],
        "broken": [None, None, None, None], "shaky": [1.5, None, 1.4, None],
    })  # fmt: skip


def test_samples_are_told():
    found = comparison({"ours": [1.0, 1.2], "slow": [2.0, 2.1]})
    assert found.sampled() == ""
    assert "sample" not in str(found)
    sizes = {"ours": (20, 5), "slow": (4, 5)}
    trials = tuple(
        replace(trial, learned=sizes[trial.method][0], judged=sizes[trial.method][1])
        for trial in found.trials
    )
    told = (
        "Of each split a sample: learned from 20 of 30 rows, judged on 5 of 10. "
        "slow learned from 4 of 30 rows."
    )
    assert replace(found, trials=trials).sampled() == told
    assert told in str(replace(found, trials=trials))


def test_a_row_by_hand(found):
    row = found.row("dear")
    assert row.cost == 2.0
    assert row.difference == pytest.approx(1.0)
    s = np.std([1.0, 0.9, 1.1, 1.0], ddof=1)
    reach = 3.182446 * s * math.sqrt(1 / 4 + 10 / 30)
    assert (row.low, row.high) == pytest.approx((1 - reach, 1 + reach), rel=1e-6)
    assert (row.wins, row.pairs, row.failures, row.score, row.seconds) == (0, 4, 0, 0.0, 0.5)
    assert found.row("close").wins == 1
    assert found.row("ours").score == 0.5


def test_pairs_are_splits_on_which_both_answered(found):
    row = found.row("shaky")
    assert (row.pairs, row.failures) == (2, 2)
    assert row.difference == pytest.approx((0.5 + 0.6) / 2)
    assert row.cost == pytest.approx(1.45)
    broken = found.row("broken")
    assert (broken.pairs, broken.failures) == (0, 4)
    assert all(math.isnan(v) for v in (broken.cost, broken.difference, broken.low, broken.score))


def test_nothing_is_scored_against_a_free_constant():
    assert math.isnan(comparison({"ours": [0.0] * 4}, yardstick=0.0).row("ours").score)


def test_the_table_has_the_cheapest_first_and_says_why_there_is_no_answer(found):
    lines = str(found).splitlines()
    order = [line.split()[0] for line in lines[4:9]]
    assert order == ["ours", "close", "shaky", "dear", "broken"]
    assert lines[0] == "4-fold cross-validation"
    assert "95 % interval" in lines[3]
    assert "4 of 4 splits, first split 0: Why: not." in str(found)
    assert repr(found) == str(found)
    assert max(map(len, lines)) <= 110


@pytest.mark.parametrize(
    ("cost", "shown"), [(12345.6, "12346"), (75.8, "75.80"), (0.0321, "0.03210"), (0.0, "0")]
)
def test_costs_show_four_digits(cost, shown):
    assert str(comparison({"ours": [cost] * 4})).splitlines()[4].split()[1] == shown


def test_the_frame_has_the_rows(found):
    frame = found.to_frame()
    assert list(frame.index) == ["ours", "dear", "close", "broken", "shaky"]
    assert frame.loc["dear", "difference"] == found.row("dear").difference


def test_the_picture_goes_to_a_file_or_onto_axes(found, tmp_path):
    for suffix in ("png", "svg"):
        path = tmp_path / f"c.{suffix}"
        found.picture(path)
        assert path.stat().st_size > 5_000
    axes = Figure().subplots()
    found.picture(axes)
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == ["dear  (2)", "shaky  (1.45)", "close  (1)", "ours  (1)"]
    assert "beyond that of ours" in axes.get_xlabel()


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [("c.gif", InvalidInputError, "must end in"), ("nowhere/c.png", InvalidInputError, "existing folder"),
     (3, InvalidTypeError, "path or to axes")],
)  # fmt: skip
def test_pictures_that_cannot_be_are_refused(found, target, error, message):
    with pytest.raises(error, match=message):
        found.picture(target)


def test_unknown_methods_are_refused(found):
    with pytest.raises(InvalidInputError, match="method must be one of ours, dear"):
        found.row("theirs")


@pytest.mark.parametrize(("package", "call"), [("matplotlib", lambda f: f.picture("c.png")),
                                               ("pandas", lambda f: f.to_frame())])  # fmt: skip
def test_without_an_optional_package_the_message_says_what_to_install(
    found, monkeypatch, package, call
):
    original = importlib.import_module

    def missing(name, *rest):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match="pip install"):
        call(found)
