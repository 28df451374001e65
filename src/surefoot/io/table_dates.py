"""Dates as people write them: which order of day, month and year all cells of a column agree on."""

from dataclasses import dataclass

import polars as pl

from surefoot.exceptions import InvalidInputError

DAY_FIRST, MONTH_FIRST = "day-first", "month-first"
# So many days in order are no accident.
ORDERED_DAYS = 5
_D, _Y2, _Y4 = r"\d{1,2}", r"\d{2}", r"\d{4}"
_WORD = r"[A-Za-z]{3,9}"


@dataclass(frozen=True)
class DateForm:
    """A way to write dates.

    Attributes
    ----------
    format
        For ``strptime``.
    pattern
        What such a cell looks like; ``strptime`` alone would take 24 for a year of four digits.
    rivals
        "day-first" or "month-first" where another form reads the same cells otherwise.
    """

    format: str
    pattern: str
    rivals: str = ""


FORMS = (
    DateForm("%Y-%m-%d", rf"^{_Y4}-{_D}-{_D}$"),
    DateForm("%Y/%m/%d", rf"^{_Y4}/{_D}/{_D}$"),
    DateForm("%Y.%m.%d", rf"^{_Y4}\.{_D}\.{_D}$"),
    DateForm("%Y%m%d", r"^(?:19|20)\d{6}$"),
    DateForm("%d.%m.%Y", rf"^{_D}\.{_D}\.{_Y4}$"),
    DateForm("%d.%m.%y", rf"^{_D}\.{_D}\.{_Y2}$"),
    DateForm("%d/%m/%Y", rf"^{_D}/{_D}/{_Y4}$", DAY_FIRST),
    DateForm("%m/%d/%Y", rf"^{_D}/{_D}/{_Y4}$", MONTH_FIRST),
    DateForm("%d/%m/%y", rf"^{_D}/{_D}/{_Y2}$", DAY_FIRST),
    DateForm("%m/%d/%y", rf"^{_D}/{_D}/{_Y2}$", MONTH_FIRST),
    DateForm("%d-%m-%Y", rf"^{_D}-{_D}-{_Y4}$", DAY_FIRST),
    DateForm("%m-%d-%Y", rf"^{_D}-{_D}-{_Y4}$", MONTH_FIRST),
    DateForm("%d %b %Y", rf"^{_D} {_WORD} {_Y4}$"),
    DateForm("%d-%b-%Y", rf"^{_D}-{_WORD}-{_Y4}$"),
    DateForm("%d-%b-%y", rf"^{_D}-{_WORD}-{_Y2}$"),
    DateForm("%b %d, %Y", rf"^{_WORD} {_D}, {_Y4}$"),
)
_MIDNIGHT = r"[T ]0{1,2}:00(?::00(?:\.0+)?)?Z?$"
_TIME = r"[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[AaPp][Mm])?(?:Z|[+-]\d{2}:?\d{2})?$"


@dataclass(frozen=True)
class Days:
    """A column read as dates: the days (null where a cell is none), the format, and a remark.

    ``count`` is how many cells are dates in any form, ``values`` holds those of one form.
    """

    values: pl.Series
    format: str
    count: int
    remark: str = ""


def read_days(column: pl.Series, told: str | None) -> Days | None:
    """Return the column as dates, or None if hardly a cell is one.

    Parameters
    ----------
    column
        Text, null for gaps.
    told
        "day-first", "month-first", a format such as ``%d.%m.%Y``, or None.

    Examples
    --------
    >>> found = read_days(pl.Series("day", ["31/01/2024", "02/02/2024"]), None)
    >>> found.format, found.values.to_list()[1]
    ('%d/%m/%Y', datetime.date(2024, 2, 2))
    """
    whole = column.str.replace(_MIDNIGHT, "")
    timed = bool(whole.str.contains(_TIME).any())
    days = whole.str.replace(_TIME, "") if timed else whole
    candidates = [(form, _parsed(days, form)) for form in _forms(told)]
    counts = [len(values) - values.null_count() for _, values in candidates]
    best = max(counts, default=0)
    if best == 0:
        return None
    leading = [pair for pair, count in zip(candidates, counts, strict=True) if count == best]
    same = [pair for pair in leading if pair[1].is_null().equals(leading[0][1].is_null())]
    form, values = same[0] if len(same) == 1 else _agreed(column.name, same)
    written = [values for _, values in candidates if values.null_count() < len(values)]
    dates = pl.select(pl.any_horizontal([values.is_not_null() for values in written])).to_series()
    remark = "the time of day is left out" if timed else ""
    return Days(values, form.format, int(dates.sum()), remark)


def check_told(told: str | None) -> None:
    """Refuse what is neither an order nor a format of dates."""
    if told is not None and told not in (DAY_FIRST, MONTH_FIRST) and "%" not in told:
        raise InvalidInputError(
            f"dates must be day-first, month-first or a format such as %d.%m.%Y, got {told!r}."
        )


def _forms(told: str | None) -> tuple[DateForm, ...]:
    if told is not None and "%" in told:
        known = [form for form in FORMS if form.format == told]
        return tuple(known) or (DateForm(told, ".*"),)
    return tuple(form for form in FORMS if told is None or form.rivals in ("", told))


def _parsed(column: pl.Series, form: DateForm) -> pl.Series:
    fitting = column.str.contains(form.pattern)
    if not fitting.any():
        return pl.Series(column.name, [None] * len(column), dtype=pl.Date)
    return column.set(~fitting.fill_null(False), None).str.to_date(form.format, strict=False)


def _agreed(name: str, leading: list[tuple[DateForm, pl.Series]]) -> tuple[DateForm, pl.Series]:
    """Return the only reading in which time runs forward; ask where there is none."""
    forward = [pair for pair in leading if pair[1].drop_nulls().is_sorted()]
    if len(forward) == 1 and forward[0][1].n_unique() >= ORDERED_DAYS:
        return forward[0]
    if all(values.equals(leading[0][1]) for _, values in leading):
        return leading[0]
    place = (leading[0][1] != leading[1][1]).fill_null(False).arg_max() or 0
    first, other = leading[0][1][place], leading[1][1][place]
    raise InvalidInputError(
        f"The dates in {name!r} must have one reading, got cells that may be {first:%d %B %Y} or "
        f"{other:%d %B %Y}: give --dates {DAY_FIRST} or {MONTH_FIRST}."
    )
