"""Surefoot: robust contextual decisions from small data.

Names are loaded when first used, so that ``import surefoot`` stays quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

from surefoot.version import __version__

if TYPE_CHECKING:
    from surefoot.ambiguity import Box, WassersteinBall
    from surefoot.estimators import RobustNewsvendor, RobustPolicy, load
    from surefoot.problem import Problem
    from surefoot.solvers import DASGD, ConvexProgram, Exact

_HOMES = {
    "Box": "surefoot.ambiguity",
    "ConvexProgram": "surefoot.solvers",
    "DASGD": "surefoot.solvers",
    "Exact": "surefoot.solvers",
    "Problem": "surefoot.problem",
    "RobustNewsvendor": "surefoot.estimators",
    "RobustPolicy": "surefoot.estimators",
    "WassersteinBall": "surefoot.ambiguity",
    "load": "surefoot.estimators",
}

__all__ = [
    "DASGD",
    "Box",
    "ConvexProgram",
    "Exact",
    "Problem",
    "RobustNewsvendor",
    "RobustPolicy",
    "WassersteinBall",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its home on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'surefoot' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List public names, loaded or not."""
    return sorted({*globals(), *__all__})
