"""How the columns of a table become the numbers that a policy sees: learned once, then fixed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from surefoot.costs.quantiles import weighted_quantile, weighted_quantiles
from surefoot.estimators.preparation.blocks import level_columns, number_columns
from surefoot.estimators.preparation.table import CATEGORY, DATE, NUMBER, Column, Table
from surefoot.exceptions import DataWarning, InvalidInputError, warn_user
from surefoot.io import register
from surefoot.nominals.empirical import CONSTANT_COLUMN, column_spread
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_choice, check_instance, check_integer, check_number

MISSING = "missing"
# What a category is read from: the value itself, or a part of a date.
VALUE, WEEKDAY, MONTH = "value", "weekday", "month"
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CALENDARS = {WEEKDAY: WEEKDAYS, MONTH: MONTHS}
# A category with more levels than this share of the rows names rows rather than describing them.
IDENTIFIER_SHARE = 0.5
IDENTIFIER_LEVELS = 10


@register
@dataclass(frozen=True)
class NumberPart:
    """A column of numbers: the median that fills gaps, the divisor, and whether gaps were seen."""

    column: int
    name: str
    fill: float
    scale: float
    gaps: bool

    def __post_init__(self) -> None:
        """Check the numbers, which may come from a file."""
        check_integer("column", self.column, at_least=0)
        check_number("fill", self.fill)
        check_number("scale", self.scale, above=0)


@register
@dataclass(frozen=True)
class CategoryPart:
    """A category, or the weekday or month of a date: its levels and the share of rows of each.

    Levels that were seen, but too seldom to learn from, are ``rare``: they count as unknown.
    """

    column: int
    name: str
    reading: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]
    rare: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check what may come from a file."""
        check_integer("column", self.column, at_least=0)
        check_choice("reading", self.reading, (VALUE, WEEKDAY, MONTH))
        levels, shares = self.levels, self.shares
        if not (isinstance(levels, tuple) and isinstance(shares, tuple)) or len(levels) != len(shares):
            raise InvalidInputError(f"shares must have a number for each level, got {shares!r}.")
        for share in shares:
            check_number("shares", share, at_least=0)

    @property
    def shown(self) -> tuple[str, ...]:
        """The levels that have a prepared column."""
        return self.levels[1:] if len(self.levels) == 2 else self.levels


@register
@dataclass(frozen=True)
class Plan:
    """What each column is, and what it becomes. It is made of plain data, so it can be saved.

    Attributes
    ----------
    kinds
        "number", "category" or "date", one for each column of X.
    numbers, categories
        The parts that became prepared columns, in that order, flags of gaps in between.
    constant
        Columns (or weekdays, months of dates) that were left out: fewer than two frequent levels.
    """

    kinds: tuple[str, ...]
    numbers: tuple[NumberPart, ...]
    categories: tuple[CategoryPart, ...]
    constant: tuple[CategoryPart, ...]

    def __post_init__(self) -> None:
        """Check that every part reads a column there is."""
        categories = (*self.categories, *self.constant)
        for number in self.numbers:
            check_instance("numbers", number, NumberPart, "NumberPart(...)")
        for category in categories:
            check_instance("categories", category, CategoryPart, "CategoryPart(...)")
        for kind in self.kinds:
            check_choice("kinds", kind, (NUMBER, CATEGORY, DATE))
        columns = [part.column for part in self.numbers] + [part.column for part in categories]
        if max(columns, default=0) >= len(self.kinds):
            raise InvalidInputError(f"column must be < {len(self.kinds)}, got {max(columns)}.")

    def __str__(self) -> str:
        """Return one line for each part."""
        lines = [
            f"{part.name}: a number, divided by {part.scale:.4g}; gaps become {part.fill:.4g}"
            + (" and are flagged" if part.gaps else "")
            for part in self.numbers
        ]
        lines += [
            f"{part.name}: a category of {', '.join(part.levels)}"
            + (f"; too rare: {', '.join(part.rare)}" if part.rare else "")
            for part in self.categories
        ]
        lines += [f"{part.name}: left out, as it hardly varied" for part in self.constant]
        return "\n".join(lines)

    @property
    def names(self) -> tuple[str, ...]:
        """One name per prepared column."""
        names = [part.name for part in self.numbers]
        names += [f"{part.name}={MISSING}" for part in self.numbers if part.gaps]
        names += [f"{part.name}={level}" for part in self.categories for level in part.shown]
        return tuple(names)

    @property
    def sources(self) -> IntArray:
        """For each prepared column, the position of the column of X that it came from."""
        sources = [part.column for part in self.numbers]
        sources += [part.column for part in self.numbers if part.gaps]
        sources += [part.column for part in self.categories for _ in part.shown]
        return np.array(sources, dtype=np.int64)

    @property
    def units(self) -> FloatArray:
        """For each prepared column, what its numbers were divided by; one for 0/1 columns."""
        units = np.ones(len(self.names))
        units[: len(self.numbers)] = [part.scale for part in self.numbers]
        return units

    @property
    def flags(self) -> tuple[int, ...]:
        """Positions of the prepared columns that hold 0 and 1."""
        return tuple(range(len(self.numbers), len(self.names)))

    def blocks(self) -> tuple["partial[FloatArray]", "partial[FloatArray]"]:
        """Return what makes prepared columns of numbers, and of codes of levels."""
        numbers = partial(
            number_columns,
            fills=tuple(part.fill for part in self.numbers),
            scales=tuple(part.scale for part in self.numbers),
            gaps=tuple(part.gaps for part in self.numbers),
        )
        return numbers, partial(level_columns, shares=tuple(part.shares for part in self.categories))

    def transform(self, matrix: FloatArray) -> FloatArray:
        """Return prepared columns of what ``encode`` returned."""
        if not self.names:
            return np.zeros((len(matrix), 1))  # nothing is known, so the policy is a constant
        numbers, levels = self.blocks()
        count = len(self.numbers)
        blocks = [numbers(matrix[:, :count])] if count else []
        blocks += [levels(matrix[:, count:])] if self.categories else []
        return np.hstack(blocks)

    def encode(self, table: Table) -> tuple[FloatArray, tuple[str, ...]]:
        """Return numbers (gaps as NaN) and codes of levels (-1: unknown), and what was surprising."""
        matrix = np.empty((len(table), len(self.numbers) + len(self.categories)))
        sentences = []
        for k, part in enumerate(self.numbers):
            column = table.columns[part.column]
            if column.kind != NUMBER and not column.gaps.all():
                raise InvalidInputError(
                    f"X must hold numbers in {part.name!r} as in fit, got a {column.kind}."
                )
            matrix[:, k] = column.values if column.kind == NUMBER else np.nan
            if np.isnan(matrix[:, k]).any() and not part.gaps:
                sentences.append(f"{part.name!r} has gaps (the median fills them)")
        for k, category in enumerate(self.categories, start=len(self.numbers)):
            labels = _labels(table.columns[category.column], category.reading)
            matrix[:, k], unknown = _codes(category, labels)
            sentences += _unknown_sentence(category, unknown)
        for category in self.constant:
            labels = _labels(table.columns[category.column], category.reading)
            sentences += _unknown_sentence(category, _codes(category, labels)[1])
        return matrix, tuple(sentences)


def learn_plan(
    table: Table,
    masses: FloatArray,
    categories: Sequence[Any] = (),
    *,
    scale: bool,
    min_rows: int,
    in_order: bool = False,
) -> Plan:
    """Return the plan for a table of training rows that count ``masses`` times each.

    ``in_order`` says that days to come follow those of the rows, to a policy that knows how late they
    were: until every month has been seen, a month is no more than a name for that, and the next one
    has none.

    >>> table = Table.of({"price": [1.0, 3.0], "shop": ["north", "south"], "country": ["DE", "DE"]})
    >>> print(learn_plan(table, np.ones(2), scale=False, min_rows=1))
    price: a number, divided by 1; gaps become 1
    shop: a category of north, south
    country: left out, as it hardly varied
    """
    forced = {column_position(table, entry, "categories") for entry in categories}
    kinds = tuple(CATEGORY if j in forced else column.kind for j, column in enumerate(table.columns))
    numbers: list[NumberPart] = []
    parts: list[CategoryPart] = []
    whole = _whole_parts(table, kinds, masses, scale)
    for j, (column, kind) in enumerate(zip(table.columns, kinds, strict=True)):
        if j in whole:
            numbers.append(whole[j])
            continue
        number = _number_part(j, column, masses, scale, min_rows) if kind == NUMBER else None
        if number is not None:
            numbers.append(number)
        else:
            readings = (WEEKDAY, MONTH) if kind == DATE else (VALUE,)
            read = [_category_part(j, column, reading, masses, min_rows) for reading in readings]
            parts += [part for part in read if not (in_order and _lacks_months(part))]
    varied = tuple(part for part in parts if len(part.levels) > 1)
    constant = tuple(part for part in parts if len(part.levels) < 2)
    return Plan(kinds, tuple(numbers), varied, constant)


def column_position(table: Table, entry: Any, option: str) -> int:
    """Return the position of a column given by name or position."""
    if isinstance(entry, str) and table.named and entry in table.names:
        return table.names.index(entry)
    whole = isinstance(entry, int | np.integer) and not isinstance(entry, bool)
    if whole and -len(table.columns) <= entry < len(table.columns):
        return int(entry) % len(table.columns)
    allowed = ", ".join(table.names) if table.named else f"positions below {len(table.columns)}"
    raise InvalidInputError(f"{option} must name columns of X ({allowed}), got {entry!r}.")


def identifiers(plan: Plan, rows: int) -> tuple[str, ...]:
    """Return the categories that have a level of their own for most rows."""
    limit = max(IDENTIFIER_LEVELS, IDENTIFIER_SHARE * rows)
    named = set(_rounded_away(plan))  # numbers, of which another sentence speaks
    parts = [part for part in plan.categories + plan.constant if part.name not in named]
    return tuple(part.name for part in parts if len(part.levels) + len(part.rare) > limit)


def _whole_parts(
    table: Table, kinds: tuple[str, ...], masses: FloatArray, scale: bool
) -> dict[int, NumberPart]:
    """Return the parts of all columns of numbers that vary and have no gaps, judged side by side."""
    numbers = [j for j, kind in enumerate(kinds) if kind == NUMBER]
    values = np.column_stack([table.columns[j].values for j in numbers] or [np.zeros((len(table), 0))])
    kept = np.flatnonzero(~np.isnan(values).any(axis=0))
    values, weights = values[:, kept], masses / masses.sum()
    spreads, fills = column_spread(values, weights), weighted_quantiles(values.T, weights, 0.5)
    parts = {}
    for k, spread, fill in zip(kept, spreads, fills, strict=True):
        if spread > 0.0:
            j, divisor = numbers[k], float(spread) if scale else 1.0
            parts[j] = NumberPart(j, table.columns[j].name, float(fill), divisor, gaps=False)
    return parts


def _rounded_away(plan: Plan) -> tuple[str, ...]:
    """Return numbers that do vary, but so little beside their size that they count as constant."""
    return tuple(
        part.name
        for part in plan.constant
        if plan.kinds[part.column] == NUMBER and len({*part.levels, *part.rare} - {MISSING}) > 1
    )


def _number_part(
    j: int, column: Column, masses: FloatArray, scale: bool, min_rows: int
) -> NumberPart | None:
    """Return the part, or None for a column that never varied."""
    gaps = column.gaps
    if gaps.all():
        return None
    values, weights = column.values[~gaps], masses[~gaps] / masses[~gaps].sum()
    spread = float(column_spread(values[:, None], weights)[0])
    # A flag is worth its column if both sides of it are seen often enough.
    flagged = bool(gaps.any() and min(masses[gaps].sum(), masses[~gaps].sum()) >= min_rows)
    if spread == 0.0 and not flagged:
        return None
    divisor = spread if scale and spread > 0.0 else 1.0
    return NumberPart(j, column.name, weighted_quantile(values, weights, 0.5), divisor, flagged)


def _category_part(
    j: int, column: Column, reading: str, masses: FloatArray, min_rows: int
) -> CategoryPart:
    labels = _labels(column, reading)
    counts: dict[str, float] = {}
    for label, mass in zip(labels, masses, strict=True):
        counts[label] = counts.get(label, 0.0) + float(mass)
    frequent = [level for level, count in counts.items() if count >= min_rows]
    levels = tuple(sorted(frequent, key=lambda level: _level_key(reading, level)))
    total = sum(counts[level] for level in levels)
    name = column.name if reading == VALUE else f"{column.name} {reading}"
    rare = tuple(sorted(set(counts) - set(levels)))
    return CategoryPart(j, name, reading, levels, tuple(counts[k] / total for k in levels), rare)


def _lacks_months(part: CategoryPart) -> bool:
    return part.reading == MONTH and not set(MONTHS) <= {*part.levels, *part.rare}


def _level_key(reading: str, level: str) -> tuple[int, float, str]:
    """Order weekdays and months by the calendar, numbers by value and the rest by the alphabet."""
    calendar = _CALENDARS.get(reading, ())
    if level in calendar:
        return 0, float(calendar.index(level)), level
    try:
        return 0, float(level), level
    except ValueError:
        return 1, 0.0, level


def _labels(column: Column, reading: str) -> list[str]:
    """Return the level of each row, as text."""
    if reading == VALUE:
        return [MISSING if value is None else str(value) for value in column.as_category().values]
    if column.kind != DATE:
        if not column.gaps.all():
            raise InvalidInputError(f"X must hold dates in {column.name!r} as in fit, got others.")
        return [MISSING] * len(column.values)
    days = column.values
    if reading == WEEKDAY:
        numbers = (days.astype(np.int64) + WEEKDAYS.index("Thu")) % 7  # day 0 was a Thursday
    else:
        numbers = days.astype("datetime64[M]").astype(np.int64) % 12
    calendar = _CALENDARS[reading]
    return [MISSING if gap else calendar[k] for k, gap in zip(numbers, column.gaps, strict=True)]


def _codes(part: CategoryPart, labels: list[str]) -> tuple[FloatArray, list[str]]:
    """Return the code of each row, -1 for unknown levels, and those levels."""
    known = {level: code for code, level in enumerate(part.levels)}
    codes = np.array([known.get(label, -1) for label in labels], dtype=np.float64)
    return codes, sorted({label for label in labels if label not in known} - set(part.rare))


def _unknown_sentence(part: CategoryPart, unknown: list[str]) -> list[str]:
    if not unknown:
        return []
    shown = ", ".join(map(repr, unknown[:3])) + (", ..." if len(unknown) > 3 else "")
    if len(part.levels) < 2:
        why = "hardly varied in training" if part.levels else "had no level often enough in training"
        return [f"{part.name!r} is {shown} (it {why} and is ignored)"]
    return [f"{part.name!r} is {shown} (unknown: the average of the known levels counts)"]


def warn_of_oddities(plan: Plan, rows: int) -> None:
    """Warn of columns that tell nothing, and of those that name each row."""
    sentences = []
    naming = identifiers(plan, rows)
    hardly = [repr(part.name) for part in plan.constant if part.name not in naming]
    if hardly:
        sentences.append(f"Columns that hardly varied are left out: {', '.join(hardly)}.")
    rounded = _rounded_away(plan)
    if rounded:
        sentences.append(
            f"Numbers that vary by less than {CONSTANT_COLUMN:g} of their size count as constant "
            f"({', '.join(map(repr, rounded))}): if that is more than rounding, subtract a number of "
            "their size first."
        )
    if naming:
        sentences.append(
            f"Categories with a level for most rows ({', '.join(map(repr, naming))}) name rows rather "
            "than describe them: leave them out, or make them coarser."
        )
    if plan.constant and not plan.names:
        sentences.append("No column is left: decisions are constant.")
    if sentences:
        warn_user(" ".join(sentences), DataWarning)
