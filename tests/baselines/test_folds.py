import numpy as np
import pytest

from surefoot.baselines.folds import cross_validate


@pytest.mark.parametrize(("rows", "folds"), [(23, 5), (5, 5), (3, 3), (2, 2)])
def test_every_row_is_held_out_once_and_never_kept_with_its_fold(rows, folds):
    seen = []

    def costs_of(kept, held_out):
        assert sorted([*kept, *held_out]) == list(range(rows))
        assert len(kept) > 0
        seen.extend(held_out)
        return np.array([len(held_out), 1.0])

    weights = np.linspace(1.0, 2.0, rows)
    costs, masses = cross_validate(weights, 0, costs_of)
    assert sorted(seen) == list(range(rows))
    assert costs.shape == (folds, 2)
    assert masses.sum() == pytest.approx(weights.sum())


def test_the_seed_decides_the_folds():
    def first(kept, held_out):
        return held_out[:1].astype(float)

    one, again, other = (cross_validate(np.ones(50), seed, first)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
