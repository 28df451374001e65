"""Baselines: the policies that ours are compared with, as scikit-learn estimators with one face."""

from surefoot.baselines.base import Baseline
from surefoot.baselines.erm import ERM, StrengthPath
from surefoot.baselines.forest import Forest
from surefoot.baselines.saa import SAA
from surefoot.baselines.shapley import Shapley

__all__ = ["ERM", "SAA", "Baseline", "Forest", "Shapley", "StrengthPath"]
