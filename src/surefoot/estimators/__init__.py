"""Estimators: robust policies with the scikit-learn interface."""

from surefoot.estimators.augmentation import Augmentation, ColumnShift
from surefoot.estimators.base import RobustEstimator
from surefoot.estimators.centring import Centre
from surefoot.estimators.learner import AdversarialSample
from surefoot.estimators.loading import load
from surefoot.estimators.radius_rules import RuledRadius, ruled_radius
from surefoot.estimators.robust_newsvendor import RobustNewsvendor
from surefoot.estimators.robust_policy import RobustPolicy
from surefoot.estimators.selection import RadiusPath

__all__ = [
    "AdversarialSample",
    "Augmentation",
    "Centre",
    "ColumnShift",
    "RadiusPath",
    "RobustEstimator",
    "RobustNewsvendor",
    "RobustPolicy",
    "RuledRadius",
    "load",
    "ruled_radius",
]
