"""What a model cannot have if its columns are prepared."""

from collections.abc import Sequence
from typing import Any

from surefoot.ambiguity import AmbiguitySet
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals import Nominal


def refuse_own_geometry(given: dict[str, Any], ball: AmbiguitySet, *, freeze: bool) -> None:
    """Refuse what speaks of the columns of X one by one, and would meet prepared columns."""
    if ball.support is not None:
        raise InvalidInputError(
            "ball must have support=None in a PreparedPolicy, whose columns are not those of X, "
            f"got {ball.support!r}."
        )
    if isinstance(given.get("nominal"), Nominal):
        raise InvalidInputError(
            "nominal must be None in a PreparedPolicy, whose columns are not those of X, "
            f"got {given['nominal']!r}."
        )
    if freeze and getattr(given.get("policy"), "features", None) is not None:
        raise InvalidInputError(
            "freeze must be False beside a policy with a feature map, whose features mix columns, "
            "got True."
        )


def checked_categories(categories: Any) -> tuple[str | int, ...]:
    """Return the columns that a user called categories, or refuse what is no list of columns."""
    if isinstance(categories, str) or not isinstance(categories, Sequence):
        raise InvalidTypeError(
            f"categories must be a sequence of columns such as ('shop',), got {categories!r}."
        )
    return tuple(categories)
