"""YAZ: two years of daily demand for seven ingredients at a restaurant in Stuttgart."""

import csv
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from surefoot.exceptions import InvalidInputError
from surefoot.tracing import load_extra
from surefoot.typing import BoolArray, FloatArray, IntArray
from surefoot.validation import check_choice, check_flag, check_integer

DateArray: TypeAlias = NDArray[np.datetime64]

WEATHER = ("wind", "clouds", "rain", "sunshine", "temperature")
FLAGS = ("is_holiday", "is_closed", "weekend")
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
YEARS = (2013, 2014, 2015)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class YazData:
    """Contexts and outcomes of consecutive days, oldest first.

    Attributes
    ----------
    contexts
        Shape (days, 30): weather in its own units, then flags and one-hot columns of 0 and 1.
    outcomes
        Shape (days, 7): demand in units of each ingredient.
    dates
        Shape (days,), ``datetime64[D]``.
    feature_names
        One name per column of ``contexts``.
    products
        One name per column of ``outcomes``.

    Examples
    --------
    >>> data = load_yaz()
    >>> data
    YazData(765 days, 2013-10-04 to 2015-11-07, 30 contexts, 7 products)
    >>> data.product("steak")[:3]
    array([36., 30., 16.])
    """

    contexts: FloatArray
    outcomes: FloatArray
    dates: DateArray
    feature_names: tuple[str, ...]
    products: tuple[str, ...]

    def __repr__(self) -> str:
        days, columns = self.contexts.shape
        return (
            f"YazData({days} days, {self.dates[0]} to {self.dates[-1]}, "
            f"{columns} contexts, {len(self.products)} products)"
        )

    @property
    def numeric(self) -> tuple[str, ...]:
        """Names of the weather columns, which an adversary may move.

        >>> load_yaz().numeric
        ('wind', 'clouds', 'rain', 'sunshine', 'temperature')
        """
        return tuple(name for name in self.feature_names if name in WEATHER)

    @property
    def frozen(self) -> tuple[str, ...]:
        """Names of the flags and one-hot columns, which an adversary must not move.

        >>> load_yaz().frozen[:4]
        ('is_holiday', 'is_closed', 'weekend', 'weekday_MON')
        """
        return tuple(name for name in self.feature_names if name not in WEATHER)

    def product(self, name: str) -> FloatArray:
        """Return the outcomes of one product, shape (days,).

        >>> load_yaz().product("fish").mean().round(2)
        np.float64(4.66)
        """
        check_choice("product", name, self.products)
        return self.outcomes[:, self.products.index(name)].copy()

    def split(self, train: int = 600) -> tuple["YazData", "YazData"]:
        """Return the first ``train`` days to learn from, and the days after them to judge on.

        Parameters
        ----------
        train
            Number of days to learn from; at least one day must remain.

        Examples
        --------
        The sample average approximation of a newsvendor with backorder 15 and holding 10 orders
        the 15 / (15 + 10) quantile of the outcomes, whatever the context:

        >>> train, test = load_yaz().split(600)
        >>> train, test
        (YazData(600 days, 2013-10-04 to 2015-05-26, 30 contexts, 7 products),
         YazData(165 days, 2015-05-27 to 2015-11-07, 30 contexts, 7 products))
        >>> r = np.quantile(train.product("steak"), 0.6) - test.product("steak")
        >>> float(np.maximum(10 * r, -15 * r).mean().round(2))
        86.09
        """
        train = check_integer("train", train, at_least=1)
        days = len(self.dates)
        if not train < days:
            raise InvalidInputError(f"train must be < {days} (the number of days), got {train}.")
        first = np.arange(days) < train
        return self._only(first), self._only(~first)

    def to_pandas(self) -> tuple[Any, Any]:
        """Return (contexts, outcomes) as two pandas data frames indexed by date.

        >>> contexts, outcomes = load_yaz().to_pandas()
        >>> contexts.shape, list(outcomes.columns)[:3]
        ((765, 30), ['calamari', 'fish', 'shrimp'])
        """
        pandas = load_extra("pandas", "to_pandas needs pandas: pip install pandas")
        index = pandas.DatetimeIndex(self.dates, name="date")
        return (
            pandas.DataFrame(self.contexts, index=index, columns=list(self.feature_names), copy=True),
            pandas.DataFrame(self.outcomes, index=index, columns=list(self.products), copy=True),
        )

    def _only(self, keep: BoolArray) -> "YazData":
        return replace(
            self,
            contexts=self.contexts[keep],
            outcomes=self.outcomes[keep],
            dates=self.dates[keep],
        )


def load_yaz(*, drop_closed: bool = False) -> YazData:
    """Load the YAZ data set: 765 days, 30 context columns, the demand for 7 ingredients.

    The columns of ``contexts`` are the weather (5), the flags (3) and one column of 0 and 1 for
    *every* weekday (7), month (12) and year (3). No level is dropped and nothing is scaled, so
    with an intercept the columns are linearly dependent: fitted values are well defined, single
    coefficients are not.

    Weekday, month and year are taken from the date. That corrects the one day that the file
    mislabels: 2014-12-31 was a Wednesday, not a Saturday, so its ``weekend`` flag is 0 here as
    well. The other flags are as published, among them ``weekend`` on Friday 2014-12-26.

    Parameters
    ----------
    drop_closed
        Leave out the five days on which the restaurant was closed and every outcome is 0. The
        column ``is_closed`` stays, and is then 0 throughout.

    Returns
    -------
    YazData
        Days in date order.

    References
    ----------
    Published with the package ddop (https://github.com/d3group/ddop), BSD 3-Clause licence,
    copyright the ddop developers; see ``data/LICENSE-ddop.txt`` and ``data/README.md``.

    Examples
    --------
    >>> data = load_yaz()
    >>> data.contexts.shape, data.outcomes.shape
    ((765, 30), (765, 7))
    >>> len(load_yaz(drop_closed=True).dates)
    760
    """
    drop_closed = check_flag("drop_closed", drop_closed)
    days = _read("yaz_data.csv")
    demand = _read("yaz_target.csv")
    dates = np.array([day["date"] for day in days], dtype="datetime64[D]")
    products = tuple(demand[0])
    calendar, calendar_names = _calendar(dates)
    weather = _numbers(days, WEATHER)
    flags = _numbers(days, FLAGS)
    weekday = _weekday(dates)
    mislabelled = weekday != [WEEKDAYS.index(day["weekday"]) for day in days]
    flags[mislabelled, FLAGS.index("weekend")] = weekday[mislabelled] >= WEEKDAYS.index("SAT")
    data = YazData(
        contexts=np.hstack([weather, flags, calendar]),
        outcomes=_numbers(demand, products),
        dates=dates,
        feature_names=WEATHER + FLAGS + calendar_names,
        products=products,
    )
    return data._only(flags[:, FLAGS.index("is_closed")] == 0) if drop_closed else data


def _read(name: str) -> list[dict[str, str]]:
    text = (files("surefoot.datasets") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _numbers(rows: list[dict[str, str]], columns: tuple[str, ...]) -> FloatArray:
    return np.array([[float(row[column]) for column in columns] for row in rows])


def _weekday(dates: DateArray) -> IntArray:
    """Return 0 for Monday to 6 for Sunday; day 0 of ``datetime64`` was a Thursday."""
    return (dates.astype(np.int64) + WEEKDAYS.index("THU")) % len(WEEKDAYS)


def _calendar(dates: DateArray) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the one-hot columns of weekday, month and year, and their names."""
    month = dates.astype("datetime64[M]").astype(np.int64) % len(MONTHS)
    year = dates.astype("datetime64[Y]").astype(np.int64) + 1970
    columns = np.hstack(
        [
            _weekday(dates)[:, None] == np.arange(len(WEEKDAYS)),
            month[:, None] == np.arange(len(MONTHS)),
            year[:, None] == np.array(YEARS),
        ]
    )
    levels = {"weekday": WEEKDAYS, "month": MONTHS, "year": YEARS}
    names = tuple(f"{name}_{level}" for name, group in levels.items() for level in group)
    return columns.astype(np.float64), names
