"""Newsvendor problems on given rows, random rows, and laws that are tried the same way each time."""

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from surefoot.ambiguity import WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import Problem, affine_forms

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**32)
prices = st.integers(1, 9)


def describe(X, y, weights=None, *, b=1.0, h=0.2, policy=None, radius=0.3, **options):
    """A problem on rows; options are those of its ball."""
    return Problem(
        Newsvendor(b, h),
        policy or Linear(),
        Empirical(X, y, weights),
        WassersteinBall(radius, **options),
    )


def affine(X, y, weights=None, **options):
    """The form of such a problem, in the user's own units."""
    (form,) = affine_forms(describe(X, y, weights, **options))
    return form.in_plain_units()


def random_data(seed, rows=30, columns=3):
    """Contexts in many units, outcomes and whole weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(
        loc=rng.normal(size=columns), scale=rng.uniform(0.1, 10, columns), size=(rows, columns)
    )
    return X, X @ rng.normal(size=columns) + rng.normal(size=rows), rng.integers(1, 5, rows)
