"""Estimators: robust policies with the scikit-learn interface."""

from surefoot.estimators.base import RobustEstimator
from surefoot.estimators.learner import AdversarialSample
from surefoot.estimators.loading import load
from surefoot.estimators.robust_newsvendor import RobustNewsvendor
from surefoot.estimators.robust_policy import RobustPolicy
from surefoot.estimators.selection import RadiusPath

__all__ = [
    "AdversarialSample",
    "RadiusPath",
    "RobustEstimator",
    "RobustNewsvendor",
    "RobustPolicy",
    "load",
]
