"""Set a price each day from 80 past days, with a linear and with a neural policy.

Potential demand rises with the temperature until it is hot, falls with rain and depends a little on
two more contexts. Past demand was seen at past prices; the potential behind it follows from them.

    python examples/pricing.py --out pricing.png
"""

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from surefoot import DASGD, RobustPolicy, WassersteinBall
from surefoot.costs import Pricing
from surefoot.exceptions import ConvergenceWarning
from surefoot.policies import MLP, Linear
from surefoot.random import rng_for

DAYS, CONTEXTS = 80, 4
COST = Pricing(sensitivity=4.0, unit_cost=3.0)  # a euro more sells 4 units less; a unit costs 3 euros
POLICIES = {"linear": Linear(), "neural": MLP(hidden=(32, 32))}
RADII = (0.0, 0.1, 0.3, 1.0)
SHOWN = 0.3


def expected_potential(X):
    """Return how much would sell at price zero, on average."""
    heat, rain = 25.0 * np.tanh(1.5 * X[:, 0]), np.maximum(X[:, 1], 0.0)
    return 90.0 + heat - 10.0 * rain + 4.0 * X[:, 2]


def draw(name, days):
    """Return contexts (standardised), potential demand as seen through past prices, and the truth."""
    rng = rng_for(0, "pricing", name)
    X = rng.normal(size=(days, CONTEXTS))
    potential = expected_potential(X) + 15.0 * rng.normal(size=days)
    price = rng.uniform(8.0, 12.0, days)
    sold = np.maximum(potential - COST.sensitivity * price, 0.0)
    return X, COST.potential(demand=sold, price=price), potential


def best_price(X):
    """Return the price that maximises expected profit (demand is positive there)."""
    return 0.5 * (expected_potential(X) / COST.sensitivity + COST.unit_cost)


def fit(policy, radius, name, steps):
    """Fit one policy at one radius to one sample."""
    X, y, _ = draw(name, DAYS)
    model = RobustPolicy(COST, policy, ball=WassersteinBall(radius), solver=DASGD(max_steps=steps))
    with warnings.catch_warnings():  # what a short run left open is in model.status_
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def study(radii, samples, steps):
    """Return the profit lost to the best price, in euros a day, and one sample's models."""
    X, _, potential = draw("test", 20_000)
    weights = np.full(len(X), 1.0 / len(X))
    oracle = -COST.mean(best_price(X)[:, None], potential[:, None], weights)
    lost, models = {}, {}
    for name, policy in POLICIES.items():
        fits = [[fit(policy, r, f"sample {k}", steps) for k in range(samples)] for r in radii]
        lost[name] = np.array([[oracle + model.cost(X, potential) for model in row] for row in fits])
        models[name] = [row[0] for row in fits]
    return oracle, lost, models


def print_table(radii, oracle, lost):
    """Print a line for each policy and radius."""
    print(
        f"The best price earns {oracle:.1f} euros a day. Lost on new days, mean (spread) over samples:"
    )
    print(f"{'radius':>8}" + "".join(f"{name:>20}" for name in lost))
    for k, radius in enumerate(radii):
        cells = (f"{rows[k].mean():.1f} ({rows[k].std():.1f})" for rows in lost.values())
        print(f"{radius:8g}" + "".join(f"{cell:>20}" for cell in cells))


def picture(out, radii, lost, models):
    """Draw prices against temperature, and lost profit against the radius."""
    plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    chosen = radii.index(SHOWN)
    before, after = (lost["neural"][k].mean() for k in (0, chosen))
    figure.suptitle(
        f"Robustness cuts what a neural price loses from {before:.0f} to {after:.0f} euros a day; "
        "the linear price needs none",
        fontweight="bold", x=0.01, ha="left",
    )  # fmt: skip
    heat = np.linspace(-2.5, 2.5, 201)
    contexts = np.column_stack([heat, np.zeros((len(heat), CONTEXTS - 1))])
    network, affine = models["neural"], models["linear"]
    robust = network[chosen].predict(contexts)
    curves = [
        ("neural, radius 0", network[0].predict(contexts), "#d55e00", "-"),
        (f"neural, radius {SHOWN:g}", robust, "#0072b2", "-"),
        ("linear, radius 0", affine[0].predict(contexts), "#7f7f7f", "-"),
        ("best price", best_price(contexts), "black", "--"),
    ]
    for name, prices, colour, line in curves:
        left.plot(heat, prices, line, color=colour, linewidth=2.4, label=name)
    left.legend(frameon=False)
    left.set(xlabel="temperature (standard deviations from usual)", ylabel="price (euros)")
    left.set_xlim(heat[0], heat[-1])
    left.set_title("Price, other contexts as usual", loc="left", fontsize=12)
    places = np.arange(len(radii))
    for name, colour in (("linear", "#7f7f7f"), ("neural", "#0072b2")):
        right.fill_between(
            places,
            lost[name].min(axis=1),
            lost[name].max(axis=1),
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
        right.plot(places, lost[name].mean(axis=1), "o-", color=colour, linewidth=3)
        right.annotate(
            name, (0, lost[name][0].mean()), (-10, 0), textcoords="offset points", color=colour,
            ha="right", va="center", fontweight="bold",
        )  # fmt: skip
    right.plot(0, lost["neural"][0].mean(), "o", color="#d55e00", markersize=9)
    right.set_xticks(places, [f"{radius:g}" for radius in radii])
    right.set_xlim(-0.8, places[-1] + 0.15)
    right.set_ylim(0, None)
    right.set_yticks(range(0, 21, 5))
    right.set(xlabel="radius (standard deviations)", ylabel="lost to the best price (euros a day)")
    samples = lost["linear"].shape[1]
    right.set_title(f"Lost on new days (bands: all {samples} samples)", loc="left", fontsize=12)
    figure.savefig(out, dpi=150)
    plt.close(figure)


def main(out: Path, quick: bool = False) -> dict:
    """Fit, print the table, write the picture; return what the table says."""
    radii = (0.0, SHOWN) if quick else RADII
    oracle, lost, models = study(radii, 2 if quick else 5, 10_000 if quick else 20_000)
    print_table(radii, oracle, lost)
    picture(out, radii, lost, models)
    return {"radii": radii, "oracle": oracle, "lost": lost}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("pricing.png"))
    parser.add_argument("--quick", action="store_true", help="fewer samples, radii and steps")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
