"""Tasks without time: rows in any order."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from benchmarks.quality.real.sources import Task, csv_data, r_data, table_task


def concrete():
    d = r_data("modeldata", "concrete")
    return table_task("concrete", d.drop(columns="compressive_strength"), d.compressive_strength, False)


def medexp():
    d = r_data("Ecdat", "MedExp")
    return table_task("medexp", d.drop(columns="med"), d.med, False)


def carseats():
    d = csv_data("ISLP", "data", "Carseats.csv")
    return table_task("carseats", d.drop(columns="Sales"), d.Sales, False)


def ames():
    d = r_data("modeldata", "ames")
    numbers = d.select_dtypes("number").drop(columns="Sale_Price")
    return table_task("ames", numbers.assign(house=d.Bldg_Type), d.Sale_Price / 1000, False)


def deliveries():
    d = r_data("modeldata", "deliveries")
    return table_task("deliveries", d.drop(columns="time_to_delivery"), d.time_to_delivery, False)


def boston():
    d = csv_data("ISLP", "data", "Boston.csv")
    return table_task("boston", d.drop(columns="medv"), d.medv, False)


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


def hitters():
    d = csv_data("ISLP", "data", "Hitters.csv")
    return table_task("hitters", d.drop(columns="Salary"), d.Salary, False)


def credit():
    d = csv_data("ISLP", "data", "Credit.csv")
    return table_task("credit", d.drop(columns=["ID", "Balance"]), d.Balance, False)


def houses():
    d = r_data("mosaicData", "SaratogaHouses")
    return table_task("houses", d.drop(columns="price"), d.price / 1000, False)


def cars():
    d = r_data("modeldata", "car_prices")
    return table_task("cars", d.drop(columns="Price"), d.Price / 1000, False)


def sacramento():
    d = r_data("modeldata", "Sacramento")
    frame = d[["beds", "baths", "sqft", "type", "latitude", "longitude"]]
    return table_task("sacramento", frame, d.price / 1000, False)


def clothing():
    d = r_data("Ecdat", "Clothing")
    return table_task("clothing", d.drop(columns=["tsales", "sales"]), d.tsales / 1000, False)


def diamonds():
    d = r_data("ggplot2", "diamonds")
    return table_task("diamonds", d.drop(columns="price"), d.price, False)


def college():
    d = r_data("ISLR", "College")
    return table_task("college", d.drop(columns="Outstate"), d.Outstate, False)


def computers():
    d = r_data("Ecdat", "Computers")
    return table_task("computers", d.drop(columns="price"), d.price, False)


def saratoga():
    d = r_data("mosaicData", "SaratogaHouses")
    return table_task("saratoga", d.drop(columns="price"), d.price / 1000, False)


def biomass():
    d = r_data("modeldata", "biomass")
    return table_task(
        "biomass", d[["carbon", "hydrogen", "oxygen", "nitrogen", "sulfur"]], d.HHV, False
    )


def meats():
    d = r_data("modeldata", "meats")
    return table_task("meats", d.filter(like="x_"), d.fat, False)


def car_prices():
    d = r_data("modeldata", "car_prices")
    return table_task("car_prices", d.drop(columns="Price"), d.Price / 1000, False)


def rice_farms():
    d = r_data("plm", "RiceFarms")
    return table_task("rice_farms", d.drop(columns=["id", "goutput", "noutput"]), d.goutput, False)


def mileage():
    d = r_data("openintro", "epa2021")
    frame = d[["engine_displacement", "no_cylinders", "no_gears", "transmission", "drive_sys", "class"]]
    return table_task("mileage", frame, d.comb_mpg, False)


def grinnell():
    d = r_data("Stat2Data", "GrinnellHouses")
    frame = d[["Bedrooms", "Baths", "SquareFeet", "LotSize", "YearBuilt", "YearSold"]]
    return table_task("grinnell", frame, d.SalePrice / 1000, False)


def credit_card():
    d = r_data("AER", "CreditCard")
    return table_task(
        "credit_card", d.drop(columns=["card", "share", "expenditure"]), d.expenditure, False
    )


def doctor_visits():
    d = r_data("AER", "DoctorVisits")
    return table_task("doctor_visits", d.drop(columns="visits"), d.visits, False)


def journals():
    d = r_data("AER", "Journals")
    frame = d[["society", "price", "pages", "charpp", "citations", "foundingyear"]]
    return table_task("journals", frame, d.subs, False)


def medicaid():
    d = r_data("AER", "Medicaid1986")
    return table_task("medicaid", d.drop(columns="visits"), d.visits, False)


def nmes():
    d = r_data("AER", "NMES1988")
    others = ["visits", "nvisits", "ovisits", "novisits", "emergency", "hospital"]
    return table_task("nmes", d.drop(columns=others), d.visits, False)


def recreation():
    d = r_data("AER", "RecreationDemand")
    return table_task("recreation", d.drop(columns="trips"), d.trips, False)


def cigar():
    d = r_data("Ecdat", "Cigar")
    return table_task("cigar", d.drop(columns=["sales", "state"]), d.sales, False)


def cigarette():
    d = r_data("Ecdat", "Cigarette")
    return table_task("cigarette", d.drop(columns=["packpc", "state"]), d.packpc, False)


def doctor():
    d = r_data("Ecdat", "Doctor")
    return table_task("doctor", d.drop(columns="doctor"), d.doctor, False)


def doctor_contacts():
    d = r_data("Ecdat", "DoctorContacts")
    return table_task("doctor_contacts", d.drop(columns="mdu"), d.mdu, False)


def electricity():
    d = r_data("Ecdat", "Electricity")
    return table_task("electricity", d.drop(columns=["q", "cost"]), d.q, False)


def gasoline_countries():
    d = r_data("Ecdat", "Gasoline")
    return table_task("gasoline_countries", d.drop(columns="lgaspcar"), np.exp(d.lgaspcar), False)
