"""Surefoot: robust contextual decisions from small data.

Names are loaded when first used, so that ``import surefoot`` stays quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

from surefoot.version import __version__

if TYPE_CHECKING:
    from surefoot.ambiguity import Contamination, WassersteinBall
    from surefoot.comparison import Folds, RollingWindow, compare
    from surefoot.estimators import RobustNewsvendor, RobustPolicy, load
    from surefoot.estimators.preparation import PreparedPolicy
    from surefoot.io import register
    from surefoot.panels import PolicyTable, fit_many
    from surefoot.problem import Problem
    from surefoot.report import write_report
    from surefoot.sets import Box, Budget, Simplex
    from surefoot.solvers import (
        DASGD,
        ConvexProgram,
        CuttingPlanes,
        Exact,
        PrimalDual,
        SmoothedNewton,
        solve_many,
    )

_HOMES = {
    "Box": "surefoot.sets",
    "Budget": "surefoot.sets",
    "Contamination": "surefoot.ambiguity",
    "ConvexProgram": "surefoot.solvers",
    "CuttingPlanes": "surefoot.solvers",
    "DASGD": "surefoot.solvers",
    "Exact": "surefoot.solvers",
    "Folds": "surefoot.comparison",
    "PolicyTable": "surefoot.panels",
    "PreparedPolicy": "surefoot.estimators.preparation",
    "PrimalDual": "surefoot.solvers",
    "Problem": "surefoot.problem",
    "RobustNewsvendor": "surefoot.estimators",
    "RobustPolicy": "surefoot.estimators",
    "RollingWindow": "surefoot.comparison",
    "Simplex": "surefoot.sets",
    "SmoothedNewton": "surefoot.solvers",
    "WassersteinBall": "surefoot.ambiguity",
    "compare": "surefoot.comparison",
    "fit_many": "surefoot.panels",
    "load": "surefoot.estimators",
    "register": "surefoot.io",
    "solve_many": "surefoot.solvers",
    "write_report": "surefoot.report",
}

__all__ = [
    "DASGD",
    "Box",
    "Budget",
    "Contamination",
    "ConvexProgram",
    "CuttingPlanes",
    "Exact",
    "Folds",
    "PolicyTable",
    "PreparedPolicy",
    "PrimalDual",
    "Problem",
    "RobustNewsvendor",
    "RobustPolicy",
    "RollingWindow",
    "Simplex",
    "SmoothedNewton",
    "WassersteinBall",
    "__version__",
    "compare",
    "fit_many",
    "load",
    "register",
    "solve_many",
    "write_report",
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
