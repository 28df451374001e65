"""Ambiguity: which distributions a policy must withstand, and worst cases of affine ones."""

from surefoot.ambiguity.base import AmbiguitySet
from surefoot.ambiguity.contamination import Contamination
from surefoot.ambiguity.form import Adversary, AffineForm, AffineRows, Geometry
from surefoot.ambiguity.joint import JointForm
from surefoot.ambiguity.joint_slopes import JointSlopes
from surefoot.ambiguity.plan import JointPlan, Plan
from surefoot.ambiguity.transport import TransportForm
from surefoot.ambiguity.wasserstein import RADIUS_RULES, WassersteinBall, WassersteinForm
from surefoot.sets import Box

__all__ = [
    "RADIUS_RULES",
    "Adversary",
    "AffineForm",
    "AffineRows",
    "AmbiguitySet",
    "Box",
    "Contamination",
    "Geometry",
    "JointForm",
    "JointPlan",
    "JointSlopes",
    "Plan",
    "TransportForm",
    "WassersteinBall",
    "WassersteinForm",
]
