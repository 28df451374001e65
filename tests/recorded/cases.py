"""Two hundred problems of all kinds, by name, each with the decisions that its policy makes.

``python -m tests.recorded.cases`` writes ``decisions.npz`` anew. Do that only in a change that means to
change decisions, and say in its message which ones and why.
"""

import platform
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from surefoot import (
    DASGD,
    Box,
    Budget,
    ConvexProgram,
    Exact,
    PreparedPolicy,
    PrimalDual,
    Problem,
    RobustNewsvendor,
    RobustPolicy,
    Simplex,
    WassersteinBall,
)
from surefoot.baselines import ERM, SAA, Forest, Shapley
from surefoot.costs import MeanCVaR, Newsvendor, Pricing, Quadratic
from surefoot.datasets import load_yaz
from surefoot.exceptions import SurefootWarning
from surefoot.nominals import Empirical, Gaussian, Mixture, SmoothedBootstrap
from surefoot.online import ConstantStep, DecayingRadius, DecayingStep, OnlinePolicy, Restart, Window
from surefoot.policies import ELU, MLP, Linear, MaxAffine, Polynomial, RandomFourier, Sigmoid

RECORD = Path(__file__).with_name("decisions.npz")
Case = tuple[str, Callable[[], np.ndarray]]


def rows(seed, n, s, products=1, *, whole=False):
    """Past pairs and twenty contexts to decide on; ``whole`` gives counts, with ties."""
    rng = np.random.default_rng([7, seed, n, s])
    X = rng.normal(size=(n + 20, s)) * rng.uniform(0.2, 5.0, s) + rng.normal(size=s)
    Y = X @ rng.normal(size=(s, products)) / np.sqrt(s) + rng.gumbel(size=(n + 20, products)) + 5.0
    Y = np.round(Y) if whole else Y
    return X[:n], Y[:n] if products > 1 else Y[:n, 0], X[n:]


def solved(
    solver, seed, n, s, *, products=1, whole=False, weighted=False, cost=None, policy=None, **ball
):
    X, y, new = rows(seed, n, s, products, whole=whole)
    weights = np.random.default_rng(seed).uniform(0.1, 3.0, n) if weighted else None
    policy = Linear() if policy is None else policy
    if isinstance(ball.get("support"), float):
        room = ball["support"]
        ball["support"] = Box(X.min(axis=0) - room, X.max(axis=0) + room, outcome=(-30.0, 40.0))
    problem = Problem(
        Newsvendor(1.0, 0.25) if cost is None else cost, policy, Empirical(X, y, weights),
        WassersteinBall(**ball),
    )  # fmt: skip
    solution = solver.solve(problem, seed=seed)
    return policy.decide(solution.parameters, new)


def primal_dual() -> Iterator[Case]:
    sizes = ((12, 3), (40, 20), (25, 60), (150, 8), (80, 30))
    for seed, (n, s) in enumerate(sizes):
        for order in (1, 2):
            for radius in (0.0, 0.03, 0.3, 1.0):
                yield (
                    f"{n}x{s} order {order} radius {radius}",
                    lambda a=(seed, n, s, order, radius): solved(
                        PrimalDual(), *a[:3], order=a[3], radius=a[4]
                    ),
                )
    for order in (1, 2):
        options = {
            "no intercept": {"policy": Linear(intercept=False)},
            "outcomes move": {"outcome_cost": 0.7},
            "outcomes move, no intercept": {"outcome_cost": 2.0, "policy": Linear(intercept=False)},
            "frozen": {"frozen": (0, 4)},
            "own units": {"scale": False},
            "counts": {"whole": True},
            "weights": {"weighted": True},
            "products": {"products": 3},
            "own costs": {"products": 2, "cost": Newsvendor((1.0, 0.2), (0.3, 2.0))},
            "holding dear": {"cost": Newsvendor(0.1, 1.0)},
            "a hundred to one": {"cost": Newsvendor(100.0, 1.0)},
            "features": {"policy": Linear(features=Polynomial(2, interactions=False))},
            "limits": {"policy": Linear(decisions=Box(4.0, 6.0))},
        }
        for name, given in options.items():
            yield (
                f"{name}, order {order}",
                lambda order=order, given=given: solved(
                    PrimalDual(), 9, 50, 6, order=order, radius=0.1, **given
                ),
            )


def dasgd() -> Iterator[Case]:
    for order in (1, 2):
        options = {
            "rows": {},
            "few rows": {"n": 15, "s": 40},
            "no intercept": {"policy": Linear(intercept=False)},
            "outcomes move": {"outcome_cost": 1.5},
            "frozen": {"frozen": (1,)},
            "smoothed": {"cost": Newsvendor(1.0, 0.25, smoothing=0.3)},
            "box": {"support": 0.1},
            "tight box": {"support": 0.0, "outcome_cost": 1.0},
            "open box": {"support": Box(-100.0, np.inf)},
            "box, weights": {"support": 0.2, "weighted": True},
        }
        for name, given in options.items():
            n, s = given.get("n", 60), given.get("s", 5)
            rest = {key: value for key, value in given.items() if key not in ("n", "s")}
            yield (
                f"{name}, order {order}",
                lambda a=(n, s, order, rest): solved(
                    DASGD(max_steps=20_000), 3, a[0], a[1], order=a[2], radius=0.15, **a[3]
                ),
            )
        for name, solver in {
            "minibatch": DASGD(max_steps=4_000, minibatch=5),
            "gradient moves": DASGD(max_steps=4_000, inner_steps=5),
        }.items():
            yield (
                f"{name}, order {order}",
                lambda solver=solver, order=order: solved(solver, 4, 60, 5, order=order, radius=0.15),
            )
    nominals = {
        "gaussian": lambda X, y: Gaussian.fit(X, y),
        "bootstrap": lambda X, y: SmoothedBootstrap(X, y),
        "mixture": lambda X, y: Mixture([Empirical(X, y), Gaussian.fit(X, y)], [0.5, 0.5]),
    }
    for name, make in nominals.items():
        yield f"draws of a {name}", lambda make=make: sampled(make)


def sampled(make):
    X, y, new = rows(5, 40, 4)
    problem = Problem(Newsvendor(1.0, 0.25), Linear(), make(X, y), WassersteinBall(0.1))
    return Linear().decide(DASGD(max_steps=8_000).solve(problem, seed=1).parameters, new)


def deterministic() -> Iterator[Case]:
    for order in (1, 2):
        for name, given in {
            "free": {}, "no intercept": {"policy": Linear(intercept=False)},
            "outcomes move": {"outcome_cost": 1.0}, "frozen": {"frozen": (2,)},
            "products": {"products": 2}, "weights": {"weighted": True}, "own units": {"scale": False},
        }.items():  # fmt: skip
            yield (
                f"exact, {name}, order {order}",
                lambda order=order, given=given: solved(
                    Exact(), 6, 40, 4, order=order, radius=0.2, **given
                ),
            )
        for name, given in {"free": {}, "box": {"support": 0.1}}.items():
            yield (
                f"program, {name}, order {order}",
                lambda order=order, given=given: solved(
                    ConvexProgram(), 6, 30, 3, order=order, radius=0.2, **given
                ),
            )
        for intercept in (True, False):
            literal = DASGD.literal(alpha=0.01, beta=0.01, eta=0.1, K=5, epsilon=1e-3, steps=2_000)
            yield (
                f"literal, order {order}, intercept {intercept}",
                lambda a=(literal, order, intercept): solved(
                    a[0], 2, 30, 4, order=a[1], radius=0.2, policy=Linear(intercept=a[2])
                ),
            )


def fitted(model, seed, n, s, *, products=1, whole=False, weight=False):
    X, y, new = rows(seed, n, s, products, whole=whole)
    weights = np.random.default_rng(seed).integers(1, 4, n).astype(float) if weight else None
    return model.fit(X, y, weights).predict(new)


def estimators() -> Iterator[Case]:
    sizes = ((10, 4), (30, 12), (60, 5), (60, 100), (150, 6), (400, 3))
    for seed, (n, s) in enumerate(sizes):
        yield f"automatic, {n}x{s}", lambda a=(seed, n, s): fitted(RobustNewsvendor(15, 10), *a)
        yield (
            f"radius by folds, {n}x{s}",
            lambda a=(seed, n, s): fitted(RobustPolicy(Newsvendor(1.0, 0.2)), *a),
        )
    others = {
        "order 1": RobustNewsvendor(1.0, 0.2, order=1),
        "no intercept": RobustNewsvendor(1.0, 0.2, intercept=False),
        "radius": RobustNewsvendor(1.0, 0.2, radius=0.2),
        "profile": RobustNewsvendor(1.0, 0.2, radius="profile", nominal=None),
        "paper": RobustNewsvendor(1.0, 0.2, radius="paper", nominal=None),
        "box": RobustPolicy(
            Newsvendor(1.0, 0.2), Linear(decisions=Box(3.0, 7.0)), ball=WassersteinBall(0.1)
        ),
    }
    for name, model in others.items():
        yield f"estimator, {name}", lambda model=model: fitted(model, 8, 50, 6)
    yield (
        "automatic, counts with ties",
        lambda: fitted(RobustNewsvendor(1.0, 0.2), 11, 40, 2, whole=True),
    )
    yield "automatic, weights", lambda: fitted(RobustNewsvendor(1.0, 0.2), 11, 40, 5, weight=True)
    yield "automatic, products", lambda: fitted(RobustNewsvendor(1.0, 0.2), 11, 40, 5, products=2)
    yield "automatic, frozen", lambda: fitted(RobustNewsvendor(1.0, 0.2, frozen=(0, 1)), 12, 80, 5)
    data = load_yaz()
    for product in ("lamb", "steak", "fish", "koefte"):
        for first in (500, 565):
            yield (
                f"restaurant, {product}, from day {first}",
                lambda product=product, first=first: (
                    RobustNewsvendor(15, 10)
                    .fit(data.contexts[first:600], data.product(product)[first:600])
                    .predict(data.contexts[600:620])
                ),
            )
    yield "prepared", lambda: prepared(RobustNewsvendor(1.0, 0.2, radius=0.1))
    yield "prepared, automatic", lambda: prepared(RobustNewsvendor(1.0, 0.2))
    yield "prepared forest", lambda: prepared(Forest(1.0, 0.2, n_trees=20))


def prepared(model):
    rng = np.random.default_rng(0)
    table = [
        [float(rng.normal(20, 5)), str(rng.choice(["north", "south", "west"])), float(rng.integers(3))]
        for _ in range(80)
    ]
    y = [heat + 5 * (place == "south") + rng.normal() for heat, place, _ in table]
    return PreparedPolicy(model, categories=(2,)).fit(table[:60], y[:60]).predict(table[60:])


def baselines() -> Iterator[Case]:
    for name, model in {
        "constant": SAA(1.0, 0.3), "erm": ERM(1.0, 0.3), "erm no intercept": ERM(1.0, 0.3, intercept=False),
        "erm least norm": ERM(tie_break="minimum_norm"),
        "erm l1": ERM(1.0, 0.3, l1=0.05), "erm l1 auto": ERM(1.0, 0.3, l1="auto"),
        "forest": Forest(1.0, 0.3, n_trees=30), "shapley": Shapley(1.0, 0.3, radius=0.1),
        "shapley auto": Shapley(1.0, 0.3),
    }.items():  # fmt: skip
        yield f"{name}, 40x5", lambda model=model: fitted(model, 13, 40, 5)
        if name not in ("erm", "shapley auto"):
            yield f"{name}, counts, 30x2", lambda model=model: fitted(model, 14, 30, 2, whole=True)


def streams() -> Iterator[Case]:
    for order in (1, 2):
        for name, options in {
            "defaults": {"ball": None},
            "falling radius": {"radius": DecayingRadius(20)},
            "constant step": {"step": ConstantStep(0.05)},
            "falling step": {"step": DecayingStep(0.5)},
            "window": {"drift": Window(60)},
            "restart": {"drift": Restart()},
            "no intercept": {"policy": Linear(intercept=False)},
            "box": {"ball": WassersteinBall(0.2, order=order, support=Box(-100.0, 100.0))},
            "frozen": {"ball": WassersteinBall(0.2, order=order, frozen=(1,))},
            "own units": {"ball": WassersteinBall(0.2, order=order, scale=False)},
            "limits": {"policy": Linear(decisions=Box(2.0, 8.0))},
            "features": {"policy": Linear(features=RandomFourier(10))},
        }.items():
            given = {"ball": WassersteinBall(0.2, order=order), **options}
            if name == "defaults" and order == 1:
                continue
            yield f"{name}, order {order}", lambda given=given: streamed(given)
    yield "two products", lambda: streamed({}, products=2)
    yield "gaps", lambda: with_gaps()


def streamed(given, products=1):
    X, y, new = rows(21, 300, 4, products)
    cost = Newsvendor(1.0, 0.2)
    policy = OnlinePolicy(
        cost, given.get("policy"), **{k: v for k, v in given.items() if k != "policy"}
    )
    early = policy.decide_and_learn(X, y)
    return np.concatenate([early[::15], policy.decide(new)])


def with_gaps():
    X, y, new = rows(22, 200, 3)
    policy = OnlinePolicy(Newsvendor(1.0, 0.2))
    rng = np.random.default_rng(0)
    for x, outcome in zip(X, y, strict=True):
        known = {f"k{j}": v for j, v in enumerate(x) if rng.random() < 0.8}
        known["day"] = str(rng.choice(["mon", "tue"]))
        policy.learn_one(known, float(outcome))
    return np.array([policy.decide_one({"k0": x[0], "k2": x[2], "day": "mon"}) for x in new])


def general() -> Iterator[Case]:
    short = DASGD(max_steps=300)
    for order in (1, 2):
        for name, (cost, policy) in {
            "newsvendor, max affine": (Newsvendor(1.0, 0.2), MaxAffine(3)),
            "newsvendor, mlp": (Newsvendor(1.0, 0.2), MLP((8,))),
            "newsvendor, sigmoid": (Newsvendor(1.0, 0.2), Sigmoid(0.0, 10.0)),
            "newsvendor, elu": (Newsvendor(1.0, 0.2), ELU()),
        }.items():
            yield (
                f"{name}, order {order}",
                lambda a=(cost, policy, order): general_fit(
                    a[0], a[1], WassersteinBall(0.1, order=a[2]), short
                ),
            )
    yield "quadratic", lambda: general_fit(Quadratic(), Linear(), WassersteinBall(0.1), short)
    yield (
        "cvar simplex",
        lambda: general_fit(
            MeanCVaR(), Linear(decisions=Simplex()), WassersteinBall(0.1), short, products=3
        ),
    )
    yield (
        "budget",
        lambda: general_fit(
            Newsvendor(1.0, 0.2), Linear(decisions=Budget(8.0)), WassersteinBall(0.1), short, products=2
        ),
    )
    yield (
        "pricing",
        lambda: general_fit(
            Pricing(1.0, 0.5), Linear(decisions=Box(1.0, 4.0)), WassersteinBall(0.1), short
        ),
    )


def general_fit(cost, policy, ball, solver, products=1):
    X, y, new = rows(31, 40, 3, products)
    return RobustPolicy(cost, policy, ball=ball, solver=solver).fit(X, y).predict(new)


KINDS: dict[str, Callable[[], Iterator[Case]]] = {
    "primal dual": primal_dual,
    "dasgd": dasgd,
    "deterministic": deterministic,
    "estimators": estimators,
    "baselines": baselines,
    "streams": streams,
    "general": general,
}


def cases(kind: str) -> dict[str, Callable[[], np.ndarray]]:
    """Return the cases of one kind by name."""
    return {f"{kind}: {name}": make for name, make in KINDS[kind]()}


def decisions(make: Callable[[], np.ndarray]) -> np.ndarray:
    """Return what a case decides, whatever it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SurefootWarning)
        return np.asarray(make(), dtype=np.float64)


def processor() -> str:
    """The kind of processor: sums of compiled loops round differently on another one."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")


if __name__ == "__main__":
    found = {name: decisions(make) for kind in KINDS for name, make in cases(kind).items()}
    np.savez_compressed(RECORD, **found, processor=processor())
