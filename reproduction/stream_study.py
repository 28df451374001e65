"""The stream study: decide, see the outcome, learn, on streams that stay, jump, drift, and are real."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from reproduction.stream_laws import (
    COEFFICIENTS,
    KINDS,
    Coefficients,
    Law,
    StreamSample,
    draw_stream,
)
from reproduction.stream_measures import realised_cost, recovery_rows, times_of
from reproduction.stream_methods import Online, Refit, RiverQuantile, StreamMethod, WindowSAA
from reproduction.stream_results import (
    CurvePoint,
    RegretPoint,
    RestaurantResult,
    StreamResult,
)
from surefoot.ambiguity import WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import load_yaz
from surefoot.online import OnlinePolicy, Restart, Window
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_choice

COST = Newsvendor(1.0, 0.2)
RESTAURANT_COST = Newsvendor(15.0, 10.0)
RADIUS = 0.1
BALL = WassersteinBall(RADIUS)
# Parameters are looked at so many times in each tenfold of rows; in between, H is interpolated.
LOOKS = 150
_RUN = 100  # rows in one point of a curve
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How much is run.

    Attributes
    ----------
    columns
        Context columns of synthetic streams.
    regret_rows, regret_seeds
        Length and number of the stationary streams on which regret is followed.
    rows, seeds
        Length and number of the streams on which methods are compared.
    day
        Rows between two refits.
    products
        Products of the restaurant.
    first
        Days at the restaurant that are learned from and not counted.
    methods
        Names of the methods to compare; empty for all.
    """

    columns: int
    regret_rows: int
    regret_seeds: int
    rows: int
    seeds: int
    day: int
    products: tuple[str, ...]
    first: int = 30
    methods: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the names of methods."""
        for name in self.methods:
            check_choice("methods", name, stream_methods(self.day))


def full_plan() -> Plan:
    """Return the study whose results are committed."""
    return Plan(10, 1_000_000, 20, 10_000, 10, 100, load_yaz().products)


def quick_plan() -> Plan:
    """Return a study of about a minute."""
    return Plan(10, 20_000, 3, 3_000, 2, 100, load_yaz().products[:1])


def stream_methods(day: int) -> dict[str, StreamMethod]:
    """Return the methods on synthetic streams, by name."""
    return {
        "online": Online(COST, BALL),
        "online-falling": Online(COST, BALL, decay=True),
        "online-restart": Online(COST, BALL, drift=Restart()),
        "online-both": Online(COST, BALL, decay=True, drift=Restart()),
        "online-window": Online(COST, BALL, drift=Window(1_000)),
        "refit": Refit(COST, BALL, day, first=day),
        "river": RiverQuantile(COST, step=0.01),
        "saa-window": WindowSAA(COST, 500),
    }


def restaurant_methods(first: int) -> dict[str, StreamMethod]:
    """Return the methods at the restaurant, by name; only the weather moves."""
    data = load_yaz()
    frozen = tuple(j for j, name in enumerate(data.feature_names) if name in data.frozen)
    ball = WassersteinBall(RADIUS, frozen=frozen)
    return {
        "online": Online(RESTAURANT_COST, ball),
        "online-falling": Online(RESTAURANT_COST, ball, decay=True),
        "online-restart": Online(RESTAURANT_COST, ball, drift=Restart()),
        "online-both": Online(RESTAURANT_COST, ball, decay=True, drift=Restart()),
        "online-window": Online(RESTAURANT_COST, ball, drift=Window(120)),
        "refit": Refit(RESTAURANT_COST, ball, 1, first=first),
        "river": RiverQuantile(RESTAURANT_COST, step=0.01),
        "saa-window": WindowSAA(RESTAURANT_COST, 120),
    }


def run_regret(plan: Plan, progress: Progress) -> list[RegretPoint]:
    """Follow the regret of the online policy on stationary streams."""
    points = []
    for coefficients in COEFFICIENTS:
        for seed in range(plan.regret_seeds):
            stream = draw_stream("stationary", plan.regret_rows, plan.columns, coefficients, COST, seed)
            for radius, decay in (("fixed", False), ("falling", True)):
                progress(f"regret: {coefficients}, {radius} radius, seed {seed}")
                times, plain, robust = followed_regret(
                    Online(COST, BALL, decay=decay).policy(), stream, 0.0 if decay else RADIUS
                )
                points += [
                    RegretPoint(
                        radius, coefficients, seed, int(at), float(a), None if decay else float(b)
                    )
                    for at, a, b in zip(times, plain, robust, strict=True)
                ]
    return points


def followed_regret(
    policy: OnlinePolicy, stream: StreamSample, radius: float
) -> tuple[IntArray, FloatArray, FloatArray]:
    r"""Return times, plain regret and robust regret up to each of them.

    Plain regret is realised: the cost of each decision, made before its row was learned, less that of
    the oracle. Robust regret is the paper's (section 4.3), in expectation given the past,

    .. math:: \sum_{t \le T} H(\theta_t, \gamma_t) - H(\theta^\star, \gamma^\star)

    with the parameters that decide on row t and the multiplier that is best for them, since for a free
    support the method profiles it. H is looked at on a fine grid of times and interpolated.
    """
    rows = len(stream.y)
    looks, times = times_of(rows, per_decade=LOOKS), times_of(rows)
    values, decisions = [_robust_value(policy, stream, radius)], []
    for start, stop in zip([0, *looks[:-1]], looks, strict=True):
        decisions.append(policy.decide_and_learn(stream.X[start:stop], stream.y[start:stop]))
        values.append(_robust_value(policy, stream, radius))
    extra = realised_cost(COST, np.concatenate(decisions), stream.y)
    plain = np.cumsum(extra - realised_cost(COST, stream.oracle, stream.y))[times - 1]
    ends = np.concatenate([[0], looks])
    gap = np.array(values) - _least_value(stream.before, radius)
    robust = np.cumsum(0.5 * (gap[1:] + gap[:-1]) * np.diff(ends))
    return times, plain, np.interp(times, looks, robust)


def _robust_value(policy: OnlinePolicy, stream: StreamSample, radius: float) -> float:
    """Return H at the policy that decides next."""
    # An affine policy is known from its decisions at zero and at the unit vectors.
    columns = stream.X.shape[1]
    at = policy.decide(np.vstack([np.zeros(columns), np.eye(columns)]))
    intercept, theta = at[0], at[1:] - at[0]
    gamma = stream.before.best_multiplier(theta, intercept, radius)
    return float(stream.before.robust_objective(theta, intercept, gamma, radius))


def _least_value(law: Law, radius: float) -> float:
    theta, intercept, gamma = law.robust_best(radius)
    return float(law.robust_objective(theta, np.array(intercept), np.array(gamma), radius))


def run_streams(plan: Plan, progress: Progress) -> tuple[list[StreamResult], list[CurvePoint]]:
    """Run every method on every synthetic stream."""
    results: list[StreamResult] = []
    curves: list[CurvePoint] = []
    for kind in KINDS:
        for coefficients in COEFFICIENTS:
            for name, method in _able(plan, stream_methods(plan.day)):
                progress(f"streams: {kind}, {coefficients}, {name}")
                found, curve = _one_method(plan, kind, coefficients, name, method)
                results += found
                curves += curve
    return results, curves


def _one_method(
    plan: Plan, kind: str, coefficients: Coefficients, name: str, method: StreamMethod
) -> tuple[list[StreamResult], list[CurvePoint]]:
    results, costs, bests = [], [], []
    for seed in range(plan.seeds):
        stream = draw_stream(kind, plan.rows, plan.columns, coefficients, COST, seed)
        began = time.perf_counter()
        decisions = method.decisions(stream.X, stream.y)
        seconds = time.perf_counter() - began
        cost = realised_cost(COST, decisions, stream.y)
        best = realised_cost(COST, stream.oracle, stream.y)
        late = slice(3 * plan.rows // 4, None)
        back = None if kind != "abrupt" else recovery_rows(cost, best, stream.change or 0)
        total, total_best = float(cost.sum()), float(best.sum())
        late_cost, late_best = float(cost[late].sum()), float(best[late].sum())
        results.append(
            StreamResult(
                kind,
                coefficients,
                seed,
                name,
                plan.rows,
                total,
                total_best,
                late_cost,
                late_best,
                back,
                seconds,
            )
        )
        costs.append(cost)
        bests.append(best)
    ours, oracle = (_in_runs(np.mean(part, axis=0)) for part in (costs, bests))
    curve = [
        CurvePoint(kind, coefficients, name, k * _RUN + _RUN // 2, float(a), float(b))
        for k, (a, b) in enumerate(zip(ours, oracle, strict=True))
    ]
    return results, curve


def _in_runs(costs: FloatArray) -> FloatArray:
    whole = len(costs) // _RUN * _RUN
    return np.asarray(costs[:whole].reshape(-1, _RUN).mean(axis=1))


def run_restaurant(plan: Plan, progress: Progress) -> list[RestaurantResult]:
    """Run every method on each product in date order."""
    data = load_yaz()
    results = []
    for name, method in _able(plan, restaurant_methods(plan.first)):
        for product in plan.products:
            progress(f"restaurant: {name}, {product}")
            y = data.product(product)
            began = time.perf_counter()
            decisions = method.decisions(data.contexts, y)
            seconds = time.perf_counter() - began
            cost = realised_cost(RESTAURANT_COST, decisions, y)[plan.first :]
            results.append(RestaurantResult(product, name, len(cost), float(cost.sum()), seconds))
    return results


def _able(plan: Plan, methods: dict[str, StreamMethod]) -> Iterator[tuple[str, StreamMethod]]:
    for name, method in methods.items():
        if method.why_not() is None and (not plan.methods or name in plan.methods):
            yield name, method
