import numpy as np
import pytest

from surefoot.forecasts.robust_scales import robust_scale


def test_the_robust_scale_of_normal_numbers_is_their_standard_deviation():
    x = 3.0 * np.random.default_rng(0).normal(size=(20_000, 2))
    np.testing.assert_allclose(robust_scale(x), 3.0, rtol=0.03)


@pytest.mark.parametrize("n", [1, 2, 5, 11, 100, 101])
def test_the_robust_scale_is_that_of_quantiles(n):
    x = np.random.default_rng(n).normal(size=(n, 3)).round(1)
    q = np.quantile(x, [0.1, 0.25, 0.75, 0.9], axis=0)
    np.testing.assert_array_equal(
        robust_scale(x), np.maximum((q[2] - q[1]) / 1.349, (q[3] - q[0]) / 2.563)
    )


@pytest.mark.parametrize("share", [0.01, 0.05, 0.09])
def test_a_tenth_on_one_side_cannot_move_the_scale(share):
    x = np.random.default_rng(0).normal(size=(1000, 1))
    before = robust_scale(x)[0]
    x[: int(1000 * share)] = 1e9
    assert robust_scale(x)[0] < 2.5 * before
