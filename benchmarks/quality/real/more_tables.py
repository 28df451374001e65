"""More tasks without time, made as those of ``tables`` are."""

import numpy as np

from benchmarks.quality.real.sources import r_data, table_task
from benchmarks.quality.real.tables import all_columns

bank_minutes = all_columns("bank_minutes", "carData", "Transact", "time")
# Whether a patient died is known when the stay is over.
hospital_days = all_columns("hospital_days", "COUNT", "azcabgptca", "los", "died")
doctor_germany = all_columns("doctor_germany", "COUNT", "badhealth", "numvisit")
park_visits = all_columns("park_visits", "COUNT", "loomis", "anvisits", "income", "travel")


def medical_vietnam():
    d = r_data("Ecdat", "VietNamH")
    frame = d.drop(columns=["lnmed", "lnexp12m", "commune"])
    spent = np.expm1(d.lnmed)  # households that spent nothing have 0 for the logarithm
    return table_task("medical_vietnam", frame, spent, False)


def _by_quarter(frame, quarters):
    """Return columns with the year as a number and the quarter as a category, from "1998 Q1"."""
    return frame.assign(year=quarters.str[:4].astype(float), quarter=quarters.str[-1])


def accommodation():
    d = r_data("fpp3", "aus_accommodation")
    return table_task("accommodation", _by_quarter(d[["State", "CPI"]], d.Date), d.Takings, False)


def arrivals():
    d = r_data("fpp3", "aus_arrivals")
    return table_task("arrivals", _by_quarter(d[["Origin"]], d.Quarter), d.Arrivals / 1000, False)


def metro():
    d = r_data("gt", "metro")
    links = d.filter(like="connect_").notna()
    frame = d.lines.str.get_dummies(", ").join(links).join(d[["latitude", "longitude"]])
    return table_task("metro", frame, d.passengers / 1e6, False)
