"""``surefoot datasets``: tables to try things on, written as CSV."""

import sys
from pathlib import Path

import polars as pl

from surefoot.cli.screen import Screen
from surefoot.datasets import YazData, load_yaz
from surefoot.exceptions import InvalidInputError
from surefoot.io.writing import check_target, replaced
from surefoot.validation import check_choice

ABOUT = {
    "restaurant": "765 days of a restaurant in Stuttgart: weather, calendar, demand for 7 ingredients",
}
_CALENDAR = ("weekday_", "month_", "year_")


def run(
    name: str | None, out: Path | None, *, product: str, later: Path | None, last: int, screen: Screen
) -> None:
    """List the data sets, or write one of them."""
    if name is None:
        screen.table(["name", "what it is"], list(ABOUT.items()))
        screen.say("\nsurefoot datasets restaurant -o restaurant.csv writes one as CSV.")
        screen.result({"datasets": ABOUT})
        return
    check_choice("The data set", name, ABOUT)
    for target in (out, later):
        if target is not None:
            check_target(target, (".csv",))
    if later is not None and out is None:
        raise InvalidInputError("--later must come with -o, got only --later.")
    frame = restaurant(load_yaz(drop_closed=True), product)
    if later is not None and not 0 < last < len(frame):
        raise InvalidInputError(f"--last must be between 1 and {len(frame) - 1}, got {last}.")
    if out is None:
        sys.stdout.write(frame.write_csv())
        return
    parts = {out: frame} if later is None else {out: frame[:-last], later: frame[-last:]}
    for target, part in parts.items():
        with replaced(target) as temporary:
            part.write_csv(temporary)
        screen.say(f"{target}: {len(part)} days, outcome {product!r}.")
    screen.result({"files": [str(target) for target in parts], "outcome": product})


def restaurant(data: YazData, product: str) -> pl.DataFrame:
    """Return the days as one table: the date, weather and flags, and the demand for one ingredient.

    Weekday, month and year follow from the date; the other ingredients are outcomes of the same day.
    """
    check_choice("--product", product, data.products)
    # The one flag that never varies on open days says nothing.
    kept = [
        (j, name)
        for j, name in enumerate(data.feature_names)
        if not name.startswith(_CALENDAR) and name != "is_closed"
    ]
    columns: dict[str, object] = {"date": data.dates}
    for j, name in kept:
        values = data.contexts[:, j]
        columns[name] = values.astype(int) if (values == values.round()).all() else values
    columns[product] = data.product(product).astype(int)
    return pl.DataFrame(columns)
