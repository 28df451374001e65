"""Ambiguity sets and solvers as a hurried author writes them: each is wrong in one way, which is named."""

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

from surefoot import Box
from surefoot.ambiguity import Adversary, AffineForm, AffineRows, AmbiguitySet
from surefoot.certificates import certify
from surefoot.checks import ConformanceError, check
from surefoot.exceptions import UnsupportedProblemError
from surefoot.io import codec
from surefoot.problem import affine_forms, user_parameters, why_not_affine
from surefoot.solvers import Solution, Solver


@dataclass(frozen=True)
class Misread(AmbiguitySet):
    """Sound: every outcome may be off by the radius."""

    radius: float
    fault: str = ""
    support: Box | None = None

    def __post_init__(self):
        if self.fault != "radius":
            self.check_radius()

    def form(self, rows, movable):
        own = {field.name: getattr(rows, field.name) for field in fields(AffineRows)}
        if self.fault == "form":
            return rows
        return MisreadForm(**own, error=self.radius / rows.outcome_unit, fault=self.fault)


@dataclass(frozen=True, eq=False, kw_only=True)
class MisreadForm(AffineForm):
    error: float
    fault: str

    def moves(self, theta, intercept):
        if self.fault == "linear":
            return np.full(len(self.outcomes), self.error)
        residuals = self.residuals(theta, intercept)
        over, short = (self.pieces.evaluate(residuals + step) for step in (self.error, -self.error))
        return np.where(over >= short, -self.error, self.error)

    def adversary(self, theta, intercept):
        fault, n, step = self.fault, len(self.outcomes), self.moves(theta, intercept)
        if fault == "rows change":
            self.outcomes[:] += 1e-3 * self.error
        outcomes, contexts, weights = self.outcomes + step, self.contexts, self.weights
        value = self.mean_cost(self.residuals(theta, intercept) - step)
        if fault == "noise":
            value += float(np.random.default_rng().uniform(0.0, 1e-3)) * self.error
        elif fault == "concave" and self.error > 0.0:
            value += 10.0 * self.error * (1.0 - np.exp(-float(np.linalg.norm(theta))))
        elif fault == "low":
            value *= 1.0 - 0.1 * self.error
        elif fault == "raises":
            raise ZeroDivisionError("division by zero")
        elif fault == "optimist":
            value = self.mean_cost(self.residuals(theta, intercept))
        parts = {
            "value": value, "expected_cost": 2.0 * value if fault == "dear" else value,
            "multiplier": np.zeros(1), "transport_cost": np.zeros(1), "rows": np.arange(n),
            "products": np.zeros(n, dtype=np.int64), "contexts": contexts, "outcomes": outcomes,
            "weights": weights, "distances": np.abs(step),
        }  # fmt: skip
        parts |= {
            "shift": {"contexts": contexts + 1e3},
            "gone": {"outcomes": np.full(n, np.inf)},
            "count": {"weights": np.append(weights, 0.0)},
            "rows": {"rows": np.arange(n) + 5},
            "negative": {"distances": -1.0 - np.abs(step)},
            "light": {"weights": 0.5 * weights, "expected_cost": 0.5 * value},
            "minus": {"weights": np.r_[-weights[0], weights[1:-1], weights[-1] + 2.0 * weights[0]]},
        }.get(fault, {})
        return tuple(parts.values()) if fault == "tuple" else Adversary(**parts)

    def worst_value(self, theta, intercept):
        value, multiplier = super().worst_value(theta, intercept)
        if self.fault == "value alone":
            return value
        return (float("nan") if self.fault == "nan" else value), multiplier

    def lower_bound(self, slopes):
        if self.fault == "bound":  # that of a constant order, which some policy undercuts
            return self.mean_cost(self.constant_order()[0] - self.outcomes)
        return None if self.fault == "no bound" else self.pieces.least

    def at_radius(self, radius):
        if self.fault == "at_radius":
            return self
        return None if self.fault == "nowhere" else replace(self, error=radius / self.outcome_unit)


SETS = {
    "radius": r"radius must be >= 0 \(call check_radius in __post_init__\), and -1.0 was taken",
    "form": "form must return an AffineForm, got AffineRows|Misread must keep this",
    "linear": "the worst case must grow with the radius",
    "rows change": "MisreadForm.adversary must .*|must depend on the policy alone|must not change the rows",
    "noise": "the worst case must|must depend on the policy alone",
    "concave": "the worst case must be convex in the policy|expected_cost must be that of the atoms",
    "low": "the worst case must grow with the radius|expected_cost must be that of the atoms",
    "raises": "MisreadForm.adversary must return the worst distribution .* got ZeroDivisionError",
    "optimist": "the worst case must grow with the radius, and is the nominal cost at any",
    "dear": "expected_cost must be that of the atoms",
    "shift": "atoms must lie in the support|expected_cost must be that of the atoms",
    "gone": "outcomes of the atoms must be finite",
    "count": r"contexts of the atoms must have shape \(21, 3\)",
    "rows": "rows of the atoms must be numbers of rows",
    "negative": "distances of the atoms must be >= 0",
    "light": "the weights of the atoms must sum to one",
    "minus": "the weights of the atoms must not be negative",
    "tuple": "MisreadForm.worst_value must .* got AttributeError",
    "value alone": "worst_value must return the worst case and the multiplier",
    "nan": "the worst case must be a number, got nan",
    "bound": "a lower bound of .* is above the worst case",
    "no bound": "a lower bound must be a number, got None|MisreadForm.lower_bound must",
    "at_radius": "a form's at_radius must be the set at that radius",
    "nowhere": "Misread must keep this: At radius zero .* got AttributeError",
}


@pytest.mark.parametrize("fault", SETS)
def test_a_wrong_set_is_named(fault):
    support = Box(-100.0, 100.0) if fault == "shift" else None
    with pytest.raises(ConformanceError, match=SETS[fault]):
        check(Misread(0.1, fault, support))


@dataclass(frozen=True)
class Nameless(AmbiguitySet):
    """Calls its radius something else."""

    size_of_it: float = 0.1
    radius = 0.1

    def form(self, rows, movable):
        return Misread(0.1).form(rows, movable)


def test_a_set_without_a_radius_is_named():
    with pytest.raises(ConformanceError, match="must have a field radius"):
        check(Nameless())


@dataclass(frozen=True)
class Constant(Solver):
    """Sound: the best constant order."""

    fault: str = ""
    gap_tol: float = 0.01

    def why_not(self, problem):
        if self.fault in ("other error", "other reason", "eager") and problem.radius == 0:
            return "it needs a radius"
        return True if self.fault == "flag" else why_not_affine(problem)

    def solve(self, problem, seed=0):
        fault, rng = self.fault, np.random.default_rng(seed)
        if self.why_not(problem) is not None and fault != "eager":
            if fault == "other error":
                raise RuntimeError("no radius")
            raise UnsupportedProblemError("Constant cannot solve this: never mind.")
        forms = affine_forms(problem)
        orders = [form.constant_order() for form in forms]
        if fault == "global":
            rng = np.random
        noise = rng.normal() if fault in ("global", "unseeded") else 0.0
        if fault == "unseeded":
            noise = np.random.default_rng().normal()
        policies = tuple(
            (np.zeros(len(form.scale)), order + noise)
            for form, (order, _) in zip(forms, orders, strict=True)
        )
        good = certify(forms, policies, [slopes for _, slopes in orders])
        parameters = user_parameters(forms, policies)
        if fault == "worse":
            parameters = replace(parameters, intercept=parameters.intercept + 1.0)
        elif fault == "nan":
            parameters = replace(parameters, intercept=parameters.intercept * np.nan)
        elif fault == "first product":
            parameters = replace(
                parameters, theta=parameters.theta[:, :1], intercept=parameters.intercept[:1]
            )
        elif fault == "other radius":
            calm = affine_forms(problem.at_radius(0.0))
            good = replace(certify(calm, policies, [s for _, s in orders]), upper=0.9 * good.upper)
        elif fault == "rows":
            problem.nominal.outcomes.flags.writeable = True
            problem.nominal.outcomes[:] += 1e-3
        elif fault == "bare":
            return parameters
        elif fault == "raw":
            return {}["solution"]
        certificate = {
            "proud": replace(good, lower=good.upper, gap=0.0),
            "loose": replace(good, upper=2.0 * good.upper, gap=2.0 * good.upper / good.lower - 1.0),
            "gapless": replace(good, gap=0.0), "uncertified": None,
        }.get(fault, good)  # fmt: skip
        return Solution(
            parameters=None if fault == "no parameters" else parameters,
            multiplier=np.full(len(forms), -1.0 if fault == "multiplier" else 0.0),
            certificate=certificate,
            converged={"sure": True, "vague": "yes"}.get(fault, good.gap <= self.gap_tol),
            status="" if fault == "silent" else "Constant did not look.",
            n_steps=None if fault == "steps" else 0,
        )


SOLVERS = {
    "flag": "why_not must return a sentence, or None where nothing is wrong, got True",
    "other error": "Constant.solve must solve the problem.* got RuntimeError: no radius",
    "other reason": "solve must refuse with the reason of why_not, 'it needs a radius'",
    "eager": "solve must refuse what why_not refuses",
    "global": "depend on the problem and the seed alone|global random state",
    "unseeded": "the answer must depend on the problem and the seed alone",
    "worse": "the certificate says at most .*, the worst case is",
    "nan": "parameters must give finite decisions",
    "first product": "parameters must decide for each product, shape .30, 2., got .30, 1.",
    "other radius": "the certificate says at most .*, the worst case is",
    "rows": "solve must not change the rows",
    "bare": "solve must return a Solution, got LinearParameters",
    "raw": "Constant.solve must solve the problem.* got KeyError: 'solution'",
    "proud": "no policy is below .*, and one has a worst case of",
    "loose": "a certificate that says exact must be",
    "gapless": "the gap must be that of the bounds",
    "uncertified": "certificate must be a Certificate, got None",
    "no parameters": "Constant must keep this: The answer is a Solution .* got AttributeError",
    "multiplier": "multiplier must be one number >= 0 for each adversary",
    "sure": "converged must be whether the gap .* is within gap_tol",
    "vague": "converged must be True, False or None, got 'yes'",
    "silent": "status must be a sentence, got ''",
    "steps": "n_steps must be a whole number >= 0, got None",
}


@pytest.mark.parametrize("fault", SOLVERS)
def test_a_wrong_solver_is_named(fault):
    with pytest.raises(ConformanceError, match=SOLVERS[fault]):
        check(Constant(fault))


def test_a_solver_without_a_seed_is_named():
    @dataclass(frozen=True)
    class Seedless(Constant):
        def solve(self, problem):
            return super().solve(problem)

    with pytest.raises(ConformanceError, match="Seedless must keep this: .* got TypeError"):
        check(Seedless())


@dataclass(frozen=True)
class Watched(Constant):
    """Registered in tests, with a field that no file holds."""

    names: frozenset = frozenset({"a"})


def test_a_registered_solver_must_be_one_that_can_be_saved(monkeypatch):
    check(Watched())
    monkeypatch.setattr(codec, "_CLASSES", {**codec._CLASSES, "Watched": Watched})
    with pytest.raises(ConformanceError, match="a registered part must be one that can be saved"):
        check(Watched())


def test_what_they_are_made_of_is_sound():
    check(Misread(0.1))
    check(Constant())
