"""Ambiguity: which distributions the policy must withstand."""

from surefoot.ambiguity.ball import WassersteinBall
from surefoot.sets import Box

__all__ = ["Box", "WassersteinBall"]
