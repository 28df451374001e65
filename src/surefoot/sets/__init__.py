"""Sets: where samples may be moved and where decisions may lie."""

from surefoot.sets.base import DecisionSet
from surefoot.sets.box import Box
from surefoot.sets.budget import Budget
from surefoot.sets.simplex import Simplex

__all__ = ["Box", "Budget", "DecisionSet", "Simplex"]
