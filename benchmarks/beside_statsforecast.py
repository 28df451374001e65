"""Beside statsforecast: what orders cost, and what they take to compute, for many daily series.

A forecast of AutoETS or AutoARIMA becomes a newsvendor's order in two ways: plus a quantile of its
errors in the past, or as the end of its own interval. AutoETS takes no contexts; AutoARIMA takes
them as regressors and is slow, so it has some of the series.

python -m benchmarks.beside_statsforecast             results/beside_statsforecast_*.csv
python -m benchmarks.beside_statsforecast restaurant  one panel of restaurant, drifting, prices
python -m benchmarks.beside_statsforecast prices 60   its first 60 series of a thousand
"""

import contextlib
import io
import sys
import tempfile
import time
from importlib.metadata import version

import numpy as np
import pandas as pd
from statsforecast import StatsForecast
from statsforecast.models import AutoARIMA, AutoETS
from threadpoolctl import threadpool_limits

from benchmarks.machine import write_csv
from surefoot import RollingWindow, fit_many
from surefoot.costs import Newsvendor
from surefoot.datasets import load_yaz

COST = Newsvendor(1.0, 0.2)
LEVEL = 1.0 / 1.2
INTERVAL = round(100 * (2 * LEVEL - 1), 2)  # the central interval that ends at the level
SERIES, FEW, PAST, AHEAD = 1_000, 100, 200, 28
PRICED, PLAIN, RESTAURANT = (
    "prices and calendar",
    "calendar, no prices, a level that drifts",
    "restaurant",
)
WINDOW = RollingWindow(train=365, test=AHEAD)
ETS, WEEKLY, REGRESSION = "AutoETS", "AutoETS, season 7", "AutoARIMA with regressors"
ONE, BORROW, CONSTANT = "fit_many, one policy each", "fit_many, borrow=True", "constant order"


def sales(series, *, prices, drift, seed):
    """Daily sales: weekdays, holidays, promotions and a level that drifts, all acting by factors."""
    rng = np.random.default_rng(seed)
    days = pd.date_range("2023-01-02", periods=PAST + AHEAD).astype("datetime64[s]")
    holiday = (rng.random(len(days)) < 0.04).astype(float)
    week, frames = 0.25 * rng.normal(size=7), []
    for key in range(series):
        own = week + 0.1 * rng.normal(size=7)
        promotion = np.repeat(rng.random(len(days) // 7 + 1) < 0.2, 7)[: len(days)]
        price = np.where(promotion, rng.uniform(0.65, 0.85), 1.0)
        elasticity = rng.normal(-2.0, 0.5) if prices else 0.0
        level = rng.normal(3.0, 1.0) + np.cumsum(drift * rng.normal(size=len(days)))
        log = level + own[days.dayofweek] + 0.3 * holiday + elasticity * np.log(price)
        frames.append(
            pd.DataFrame(
                {
                    "key": key, "day": np.arange(len(days)), "date": days, "holiday": holiday,
                    **({"price": price} if prices else {}),
                    "y": np.exp(log + 0.2 * rng.normal(size=len(days))),
                }
            )
        )  # fmt: skip
    return pd.concat(frames, ignore_index=True)


def restaurant():
    """The bundled restaurant, one series for each ingredient, with the days on which it was closed."""
    contexts, outcomes = load_yaz().to_pandas()
    known = contexts[["wind", "clouds", "rain", "sunshine", "temperature", "is_holiday", "is_closed"]]
    known = known.assign(date=known.index.astype("datetime64[s]"), day=np.arange(len(known)))
    frames = [known.assign(key=name, y=outcomes[name]) for name in outcomes]
    return pd.concat(frames, ignore_index=True)


def regressors(frame):
    """Return what AutoARIMA learns from: the contexts in logarithms where they act by factors, weekdays."""
    left = frame.drop(
        columns=[name for name in ("key", "day", "date", "y", "is_closed") if name in frame]
    )
    if "price" in left:
        left = left.assign(price=np.log(left["price"]))
    weekdays = {f"weekday{k}": (frame["date"].dt.dayofweek == k).astype(float) for k in range(6)}
    return left.assign(**weekdays)


def statsforecast_orders(model, past, ahead, *, contexts=False):
    """Return two orders for each row ahead, and the processor seconds they took."""
    given = past[["key", "day", "y"]].rename(columns={"key": "unique_id", "day": "ds"})
    future = {}
    if contexts:
        left, right = regressors(past), regressors(ahead)
        vary = [name for name in left if left.groupby(past["key"])[name].nunique().min() > 1]
        given = pd.concat([given, left[vary]], axis=1)
        keys = ahead[["key", "day"]].rename(columns={"key": "unique_id", "day": "ds"})
        future["X_df"] = pd.concat([keys, right[vary]], axis=1)
    runner, began = StatsForecast(models=[model], freq=1, n_jobs=1), time.process_time()
    found = runner.forecast(df=given, h=AHEAD, fitted=True, level=[INTERVAL], **future)
    seconds = time.process_time() - began
    name = type(model).__name__
    fitted = runner.forecast_fitted_values()
    errors = (fitted["y"] - fitted[name]).groupby(fitted["unique_id"])
    spread = errors.quantile(LEVEL, interpolation="higher")
    found = ahead[["key", "day"]].merge(found, left_on=["key", "day"], right_on=["unique_id", "ds"])
    return {
        "residual quantile": found[name].to_numpy() + found["key"].map(spread).to_numpy(),
        "its own interval": found[f"{name}-hi-{INTERVAL}"].to_numpy(),
    }, seconds


def surefoot_orders(past, ahead):
    """Return orders of one policy each and of policies that borrow, each with its processor seconds."""
    how = {"by": "key", "outcome": "y", "cost": COST, "time": "day"}
    how["contexts"] = [name for name in past if name not in ("key", "y", "day")]
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        table = fit_many(past, folder=folder, **how)
        own, fitted = table.decide(ahead), time.process_time()
        # What is finished is not fitted again: this is what borrowing takes on top.
        shared = fit_many(past, folder=folder, borrow=True, **how).decide(ahead)
        return {ONE: (own, fitted - began), BORROW: (shared, time.process_time() - began)}


def every_way(past, ahead, *, whole):
    """Yield (way, how, rows ahead, orders, processor seconds); forecasts see ``whole`` days, without gaps."""
    for name, season in ((ETS, 1), (WEEKLY, 7)):
        found, seconds = statsforecast_orders(AutoETS(season_length=season), whole, ahead)
        yield from ((name, how, ahead, orders, seconds) for how, orders in found.items())
    some = ahead["key"].unique()[:FEW]
    few, whole = ahead[ahead["key"].isin(some)], whole[whole["key"].isin(some)]
    found, seconds = statsforecast_orders(AutoARIMA(season_length=1), whole, few, contexts=True)
    yield from ((REGRESSION, how, few, orders, seconds) for how, orders in found.items())
    for name, (orders, seconds) in surefoot_orders(past, ahead).items():
        yield name, "", ahead, orders, seconds
    constant = past.groupby("key")["y"].quantile(LEVEL, interpolation="higher")
    yield CONSTANT, "", ahead, ahead["key"].map(constant).to_numpy(), 0.0


def costs(past, ahead, orders):
    """Return the mean cost of each series, in shares of its mean sales in the past; closed days do not count."""
    assert np.isfinite(orders).all()
    paid = COST.evaluate(np.asarray(orders, float)[:, None], ahead["y"].to_numpy()[:, None])
    unit = ahead["key"].map(past.groupby("key")["y"].mean()).to_numpy()
    judged = (
        np.ones(len(ahead), bool) if "is_closed" not in ahead else ahead["is_closed"].to_numpy() == 0
    )
    return pd.Series(np.ravel(paid) / unit)[judged].groupby(ahead["key"].to_numpy()[judged]).mean()


def judged(panel, found):
    """Return rows of the result from costs by series: mean, and the difference to one policy each."""
    rows = []
    for (way, how), (each, seconds) in found.items():
        own = found[ONE, ""][0].reindex(each.index)
        apart = (each - own) / own.mean()
        rows.append(
            {
                "panel": panel, "series": each.index.get_level_values(-1).nunique(), "fits": len(each),
                "way": way, "order": how, "cost": f"{each.mean():.4f}",
                "more_than_one_each": f"{apart.mean():.4f}",
                "standard_error": f"{apart.std() / len(apart) ** 0.5:.4f}",
                "processor_ms_each": f"{1e3 * seconds / len(each):.0f}",
                "statsforecast": version("statsforecast"),
            }
        )  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def panel_rows(name, data):
    """Judge one panel on the days that follow its past."""
    past, ahead = (
        data[days].reset_index(drop=True) for days in (data["day"] < PAST, data["day"] >= PAST)
    )
    found = {
        (way, how): (costs(past, rows, orders), seconds)
        for way, how, rows, orders, seconds in every_way(past, ahead, whole=past)
    }
    return judged(name, found)


def restaurant_rows():
    """Judge the restaurant on rolling windows.

    Forecasts of a series need every day: they see the same weekday of the week before on closed days.
    """
    data, parts = restaurant(), {}
    filled = data.assign(y=data["y"].where(data["is_closed"] == 0, data.groupby("key")["y"].shift(7)))
    for number, split in enumerate(WINDOW.splits(data["day"].nunique(), seed=0)):
        past, ahead = (
            data[data["day"].isin(rows)].reset_index(drop=True) for rows in (split.train, split.test)
        )
        past = past[past["is_closed"] == 0].drop(columns="is_closed")
        whole = filled[filled["day"].isin(split.train)].reset_index(drop=True)
        for way, how, rows, orders, seconds in every_way(past, ahead, whole=whole):
            each = pd.concat({number: costs(past, rows, orders)})
            parts.setdefault((way, how), []).append((each, seconds))
    found = {
        way: (pd.concat([each for each, _ in part]), sum(seconds for _, seconds in part))
        for way, part in parts.items()
    }
    return judged(RESTAURANT, found)


def drifting_rows():
    """Judge series without prices whose level drifts: what AutoETS is made for."""
    return panel_rows(PLAIN, sales(FEW, prices=False, drift=0.03, seed=2))


def priced_rows(series=SERIES):
    """Judge series with promotions."""
    return panel_rows(PRICED, sales(series, prices=True, drift=0.01, seed=1))


PANELS = {"restaurant": restaurant_rows, "drifting": drifting_rows, "prices": priced_rows}


def main(names=tuple(PANELS), *counts):
    """Measure and write a result for each panel; one thread, so that seconds compare."""
    with threadpool_limits(1):
        with contextlib.redirect_stdout(io.StringIO()):  # every way loads and compiles what it needs
            panel_rows(PRICED, sales(3, prices=True, drift=0.01, seed=0))
        for name in names:
            write_csv(f"beside_statsforecast_{name}", PANELS[name](*counts))


if __name__ == "__main__":
    main(sys.argv[1:2] or tuple(PANELS), *map(int, sys.argv[2:]))
