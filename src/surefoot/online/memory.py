"""What a stream may keep: columns, and contexts whose outcome is still to come."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.validation import check_integer


@dataclass(frozen=True)
class Memory:
    """Bounds on what is kept, whatever the length of the stream.

    Parameters
    ----------
    columns
        Most columns that keys and texts may make; a context beyond them is refused.
    pending
        Most decisions that may wait for their outcome; the oldest makes room for a new one.

    Examples
    --------
    >>> Memory(pending=100)
    Memory(columns=1000, pending=100)
    """

    columns: int = 1_000
    pending: int = 10_000

    def __post_init__(self) -> None:
        for name in ("columns", "pending"):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), at_least=1))


class Pending:
    """Contexts and decisions by id, until their outcome arrives."""

    def __init__(self, most: int, following: int = 0) -> None:
        self.most, self.following = most, following
        self.waiting: dict[int, tuple[dict[str, Any], list[float]]] = {}

    def keep(self, x: Mapping[str, Any], decision: list[float]) -> int:
        """Keep a copy of a context with its decision; return its id."""
        if len(self.waiting) >= self.most:
            del self.waiting[next(iter(self.waiting))]  # ids grow, so the first is the oldest
        number, self.following = self.following, self.following + 1
        self.waiting[number] = ({key: _plain(value) for key, value in x.items()}, decision)
        return number

    def find(self, number: Any) -> tuple[dict[str, Any], list[float]]:
        """Return what waits under an id, or say why nothing does."""
        if isinstance(number, bool) or not isinstance(number, int):
            raise InvalidTypeError(f"id must be one that decide_one handed back, got {number!r}.")
        if number in self.waiting:
            return self.waiting[number]
        if not 0 <= number < self.following:
            raise InvalidInputError(f"id must be one that decide_one handed back, got {number}.")
        raise InvalidInputError(
            f"id must wait for its outcome, got {number}, which was learned already or dropped: the "
            f"newest {self.most:,} decisions are kept, see Memory(pending=...)."
        )

    def drop(self, number: int) -> None:
        """Forget an id: its outcome has been learned."""
        del self.waiting[number]


def _plain(value: Any) -> Any:
    """Return a checked value as JSON can hold it: numbers of other kinds become floats."""
    return value if value is None or isinstance(value, str | int | float) else float(value)
