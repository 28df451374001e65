"""Estimators: the scikit-learn face of robust policies."""

from surefoot.ambiguity import Adversary
from surefoot.estimators.augmentation import Augmentation, ColumnShift
from surefoot.estimators.experiment_log import skops_types
from surefoot.estimators.loading import load
from surefoot.estimators.radius_rules import RuledRadius, ruled_radius
from surefoot.estimators.radius_selection import RadiusPath
from surefoot.estimators.robust_estimator import RobustEstimator
from surefoot.estimators.robust_newsvendor import RobustNewsvendor
from surefoot.estimators.robust_policy import RobustPolicy

__all__ = [
    "Adversary",
    "Augmentation",
    "ColumnShift",
    "RadiusPath",
    "RobustEstimator",
    "RobustNewsvendor",
    "RobustPolicy",
    "RuledRadius",
    "load",
    "ruled_radius",
    "skops_types",
]
