"""Affine policies with kinked costs: exact worst cases, compiled streams."""

from typing import Any, Self

import numpy as np

from surefoot.certificates import worst_case, worst_case_value
from surefoot.estimators.learner import AdversarialSample, Learner, Lesson
from surefoot.estimators.recipe import Recipe
from surefoot.estimators.stream import Stream
from surefoot.nominals import Empirical, Nominal
from surefoot.policies import LinearParameters
from surefoot.problem import AffineProblem, affine_problems, user_parameters
from surefoot.solvers.adaptive import pack
from surefoot.typing import BoolArray, FloatArray


class AffineLearner(Learner):
    """An affine policy with a kinked cost: one compiled stream for each product."""

    def __init__(
        self,
        recipe: Recipe,
        radius: float,
        geometry: tuple[FloatArray, BoolArray],
        streams: list[Stream],
        parameters: LinearParameters,
    ) -> None:
        self.recipe, self.radius, self.streams = recipe, radius, streams
        self.scale, self.movable = geometry
        self.parameters = parameters

    @classmethod
    def after_fit(cls, recipe: Recipe, radius: float, answer: Any) -> "AffineLearner":
        """Go on from the solution of affine problems."""
        streams = [
            Stream.resume(problem, product.theta, product.intercept)
            for problem, product in zip(answer.problems, answer.products, strict=True)
        ]
        first = answer.problems[0]
        return cls(recipe, radius, (first.scale, first.movable), streams, answer.parameters)

    @classmethod
    def from_first_rows(cls, recipe: Recipe, radius: float, nominal: Nominal) -> "AffineLearner":
        """Begin at the constant order of the first rows."""
        problems = affine_problems(recipe.problem(nominal, radius))
        streams = [Stream.start(problem) for problem in problems]
        parameters = user_parameters(problems, tuple(stream.policy() for stream in streams))
        return cls(recipe, radius, (problems[0].scale, problems[0].movable), streams, parameters)

    @classmethod
    def restore(
        cls, recipe: Recipe, radius: float, n_columns: int, arrays: dict[str, FloatArray]
    ) -> Self:
        """Return the learner that ``arrays`` describes."""
        parameters = LinearParameters(arrays["theta"], arrays["intercept"])
        geometry = (arrays["scale"], np.asarray(arrays["movable"], dtype=bool))
        learner = cls(recipe, radius, geometry, [], parameters)
        learner.streams = [
            Stream.restore(
                problem,
                arrays[f"stream_{j}_mean"],
                arrays[f"stream_{j}_theta"],
                arrays[f"stream_{j}_numbers"],
            )
            for j, problem in enumerate(learner._one_row(n_columns))
        ]
        return learner

    def _one_row(self, n_columns: int) -> tuple[AffineProblem, ...]:
        """Return the fitted affine problems without their rows (one row of zeros inside the box)."""
        box, products = self.recipe.ball.support, self.parameters.theta.shape[1]
        row, outcome = np.zeros(n_columns), 0.0
        if box is not None:
            row = np.clip(row, *box.arrays(len(self.scale)))
            outcome = float(np.clip(outcome, *box.outcome))
        return self._problems(Empirical(row[None, :], np.full((1, products), outcome)), self.radius)

    def _problems(
        self, nominal: Empirical, radius: float, *, merge: bool = True
    ) -> tuple[AffineProblem, ...]:
        problem = self.recipe.problem(nominal, radius)
        return affine_problems(problem, self.scale, self.movable, merge=merge)

    def worst_case(self, nominal: Empirical, radius: float) -> AdversarialSample:
        """Return the worst distribution for each product, exactly."""
        problems = self._problems(nominal, radius, merge=False)
        theta, intercept = self.parameters.theta, self.parameters.intercept
        parts = [
            worst_case(problem, theta[:, j] * problem.scale, float(intercept[j]))
            for j, problem in enumerate(problems)
        ]
        features = self.recipe.policy.transform(nominal.contexts)
        # Moves are added to the user's own numbers, so that what stays still stays to the last bit.
        contexts = [
            features[part.rows] + (part.contexts - problem.contexts[part.rows]) * problem.scale
            for part, problem in zip(parts, problems, strict=True)
        ]
        # So are outcomes, which the affine problem has cut to the limits on decisions.
        outcomes = [
            nominal.outcomes[part.rows, j] + (part.outcomes - problem.outcomes[part.rows])
            for j, (part, problem) in enumerate(zip(parts, problems, strict=True))
        ]
        unavoidable = sum(problem.unavoidable for problem in problems)
        return AdversarialSample(
            value=sum(part.value for part in parts) + unavoidable,
            expected_cost=sum(part.expected_cost for part in parts) + unavoidable,
            multiplier=np.array([part.multiplier for part in parts]),
            transport_cost=np.array([part.transport_cost for part in parts]),
            rows=np.concatenate([part.rows for part in parts]),
            products=np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts]),
            contexts=np.vstack(contexts),
            outcomes=np.concatenate(outcomes),
            weights=np.concatenate([part.weights for part in parts]),
            distances=np.concatenate([part.distances for part in parts]),
        )

    def learn(self, X: FloatArray, y: FloatArray) -> Lesson:
        """Take one update for each row and product."""
        problems = self._problems(Empirical(X, y), self.radius)  # refuses before anything is learned
        scaled = self.recipe.policy.transform(X) / self.scale
        limits = self.recipe.policy.decisions
        outcomes = y if limits is None else limits.map_into(y)
        for j, stream in enumerate(self.streams):
            stream.learn(scaled, outcomes[:, j])
        policies = tuple(stream.policy() for stream in self.streams)
        self.parameters = user_parameters(problems, policies)
        values = [
            worst_case_value(problem, *policy)
            for problem, policy in zip(problems, policies, strict=True)
        ]
        upper = sum(value for value, _ in values) + sum(p.unavoidable for p in problems)
        return Lesson(self.parameters, upper, np.array([gamma for _, gamma in values]))

    def arrays(self) -> dict[str, FloatArray]:
        """Return parameters, geometry and streams."""
        arrays: dict[str, Any] = {
            "theta": self.parameters.theta,
            "intercept": self.parameters.intercept,
            "scale": self.scale,
            "movable": self.movable,
        }
        for j, stream in enumerate(self.streams):
            arrays[f"stream_{j}_theta"] = stream.state.theta
            arrays[f"stream_{j}_numbers"] = pack(stream.state)
            arrays[f"stream_{j}_mean"] = stream.arrangement.mean
        return arrays
