"""Moments and samples of rows that come in batches."""

import numpy as np
import pytest

from surefoot.nominals import row_batches
from surefoot.nominals.row_batches import Moments
from tests.held_rows import HeldRows, demand


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_moments_of_parts_join_to_those_of_the_whole(parts):
    X = np.random.default_rng(0).standard_normal((1_000, 3)) * (1.0, 1e-6, 1e6) + (1e6, 0.0, 5.0)
    joined = None
    for part in np.array_split(X, parts):
        found = Moments.of(part)
        joined = found if joined is None else joined.joined(found)
    assert joined.rows == 1_000
    assert joined.mean == pytest.approx(X.mean(axis=0), rel=1e-12)
    assert joined.spread == pytest.approx(X.std(axis=0), rel=1e-9)
    assert (joined.least == X.min(axis=0)).all()
    assert (joined.most == X.max(axis=0)).all()


def test_a_column_of_one_value_has_no_spread_however_it_is_rounded():
    found = Moments.of(np.full((3, 1), 0.1)).joined(Moments.of(np.full((10, 1), 0.1)))
    assert found.spread.tolist() == [0.0]


def test_all_rows_are_kept_where_they_are_few():
    rows = HeldRows(*demand(50), size=7)
    assert (rows.survey.sample.contexts == rows.X).all()
    assert rows.passes == 1
    assert rows.survey is rows.survey


def test_kept_rows_come_from_all_batches_each_at_most_once(monkeypatch):
    monkeypatch.setattr(row_batches, "KEPT_NUMBERS", 5 * 600)
    X, _ = demand(6_000)
    rows = HeldRows(X, np.arange(6_000.0), size=100)
    kept = rows.survey.sample.outcomes[:, 0]
    assert len(np.unique(kept)) == len(kept) == 600
    counts = np.histogram(kept, bins=10, range=(0.0, 6_000.0))[0]
    assert counts.min() > 30
    again = HeldRows(X, np.arange(6_000.0), size=77).survey.sample
    assert (again.outcomes[:, 0] == kept).all()  # whatever the batches are
