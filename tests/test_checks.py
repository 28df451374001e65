"""The conformance checks pass our own parts, and each kind of broken part fails by name."""

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

from surefoot import (
    DASGD,
    Box,
    Budget,
    Contamination,
    ConvexProgram,
    Exact,
    PrimalDual,
    WassersteinBall,
)
from surefoot.ambiguity import Adversary, AffineForm, AffineRows, AmbiguitySet
from surefoot.certificates import certify, make_certificate
from surefoot.checks import ConformanceError, check, checks_for
from surefoot.costs import (
    ConvexPiecewiseCost,
    Cost,
    CustomCost,
    MeanCVaR,
    Newsvendor,
    Pieces,
    Pricing,
    Quadratic,
    TieredNewsvendor,
)
from surefoot.io import codec
from surefoot.nominals import Empirical, Gaussian, Mixture, Nominal, Sampler, SmoothedBootstrap
from surefoot.policies import (
    ELU,
    MLP,
    CustomPolicy,
    Linear,
    MaxAffine,
    Policy,
    Polynomial,
    RandomFourier,
    Sigmoid,
)
from surefoot.problem import affine_forms, user_parameters, why_not_affine
from surefoot.solvers import CuttingPlanes, Solution, Solver

ROWS = Empirical(np.arange(12.0).reshape(6, 2), np.arange(6.0))


def stale(z, y):
    return ((z - y) ** 2).sum()


OURS = [
    Newsvendor(1.0, 0.2), Newsvendor((1.0, 2.0), 0.2, smoothing=0.5),
    TieredNewsvendor(((0, 1.0), (10, 3.0)), 0.2), Quadratic(2.0), MeanCVaR(), Pricing(2.0),
    Pricing(0.1, demand="exponential"), Pricing(sensitivity=None), CustomCost(stale),
    Linear(), Linear(intercept=False), Linear(features=Polynomial(2)), Linear(decisions=Box(0, 9)),
    Linear(offset=lambda X: X[:, :1]), MLP((3,), features=RandomFourier(5)), ELU(),
    Sigmoid(0.0, 9.0), MaxAffine(pieces=3, decisions=Budget(7.0)),
    CustomPolicy(lambda rng, x, z: {"w": np.zeros((x, z))}, lambda w, x: x @ w["w"]),
    ROWS, Gaussian.fit(ROWS.contexts, np.cos(ROWS.outcomes)),
    SmoothedBootstrap(ROWS.contexts, ROWS.outcomes), Mixture([ROWS, ROWS]),
    WassersteinBall(0.1), WassersteinBall(0.1, order=1), WassersteinBall(0.1, outcome_cost=1.0),
    WassersteinBall(0.1, support=Box(-9, 20)), WassersteinBall(0.1, frozen=(1,), scale=False),
    Contamination(0.1), Contamination(0.1, support=Box(-9, 20, outcome=(-50, 50))),
    PrimalDual(), DASGD(), DASGD(minibatch=4, gap_tol=0.05), Exact(), ConvexProgram(), CuttingPlanes(),
]  # fmt: skip


@pytest.mark.parametrize("part", OURS, ids=lambda part: repr(part).split(" at 0x")[0][:50])
def test_our_own_parts_pass(part):
    check(part)


@dataclass(frozen=True)
class Unsavable(Cost):
    """Registered, and made of what no file can hold."""

    names: frozenset = frozenset({"a"})

    def evaluate(self, decisions, outcomes, xp=np):
        return (decisions - outcomes).sum(axis=-1)


def test_a_registered_part_must_be_one_that_can_be_saved(monkeypatch):
    check(Unsavable())
    monkeypatch.setattr(codec, "_CLASSES", {**codec._CLASSES, "Unsavable": Unsavable})
    with pytest.raises(ConformanceError, match="^a registered part must be one that can be saved"):
        check(Unsavable())


def test_checks_are_named_and_run_one_by_one():
    names = [name for name, _ in checks_for(Newsvendor(1.0, 0.2))]
    assert "cost_pieces" in names
    assert len(set(names)) == len(names)


def test_what_is_no_part_is_refused():
    with pytest.raises(ConformanceError, match="^checks are for costs, .*, got 3.$"):
        check(3)


# ---------------------------------------------------------------- costs


@dataclass(frozen=True)
class Capped(ConvexPiecewiseCost):
    """Says that it is convex, and levels off far out."""

    def pieces(self, n_products):
        return (Pieces.kinked(0.2, 1.0),) * n_products

    def evaluate(self, decisions, outcomes, xp=np):
        return xp.minimum(super().evaluate(decisions, outcomes, xp), 10.0)


@dataclass(frozen=True)
class Negative(Cost):
    """Says that it costs nothing at least, and does less far out."""

    def evaluate(self, decisions, outcomes, xp=np):
        return (100.0 - (decisions - outcomes) ** 2).sum(axis=-1)

    def floor(self, n_products=1):
        return 0.0


@dataclass(frozen=True)
class Steep(Cost):
    """Says that it grows like a line, and grows like a square."""

    def evaluate(self, decisions, outcomes, xp=np):
        return ((decisions - outcomes) ** 2).sum(axis=-1)

    def growth(self):
        return 1.0


@dataclass(frozen=True)
class Bent(Cost):
    """Says that it bends little, and bends more far out."""

    def evaluate(self, decisions, outcomes, xp=np):
        return ((decisions - outcomes) ** 4).sum(axis=-1)

    def curvature(self):
        return 200.0


@dataclass(frozen=True)
class Waved(Cost):
    """Says that it is convex, and is not."""

    def evaluate(self, decisions, outcomes, xp=np):
        return xp.sin(decisions - outcomes).sum(axis=-1)

    def convex(self):
        return True


@dataclass(frozen=True)
class Ranked(Cost):
    """Looks at other rows."""

    def evaluate(self, decisions, outcomes, xp=np):
        return (decisions - outcomes).sum(axis=-1) - (decisions - outcomes).mean()


@dataclass(frozen=True)
class Rooted(Cost):
    """Has no derivative where decisions meet outcomes exactly."""

    def evaluate(self, decisions, outcomes, xp=np):
        return xp.sqrt(xp.abs(decisions - outcomes)).sum(axis=-1)


@dataclass(frozen=True)
class Listed(Cost):
    """Cannot be hashed."""

    weights: list

    def evaluate(self, decisions, outcomes, xp=np):
        return (decisions - outcomes).sum(axis=-1)


@dataclass
class Thawed(Cost):
    """Can be changed."""

    weight: float = 1.0

    def evaluate(self, decisions, outcomes, xp=np):
        return (decisions - outcomes).sum(axis=-1)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (Capped(), "evaluate must be the sum of the pieces"),
        (Negative(), r"no cost may be below floor\(\)"),
        (Steep(), r"no cost may grow faster than \|z\|\^1"),
        (Bent(), "second derivatives must be <= 200"),
        (Waved(), "may not lie above its chords"),
        (Ranked(), "the cost of a row must not depend on other rows"),
        (Rooted(), "evaluate must have a finite derivative"),
        (Listed([1.0]), "Listed must be hashable"),
        (Thawed(), "Thawed must be a frozen dataclass"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_broken_costs_fail(cost, message):
    with pytest.raises(ConformanceError, match=message):
        check(cost)


# ---------------------------------------------------------------- policies


@dataclass(frozen=True)
class Affine(Policy):
    """A sound policy, from which broken ones are made."""

    def initial(self, rng, n_columns, n_decisions):
        return {"theta": np.zeros((n_columns, n_decisions))}

    def raw(self, trained, units, inputs, xp):
        return inputs @ trained["theta"] + units["centre"]


class TwoMinds(Affine):
    """Decides otherwise in JAX, which the start does not show."""

    def raw(self, trained, units, inputs, xp):
        return (1.0 if xp is np else 2.0) * (inputs @ trained["theta"]) + units["centre"]


class Crowd(Affine):
    """Looks at the mean of the batch."""

    def raw(self, trained, units, inputs, xp):
        return (inputs - inputs.mean(axis=0)) @ trained["theta"] + units["centre"]


class Escaping(Affine):
    """Leaves its limits as soon as it has learned something."""

    def evaluate(self, trained, units, inputs, xp):
        return self.raw(trained, units, inputs, xp) + 1e3 * (inputs @ trained["theta"])


class Rolling(Affine):
    """Starts where no generator told it to."""

    def initial(self, rng, n_columns, n_decisions):
        return {"theta": np.random.default_rng().normal(size=(n_columns, n_decisions))}


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (TwoMinds(), "decide the same in numpy and jax.numpy"),
        (Crowd(), "the decision of a row must not depend on other rows"),
        (Escaping(decisions=Box(0, 100)), "decisions must lie within their limits"),
        (Rolling(), "initial must depend on the generator alone"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_broken_policies_fail(policy, message):
    check(Affine(decisions=policy.decisions))
    with pytest.raises(ConformanceError, match=message):
        check(policy)


# ---------------------------------------------------------------- nominals


class Leaking(Nominal):
    """Hands out its own rows, for anyone to change."""

    n_columns, n_products = 1, 1

    def __init__(self):
        self.rows = np.ones((7, 1))

    def sample(self, rng, size):
        return self.rows[:size], rng.normal(size=(len(self.rows[:size]), 1))


class Stubborn(Nominal):
    """Draws as many as it likes."""

    n_columns, n_products = 1, 1

    def sample(self, rng, size):
        return rng.normal(size=(7, 1)), rng.normal(size=(7, 1))


@pytest.mark.parametrize(
    ("nominal", "message"),
    [
        (Leaking(), "draws must not be changed by what is done to earlier ones"),
        (Stubborn(), r"sample must return shapes \(\(1, 1\), \(1, 1\)\)"),
        (Sampler(lambda rng, size: (np.full((size, 1), np.nan),) * 2, n_columns=1), "finite"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_broken_nominals_fail(nominal, message):
    with pytest.raises(Exception, match=message):
        check(nominal)


# ---------------------------------------------------------------- ambiguity sets


@dataclass(frozen=True)
class Misread(AmbiguitySet):
    """Every outcome may be off by the radius: sound, and broken by ``fault``."""

    radius: float
    fault: str = ""

    def __post_init__(self):
        self.check_radius()

    def form(self, rows, movable):
        own = {field.name: getattr(rows, field.name) for field in fields(AffineRows)}
        return MisreadForm(**own, error=self.radius / rows.outcome_unit, fault=self.fault)


@dataclass(frozen=True, eq=False, kw_only=True)
class MisreadForm(AffineForm):
    error: float
    fault: str

    def adversary(self, theta, intercept):
        sign = -1.0 if self.fault == "kind" else 1.0
        residuals, n = self.residuals(theta, intercept), len(self.outcomes)
        moves = [self.pieces.evaluate(residuals + step) for step in (self.error, -self.error)]
        up = sign * moves[0] >= sign * moves[1]
        value = float(self.weights @ np.where(up, *moves))
        return Adversary(
            value=value, expected_cost=value, multiplier=np.zeros(1), transport_cost=np.zeros(1),
            rows=np.arange(n), products=np.zeros(n, dtype=np.int64), contexts=self.contexts,
            outcomes=self.outcomes + np.where(up, -self.error, self.error),
            weights=self.weights * (1.1 if self.fault == "heavy" else 1.0),
            distances=np.full(n, self.error),
        )  # fmt: skip

    def lower_bound(self, slopes):
        if self.fault == "hopeful":  # the best constant order is not the best policy
            order = self.constant_order()[0]
            return 0.9 * self.worst_value(np.zeros(len(self.scale)), order)[0]
        ones = np.ones((len(slopes), int(self.intercept)))
        columns, root = np.hstack([self.contexts, ones]), np.sqrt(self.weights)
        part = np.linalg.lstsq(columns * root[:, None], slopes * root, rcond=None)[0]
        u = slopes - columns @ part
        if self.fault != "untrimmed":
            u = u / max(1.0, u.max() / self.pieces.up, -u.min() / self.pieces.down)
        lines = np.asarray(self.pieces.slopes)
        level = np.interp(u, lines, self.pieces.intercepts + self.error * np.abs(lines))
        return max(self.pieces.least, float(self.weights @ (level - u * self.outcomes)))

    def at_radius(self, radius):
        unit = 1.0 if self.fault == "units" else self.outcome_unit
        return replace(self, error=radius / unit)


def test_a_set_of_one_s_own_passes():
    check(Misread(0.1))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("kind", "the worst case must grow with the radius"),
        ("heavy", "the weights of the atoms must sum to one"),
        ("hopeful", "a lower bound of .* is above the worst case .* of a policy"),
        ("untrimmed", "a lower bound of .* is above the worst case .* of a policy"),
        ("units", "at_radius must be the set at that radius"),
    ],
)
def test_broken_sets_fail(fault, message):
    with pytest.raises(ConformanceError, match=message):
        check(Misread(0.1, fault))


# ---------------------------------------------------------------- solvers


@dataclass(frozen=True)
class Constant(Solver):
    """The best constant order: sound, and broken by ``fault``."""

    fault: str = ""
    gap_tol: float = 0.01

    def why_not(self, problem):
        if self.fault == "picky":
            return "it does not like it"
        return why_not_affine(problem)

    def solve(self, problem, seed=0):
        forms = affine_forms(problem)
        orders = [form.constant_order() for form in forms]
        noise = float(np.random.default_rng().normal()) if self.fault == "restless" else 0.0
        policies = tuple((np.zeros(3), order + noise) for order, _ in orders)
        good = certify(forms, policies, [slopes for _, slopes in orders])
        made = {
            "proud": make_certificate(good.upper, good.upper, 0.0, "exact"),
            "low": make_certificate(0.5 * good.upper, 0.5 * good.lower, 0.0, "exact"),
            "gapless": replace(good, gap=0.0),
        }
        certificate = made.get(self.fault, good)
        return Solution(
            parameters=user_parameters(forms, policies), multiplier=np.zeros(len(forms)),
            certificate=certificate, n_steps=0,
            converged=True if self.fault == "sure" else certificate.gap <= self.gap_tol,
            status="" if self.fault == "silent" else "Constant did not look.",
        )  # fmt: skip


def test_a_solver_of_one_s_own_passes():
    check(Constant())


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("proud", "no policy is below .*, and one has a worst case of"),
        ("low", "the certificate says at most .*, the worst case is"),
        ("gapless", "the gap must be that of the bounds"),
        ("sure", "converged must be whether the gap .* is within gap_tol"),
        ("silent", "status must be a sentence"),
        ("restless", "the answer must depend on the problem and the seed alone"),
        ("picky", "why_not must be None for some newsvendor problem"),
    ],
)
def test_broken_solvers_fail(fault, message):
    with pytest.raises(ConformanceError, match=message):
        check(Constant(fault))


def test_a_solver_that_does_what_it_refused_fails():
    @dataclass(frozen=True)
    class Rash(Constant):
        def why_not(self, problem):
            return "it needs a radius" if problem.radius == 0 else None

    with pytest.raises(ConformanceError, match="solve must refuse what why_not refuses"):
        check(Rash())
