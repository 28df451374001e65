"""What a panel says of its series: each by name, the same words once, of many the first."""

from collections.abc import Sequence

from surefoot.exceptions import DataWarning, warn_user, with_places
from surefoot.panels.series import Key, Series

# Series that a warning names; the rest are counted.
NAMED_SERIES = 5


def shown(key: Key) -> str:
    """Return a key as messages have it.

    >>> shown(("north", "7"))
    'north / 7'
    """
    return " / ".join(key)


def in_frame(sentence: str, series: Series) -> str:
    """Return a sentence about rows of a series with the numbers that they have in the whole frame."""
    return with_places(sentence, lambda row: f"row {series.rows[row]}")


def pass_on(said: dict[tuple[type[Warning], str], list[Key]]) -> None:
    """Pass on what series warned of: the same words once, with the series; of many words, the first."""
    for (category, message), keys in list(said.items())[:NAMED_SERIES]:
        warn_user(f"{_listed(keys)}: {message}", category)
    rest = {key for keys in list(said.values())[NAMED_SERIES:] for key in keys}
    if rest:
        warn = "warns" if len(rest) == 1 else "warn"
        warn_user(f"{len(rest):,} more series {warn} of values of their own.", DataWarning)


def _listed(keys: Sequence[Key]) -> str:
    """Return which series are meant: by name, or by number and the first names."""
    if len(keys) == 1:
        return shown(keys[0])
    names = ", ".join(map(shown, keys[:NAMED_SERIES]))
    return f"{len(keys):,} series ({names}{', ...' if len(keys) > NAMED_SERIES else ''})"


def warn_of_missing(missing: dict[Key, str]) -> None:
    """Say which series have no decision, and why."""
    if not missing:
        return
    named = [f"{shown(key)}: {reason}" for key, reason in list(missing.items())[:NAMED_SERIES]]
    more = len(missing) - len(named)
    rest = f" And {more:,} more." if more > 0 else ""
    have = "has" if len(missing) == 1 else "have"
    warn_user(f"{len(missing):,} series {have} no decision: {' '.join(named)}{rest}", DataWarning)
