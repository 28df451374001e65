"""Any policy and cost: worst cases by gradient ascent, streams through the general engine."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from surefoot.certificates import MovedRows, costs_of, distances_of, dual_value
from surefoot.estimators.learner import AdversarialSample, Learner, Lesson
from surefoot.estimators.recipe import Recipe
from surefoot.nominals import Empirical, Nominal
from surefoot.policies import Linear, PolicyParameters, Units
from surefoot.problem import GeneralProblem, general_problem
from surefoot.solvers import DASGD
from surefoot.solvers.general import GeneralSolution
from surefoot.solvers.general_run import GeneralRun, GeneralSettings, default_adam
from surefoot.solvers.optimizers import SGD, Adam
from surefoot.typing import BoolArray, FloatArray

# After a fit, a neural policy learns on from a stream with this share of its learning rate.
STREAM_RATE_SHARE = 0.1
# Rows go through the compiled step in pieces of these lengths, so that few lengths are compiled.
PIECES = (256, 16, 1)


@dataclass
class GeneralLearner(Learner):
    """Any policy and cost: one stream through the general engine.

    Attributes
    ----------
    units, scale, movable
        The geometry that the fit found.
    start
        Where the cost's own variables start, and their unit.
    trained, auxiliary
        The policy's parameters and the cost's own variables.
    leaves
        The arrays of the run's state.
    fitted
        Whether a fit came first: a stream then takes smaller steps.
    """

    recipe: Recipe
    radius: float
    units: Units
    scale: FloatArray
    movable: BoolArray
    start: tuple[FloatArray, FloatArray]
    trained: Any
    auxiliary: FloatArray
    leaves: tuple[FloatArray, ...]
    fitted: bool

    @classmethod
    def after_fit(cls, recipe: Recipe, radius: float, answer: GeneralSolution) -> "GeneralLearner":
        """Go on from a solution of the general engine."""
        problem = answer.problem
        return cls(
            recipe, radius, problem.units, problem.scale, problem.movable, problem.auxiliary,
            answer.trained, answer.auxiliary, answer.leaves, fitted=True,
        )  # fmt: skip

    @classmethod
    def from_first_rows(cls, recipe: Recipe, radius: float, nominal: Nominal) -> "GeneralLearner":
        """Begin at the policy's own start, in the units of the first rows."""
        problem = general_problem(recipe.problem(nominal, radius))
        learner = cls(
            recipe, radius, problem.units, problem.scale, problem.movable, problem.auxiliary,
            None, problem.auxiliary[0], (), fitted=False,
        )  # fmt: skip
        learner._take(GeneralRun([problem], learner._settings(), [0]))
        return learner

    @property
    def parameters(self) -> Any:
        """The parameters as the policy takes them."""
        policy = self.recipe.policy
        if isinstance(policy, Linear):
            return policy.in_user_units(self.trained, self.units.tree())
        return PolicyParameters(self.trained, self.units, self.auxiliary)

    def _settings(self) -> GeneralSettings:
        """Return how a stream steps: one row at a time, with a learning rate that does not fall."""
        solver = self.recipe.solver if isinstance(self.recipe.solver, DASGD) else DASGD()
        settings = replace(solver.general_settings(), minibatch=1)
        optimizer = settings.optimizer
        if optimizer is None and not isinstance(self.recipe.policy, Linear):
            optimizer = default_adam(settings.max_steps)
        if isinstance(optimizer, Adam):
            share = STREAM_RATE_SHARE if self.fitted else 1.0
            optimizer = Adam(learning_rate=share * optimizer.learning_rate, decay=False)
        if isinstance(optimizer, SGD) and optimizer.decay:  # after a fit it has fallen to zero
            optimizer = SGD(learning_rate=STREAM_RATE_SHARE * optimizer.learning_rate, decay=False)
        return replace(settings, optimizer=optimizer)

    def _problem(self, nominal: Empirical, radius: float) -> GeneralProblem:
        problem = self.recipe.problem(nominal, radius)
        found = general_problem(problem, 0, self.scale, self.movable, self.units)
        return replace(found, auxiliary=self.start)

    def _take(self, run: GeneralRun) -> None:
        """Remember where a run stands."""
        self.leaves = run.leaves(0)
        tree = run.policy_of(0)
        self.trained = tree["policy"]
        self.auxiliary = self.start[0] + self.start[1] * tree["auxiliary"]

    def _judged(self, problem: GeneralProblem) -> tuple[float, MovedRows]:
        """Return the multiplier and the moved rows of the policy."""
        run = GeneralRun([problem], self._settings(), [0])
        unit = np.where(self.start[1] != 0.0, self.start[1], 1.0)
        tree = {"policy": self.trained, "auxiliary": (self.auxiliary - self.start[0]) / unit}
        judged = run.judge_single(tree)
        return float(judged.multiplier[0]), run.moved_rows(judged, 0)

    def worst_case(self, nominal: Empirical, radius: float) -> AdversarialSample:
        """Return the worst distribution that gradient ascent finds."""
        problem = self._problem(nominal, radius)
        gamma, rows = self._judged(problem)
        costs = costs_of(
            problem, self.trained, self.auxiliary, rows.moved_contexts, rows.moved_outcomes
        )
        distances = distances_of(problem, rows)
        outcomes = rows.moved_outcomes
        return AdversarialSample(
            value=dual_value(problem, self.trained, self.auxiliary, gamma, rows),
            expected_cost=float(rows.weights @ costs),
            multiplier=np.array([gamma]),
            transport_cost=np.array([rows.weights @ distances]),
            rows=np.flatnonzero(nominal.weights > 0.0),
            products=np.zeros(len(distances), dtype=np.int64),
            contexts=rows.moved_contexts,
            outcomes=outcomes[:, 0] if outcomes.shape[1] == 1 else outcomes,
            weights=rows.weights,
            distances=distances,
        )

    def learn(self, X: FloatArray, y: FloatArray) -> Lesson:
        """Take one update for each row."""
        problem = self._problem(Empirical(X, y), self.radius)
        run = GeneralRun([problem], self._settings(), [0])
        run.restore(self.leaves)
        place = 0
        while place < len(X):
            size = next(piece for piece in PIECES if piece <= len(X) - place)
            rows = slice(place, place + size)
            failed = run.learn(problem.contexts[None, rows], problem.outcomes[None, rows])
            if failed is not None:
                run.refuse_failure(failed)
            place += size
        self._take(run)
        gamma, moved = self._judged(problem)
        upper = dual_value(problem, self.trained, self.auxiliary, gamma, moved)
        return Lesson(self.parameters, upper, np.array([gamma]))

    def arrays(self) -> dict[str, FloatArray]:
        """Return parameters, units, geometry and the state of the run."""
        arrays: dict[str, Any] = {f"trained_{name}": value for name, value in self.trained.items()}
        arrays |= {f"units_{name}": value for name, value in self.units.tree().items()}
        arrays |= {f"leaf_{k}": leaf for k, leaf in enumerate(self.leaves)}
        return arrays | {
            "scale": self.scale,
            "movable": self.movable,
            "auxiliary": self.auxiliary,
            "auxiliary_start": self.start[0],
            "auxiliary_unit": self.start[1],
            "fitted": np.array([float(self.fitted)]),
        }

    @classmethod
    def restore(
        cls, recipe: Recipe, radius: float, n_columns: int, arrays: dict[str, FloatArray]
    ) -> Self:
        """Return the learner that ``arrays`` describes; JAX is not needed until it learns on."""
        del n_columns
        count = sum(name.startswith("leaf_") for name in arrays)
        return cls(
            recipe=recipe,
            radius=radius,
            units=Units(**_named("units_", arrays)),
            scale=arrays["scale"],
            movable=np.asarray(arrays["movable"], dtype=bool),
            start=(arrays["auxiliary_start"], arrays["auxiliary_unit"]),
            trained=_named("trained_", arrays),
            auxiliary=arrays["auxiliary"],
            leaves=tuple(arrays[f"leaf_{k}"] for k in range(count)),
            fitted=bool(arrays["fitted"][0]),
        )


def _named(prefix: str, arrays: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the arrays whose names begin with a prefix, without it."""
    return {
        name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)
    }
