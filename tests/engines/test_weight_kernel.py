import cvxpy as cp
import numpy as np
import pytest

from surefoot.engines.weight_kernel import exponentiated_gradient


@pytest.mark.parametrize("kinks", [(0.0,), (-0.5, 0.0)], ids=["two lines", "three"])
@pytest.mark.parametrize("strength", [0.5, 20.0])
def test_weights_minimise_cost_and_divergence(kinks, strength):
    rng = np.random.default_rng(0)
    y = rng.normal(size=60)
    D = y[:, None] + rng.normal(size=(60, 4)) * [0.5, 0.7, 1.0, 2.0] + [0.3, -0.2, 0.1, 0.0]
    slopes = np.array([-1.0, 0.2]) if len(kinks) == 1 else np.array([-2.0, -1.0, 0.2])
    shares, prior = np.full(60, 1 / 60), np.array([0.4, 0.2, 0.2, 0.2])
    found = exponentiated_gradient(D, y, shares, slopes, np.array(kinks), prior, strength, 3000)

    weights = cp.Variable(4)
    lines, height = [slopes[-1] * (D @ weights - y)], 0.0
    for k in range(len(kinks) - 1, -1, -1):
        height += (slopes[k + 1] - slopes[k]) * kinks[k]
        lines.append(slopes[k] * (D @ weights - y) + height)
    cost = strength * shares @ cp.maximum(*lines) + cp.sum(cp.kl_div(weights, prior))
    best = cp.Problem(cp.Minimize(cost), [cp.sum(weights) == 1]).solve()
    weights.value = found
    assert found.sum() == pytest.approx(1.0)
    assert float(cost.value) == pytest.approx(best, rel=2e-3, abs=2e-3)
