"""The methods of a comparison: ours and the baselines by name, or any estimators of the user's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from surefoot.baselines import ERM, SAA, Forest, Shapley
from surefoot.costs import Newsvendor
from surefoot.estimators import RobustNewsvendor
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
        More training rows than this would take too long; None is no limit.
    """

    name: str
    estimator: Any
    most_rows: int | None = None

    def why_not(self, rows: int) -> str | None:
        """Return why so many training rows are refused, or None."""
        if self.most_rows is None or rows <= self.most_rows:
            return None
        return (
            f"not run beyond {self.most_rows} training rows, as it looks at all pairs ({rows} here): "
            f"pass methods={{{self.name!r}: Shapley(...), ...}} to run it all the same"
        )

    def fresh(self) -> Any:
        """Return a fresh, unfitted copy."""
        return clone(self.estimator)


_Make = Callable[[Newsvendor, int], Any]
_MAKERS: dict[str, _Make] = {
    OURS: lambda cost, seed: RobustNewsvendor(cost.backorder, cost.holding, random_state=seed),
    "erm": lambda cost, seed: ERM(cost.backorder, cost.holding),
    "erm-l1": lambda cost, seed: ERM(cost.backorder, cost.holding, l1="auto", random_state=seed),
    "forest": lambda cost, seed: Forest(cost.backorder, cost.holding, random_state=seed),
    "shapley": lambda cost, seed: Shapley(cost.backorder, cost.holding, random_state=seed),
    CONSTANT: lambda cost, seed: SAA(cost.backorder, cost.holding),
}
NAMES = tuple(_MAKERS)


def constant_order(cost: Newsvendor) -> Method:
    """Return the yardstick of the prescriptiveness score."""
    return Method(CONSTANT, SAA(cost.backorder, cost.holding))


def chosen_methods(
    methods: Any, cost: Newsvendor, table: Table | None, seed: int
) -> tuple[Method, ...]:
    """Return the methods asked for: all by default, some by name, or the user's own estimators.

    Methods by name have their columns prepared. The user's own are taken as they are, unless the
    table has categories, dates or gaps that policies of ours cannot take.
    """
    if methods is None:
        methods = NAMES
    if isinstance(methods, Mapping):
        return tuple(_own(name, estimator, table) for name, estimator in _entries(methods))
    if isinstance(methods, str) or not isinstance(methods, Sequence):
        raise InvalidTypeError(
            f"methods must be None, a sequence of names or a dictionary of estimators, got {methods!r}."
        )
    found = []
    for name in methods:
        if name not in NAMES:
            raise InvalidInputError(
                f"methods must be among {', '.join(NAMES)} or a dictionary, got {name!r}."
            )
        most = SHAPLEY_ROWS if name == "shapley" else None
        found.append(Method(name, PreparedPolicy(_MAKERS[name](cost, seed)), most))
    names = [method.name for method in found]
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(f"methods must be one or more distinct names, got {list(methods)!r}.")
    return tuple(found)


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
