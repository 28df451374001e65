"""Tasks without time: rows in any order."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from benchmarks.quality.real.sources import Task, csv_data, r_data, table_task


def all_columns(name, package, data, outcome, *others, unit=1):
    """Return a task from all columns of a table but the outcome and others that say as much."""

    def make():
        d = csv_data(package, "data", data) if data.endswith(".csv") else r_data(package, data)
        return table_task(name, d.drop(columns=[outcome, *others]), d[outcome] / unit, False)

    make.__name__ = name
    return make


concrete = all_columns("concrete", "modeldata", "concrete", "compressive_strength")
medexp = all_columns("medexp", "Ecdat", "MedExp", "med")
carseats = all_columns("carseats", "ISLP", "Carseats.csv", "Sales")
deliveries = all_columns("deliveries", "modeldata", "deliveries", "time_to_delivery")
boston = all_columns("boston", "ISLP", "Boston.csv", "medv")
hitters = all_columns("hitters", "ISLP", "Hitters.csv", "Salary")
credit = all_columns("credit", "ISLP", "Credit.csv", "Balance", "ID")
clothing = all_columns("clothing", "Ecdat", "Clothing", "tsales", "sales", unit=1000)
diamonds = all_columns("diamonds", "ggplot2", "diamonds", "price")
college = all_columns("college", "ISLR", "College", "Outstate")
computers = all_columns("computers", "Ecdat", "Computers", "price")
saratoga = all_columns("saratoga", "mosaicData", "SaratogaHouses", "price", unit=1000)
car_prices = all_columns("car_prices", "modeldata", "car_prices", "Price", unit=1000)
rice_farms = all_columns("rice_farms", "plm", "RiceFarms", "goutput", "id", "noutput")
credit_card = all_columns("credit_card", "AER", "CreditCard", "expenditure", "card", "share")
doctor_visits = all_columns("doctor_visits", "AER", "DoctorVisits", "visits")
medicaid = all_columns("medicaid", "AER", "Medicaid1986", "visits")
recreation = all_columns("recreation", "AER", "RecreationDemand", "trips")
cigar = all_columns("cigar", "Ecdat", "Cigar", "sales", "state")
cigarette = all_columns("cigarette", "Ecdat", "Cigarette", "packpc", "state")
doctor = all_columns("doctor", "Ecdat", "Doctor", "doctor")
doctor_contacts = all_columns("doctor_contacts", "Ecdat", "DoctorContacts", "mdu")
electricity = all_columns("electricity", "Ecdat", "Electricity", "q", "cost")


def ames():
    d = r_data("modeldata", "ames")
    numbers = d.select_dtypes("number").drop(columns="Sale_Price")
    return table_task("ames", numbers.assign(house=d.Bldg_Type), d.Sale_Price / 1000, False)


def wage():
    d = csv_data("ISLP", "data", "Wage.csv")
    frame = d[["year", "age", "maritl", "race", "education", "jobclass", "health"]]
    return table_task("wage", frame, d.wage, False)


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return Task("diabetes", X, y, False)


def auto():
    d = csv_data("ISLP", "data", "Auto.csv")
    numbers = d.drop(columns=["mpg", "name"]).apply(pd.to_numeric, errors="coerce")
    return table_task("auto", numbers.assign(origin=d.origin.astype(str)), d.mpg, False)


def sacramento():
    d = r_data("modeldata", "Sacramento")
    frame = d[["beds", "baths", "sqft", "type", "latitude", "longitude"]]
    return table_task("sacramento", frame, d.price / 1000, False)


def biomass():
    d = r_data("modeldata", "biomass")
    return table_task(
        "biomass", d[["carbon", "hydrogen", "oxygen", "nitrogen", "sulfur"]], d.HHV, False
    )


def meats():
    d = r_data("modeldata", "meats")
    return table_task("meats", d.filter(like="x_"), d.fat, False)


def mileage():
    d = r_data("openintro", "epa2021")
    frame = d[["engine_displacement", "no_cylinders", "no_gears", "transmission", "drive_sys", "class"]]
    return table_task("mileage", frame, d.comb_mpg, False)


def grinnell():
    d = r_data("Stat2Data", "GrinnellHouses")
    frame = d[["Bedrooms", "Baths", "SquareFeet", "LotSize", "YearBuilt", "YearSold"]]
    return table_task("grinnell", frame, d.SalePrice / 1000, False)


def journals():
    d = r_data("AER", "Journals")
    frame = d[["society", "price", "pages", "charpp", "citations", "foundingyear"]]
    return table_task("journals", frame, d.subs, False)


def nmes():
    d = r_data("AER", "NMES1988")
    others = ["visits", "nvisits", "ovisits", "novisits", "emergency", "hospital"]
    return table_task("nmes", d.drop(columns=others), d.visits, False)


def gasoline_countries():
    d = r_data("Ecdat", "Gasoline")
    return table_task("gasoline_countries", d.drop(columns="lgaspcar"), np.exp(d.lgaspcar), False)
