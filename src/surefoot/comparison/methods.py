"""The methods of a comparison: ours and the baselines by name, or any estimators of the user's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.baselines import ERM, SAA, Forest, Shapley
from surefoot.costs import ConvexPiecewiseCost, Cost, Newsvendor
from surefoot.estimators import RobustNewsvendor, RobustPolicy
from surefoot.estimators.decision_maker import DecisionMaker
from surefoot.estimators.preparation import PreparedPolicy, Table
from surefoot.exceptions import InvalidInputError, InvalidTypeError

# Shapley looks at all pairs of contexts: 500 rows took 3.5 s, 1,000 rows 12 s, for each split.
SHAPLEY_ROWS = 600
OURS, CONSTANT = "surefoot", "saa"


@dataclass(frozen=True, eq=False)
class Method:
    """A named way to decide.

    Attributes
    ----------
    name
        What it is called in the table.
    estimator
        Unfitted, with ``fit(X, y)`` and ``predict(X)``.
    most_rows
        More training rows than this would take too long, and a sample of them is learned from; None is
        no limit.
    """

    name: str
    estimator: Any
    most_rows: int | None = None


def _ours(cost: Cost, seed: int) -> Any:
    if type(cost) is Newsvendor and cost.smoothing == 0.0:
        return RobustNewsvendor(cost.backorder, cost.holding, random_state=seed)
    # A forecast is of the outcome, which is what such decisions are about.
    nominal = "auto" if isinstance(cost, ConvexPiecewiseCost) else None
    return RobustPolicy(cost, nominal=nominal, random_state=seed)


_Make = Callable[[Any, int], Any]
_MAKERS: dict[str, _Make] = {
    OURS: _ours,
    "erm": lambda cost, seed: ERM(cost_function=cost),
    "erm-l1": lambda cost, seed: ERM(cost_function=cost, l1="auto", random_state=seed),
    "forest": lambda cost, seed: Forest(cost_function=cost, random_state=seed),
    "shapley": lambda cost, seed: Shapley(cost_function=cost, random_state=seed),
    CONSTANT: lambda cost, seed: SAA(cost_function=cost),
}
# What takes any cost; the others are linear programs, or look for a kink.
ANY_COST = (OURS, CONSTANT)
NAMES = tuple(_MAKERS)


def chosen_methods(methods: Any, cost: Cost, table: Table | None, seed: int) -> tuple[Method, ...]:
    """Return the methods asked for: all by default, some by name, or the user's own estimators.

    Methods by name have their columns prepared. The user's own are taken as they are, unless the
    table has categories, dates or gaps that policies of ours cannot take.
    """
    kinked = isinstance(cost, ConvexPiecewiseCost)
    if methods is None:
        methods = NAMES if kinked else ANY_COST
    if isinstance(methods, Mapping):
        return tuple(_own(name, estimator, table) for name, estimator in _entries(methods))
    if isinstance(methods, str) or not isinstance(methods, Sequence):
        raise InvalidTypeError(
            f"methods must be None, a sequence of names or a dictionary of estimators, got {methods!r}."
        )
    methods_chosen = []
    for name in methods:
        if name not in NAMES:
            raise InvalidInputError(
                f"methods must be among {', '.join(NAMES)} or a dictionary, got {name!r}."
            )
        if not kinked and name not in ANY_COST:
            raise InvalidInputError(
                f"methods must be among {', '.join(ANY_COST)} for a {type(cost).__name__} cost, "
                f"which is not piecewise linear, got {name!r}."
            )
        most = SHAPLEY_ROWS if name == "shapley" else None
        methods_chosen.append(Method(name, PreparedPolicy(_MAKERS[name](cost, seed)), most))
    names = [method.name for method in methods_chosen]
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(f"methods must be one or more distinct names, got {list(methods)!r}.")
    return tuple(methods_chosen)


def _entries(methods: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    if not methods:
        raise InvalidInputError("methods must have an entry, got an empty dictionary.")
    for name, estimator in methods.items():
        if not isinstance(name, str) or not name:
            raise InvalidTypeError(f"methods must have names as keys, got {name!r}.")
        usable = hasattr(estimator, "fit") and hasattr(estimator, "predict")
        if isinstance(estimator, type) or not usable:
            raise InvalidTypeError(
                f"methods must hold unfitted estimators with fit and predict, got {estimator!r} "
                f"for {name!r}."
            )
    return list(methods.items())


def _own(name: str, estimator: Any, table: Table | None) -> Method:
    ours = isinstance(estimator, DecisionMaker) and not isinstance(estimator, PreparedPolicy)
    plain = table is None or table.plain
    return Method(name, PreparedPolicy(estimator) if ours and not plain else estimator)
