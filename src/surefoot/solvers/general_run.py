"""Drive the general engine: problems side by side, each with its own numbers.

Nothing here knows a cost or a policy by name, and a single problem is a batch of one.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from surefoot.certificates import MovedRows
from surefoot.exceptions import InvalidInputError
from surefoot.policies import Linear
from surefoot.problem import GeneralProblem
from surefoot.random import rng_for
from surefoot.solvers.judgement import (
    CHECK_HALVINGS,
    CHECK_ROWS,
    CHUNK,
    JUDGE_STEPS,
    LAST_HALVINGS,
    LAST_ROWS,
    Judgement,
    best_multiplier,
    judged_rows,
    padded,
)
from surefoot.solvers.optimizers import SGD, Adam
from surefoot.tracing import keep_compiled, load_jax
from surefoot.typing import BoolArray, FloatArray

# Steps between two looks from the host: one compiled block serves runs of every length.
BLOCK = 250
# Adam's own learning rate is for runs of so many steps; others lie between these two.
USUAL_STEPS, RATES = 20_000, (1e-3, 3e-2)
# A multiplier that was found by judging steps on as if so many steps had led to it.
TRUSTED_STEPS = 10.0


def load_engine() -> Any:
    """Return the general engine's modules, or say which command installs what they need."""
    jax = load_jax("A policy or cost beyond Linear and Newsvendor")
    keep_compiled(jax)
    names = ("autodiff", "judging", "rules")
    modules = {name: importlib.import_module(f"surefoot.engines.{name}") for name in names}
    return SimpleNamespace(jax=jax, jnp=jax.numpy, **modules)


@dataclass(frozen=True)
class GeneralSettings:
    """How the general engine runs."""

    max_steps: int
    minibatch: int
    inner_steps: int
    optimizer: Any = None


def default_adam(max_steps: int) -> Adam:
    """Return Adam with a first step size that suits the length of the run: fewer steps, longer ones."""
    rate = Adam().learning_rate * np.sqrt(USUAL_STEPS / max_steps)
    return Adam(learning_rate=float(np.clip(rate, *RATES)))


class GeneralRun:
    """DA-SGD on problems that share a method: cost, policy, order and sizes."""

    def __init__(
        self, problems: Sequence[GeneralProblem], settings: GeneralSettings, seeds: Sequence[int]
    ) -> None:
        self.engine = load_engine()
        self.problems, self.settings = list(problems), settings
        self.rngs = [rng_for(seed, "general", "draws") for seed in seeds]
        first = self.problems[0]
        self.method = self.engine.autodiff.Method(
            cost=first.cost,
            policy=replace(first.policy, features=None),  # contexts are features already
            order=first.order,
            outcomes_move=first.outcomes_move,
            inner_steps=settings.inner_steps,
            rule=self._rule(settings.optimizer, first),
            batch=settings.minibatch,
            average=settings.optimizer is None and isinstance(first.policy, Linear),
        )
        with self.engine.jax.enable_x64(True):
            self.arena = self._stack([self._arena(problem) for problem in self.problems])
            self.state = self._start(seeds)

    @property
    def steps(self) -> int:
        """Steps taken so far by each problem."""
        return int(self.state.steps[0])

    # --- setting up -------------------------------------------------------------------------------

    def _rule(self, optimizer: Any, problem: GeneralProblem) -> Any:
        rules = self.engine.rules
        if optimizer is None:
            if isinstance(problem.policy, Linear):
                return rules.DistanceOverGradients()
            optimizer = default_adam(self.settings.max_steps)
        if isinstance(optimizer, Adam):
            return rules.adam(optimizer.learning_rate, decay=optimizer.decay)
        if isinstance(optimizer, SGD):
            return rules.plain(optimizer.learning_rate, decay=optimizer.decay)
        return rules.Optax(optimizer)

    @property
    def decays(self) -> bool:
        """Whether the learning rate falls to zero by the last step."""
        return bool(getattr(self.method.rule, "decay", False))

    def _arena(self, problem: GeneralProblem) -> Any:
        kappa = problem.outcome_cost if problem.outcomes_move else 1.0
        return self.engine.autodiff.Arena(
            radius=np.float64(problem.radius),
            outcome_unit=np.float64(np.sqrt(kappa) if problem.order == 2 else kappa),
            scale=problem.scale,
            inside=problem.movable * float(problem.radius > 0.0),
            lower=problem.lower,
            upper=problem.upper,
            outcome_bounds=np.array(problem.outcome_bounds),
            units=problem.units.tree(),
            auxiliary_centre=problem.auxiliary[0],
            auxiliary_unit=problem.auxiliary[1],
            total_steps=np.float64(self.settings.max_steps),
            restart=np.float64(0.0),
        )

    def _stack(self, trees: Sequence[Any]) -> Any:
        jnp = self.engine.jnp
        return self.engine.jax.tree.map(
            lambda *leaves: jnp.stack([jnp.asarray(leaf, dtype=float) for leaf in leaves]), *trees
        )

    def _start(self, seeds: Sequence[int]) -> Any:
        """Return the state before the first step."""
        engine, jnp = self.engine, self.engine.jnp
        trained, reach = [], []
        for problem, seed in zip(self.problems, seeds, strict=True):
            rng = rng_for(seed, "general", "start")
            columns = problem.contexts.shape[1]
            tree = {
                "policy": problem.policy.initial(rng, columns, problem.n_decisions),
                "auxiliary": np.zeros(len(problem.auxiliary[0])),
            }
            trained.append(tree)
            reach.append(engine.jax.tree.map(lambda leaf, p=problem: _reach(leaf, p), tree))
        stacked = self._stack(trained)
        count = len(self.problems)
        gammas = np.array([self._first_multiplier(i, trained[i]) for i in range(count)])
        init = engine.jax.vmap(self.method.rule.init)
        zeros = jnp.zeros(count)
        return engine.autodiff.State(
            trained=stacked,
            rule=init(stacked, self._stack(reach)),
            log_multiplier=jnp.log(jnp.asarray(gammas)),
            multiplier_squares=zeros,
            curvature=zeros,
            average=stacked,
            averaged=zeros,
            steps=zeros,
        )

    def _first_multiplier(self, number: int, trained: Any) -> float:
        """Guess gamma from the slopes of the cost in the samples, at the first policy."""
        problem = self.problems[number]
        if problem.radius == 0.0:
            return 1.0
        rows = slice(0, CHECK_ROWS)
        slopes = self.engine.judging.slopes_of(
            self.method,
            self.engine.jax.tree.map(lambda leaf: leaf[number], self.arena),
            trained, problem.contexts[rows], problem.outcomes[rows],
        )  # fmt: skip
        slope = float(np.sqrt(np.mean(np.square(slopes).sum(axis=1))))
        if not np.isfinite(slope):
            raise InvalidInputError(
                "the cost must have a finite derivative at the first policy, got NaN or infinity: "
                "check the cost function and the units of the outcomes."
            )
        if slope == 0.0:  # a constant policy: as if the policy spread the decisions as outcomes are
            decisions = problem.decisions(trained["policy"], problem.contexts[rows])
            outcomes = problem.outcomes[rows]
            shifted = decisions + problem.units.unit
            cost = [problem.cost.evaluate(z, outcomes) for z in (decisions, shifted)]
            slope = float(np.abs(cost[1] - cost[0]).mean()) / np.sqrt(len(problem.scale)) or 1.0
        return slope if problem.order == 1 else slope / (2.0 * problem.radius)

    # --- stepping ---------------------------------------------------------------------------------

    def advance(self, steps: int = BLOCK) -> int | None:
        """Take some steps; return the step at which a number stopped being finite, if any."""
        size = steps * self.settings.minibatch
        drawn = [p.draw(rng, size) for p, rng in zip(self.problems, self.rngs, strict=True)]
        return self.learn(
            np.stack([contexts for contexts, _ in drawn]), np.stack([outcomes for _, outcomes in drawn])
        )

    def learn(self, contexts: FloatArray, outcomes: FloatArray) -> int | None:
        """Step through given rows, shape (problems, steps * minibatch, ...)."""
        batch = self.settings.minibatch
        if batch > 1:
            contexts, outcomes = (
                array.reshape(array.shape[0], -1, batch, array.shape[2])
                for array in (contexts, outcomes)
            )
        with self.engine.jax.enable_x64(True):
            jnp = self.engine.jnp
            run = self.engine.autodiff.compiled_run(self.method, many=True)
            X, Y = jnp.asarray(contexts), jnp.asarray(outcomes)
            state, info = run(self.arena, self.state, X, Y)
            if self._finite(state, info):
                self.state = state
                return None
            return self._find_failure(X, Y)

    def _finite(self, state: Any, info: Any) -> bool:
        leaves = self.engine.jax.tree.leaves((state.trained, state.log_multiplier, info.cost))
        return all(bool(np.isfinite(np.asarray(leaf)).all()) for leaf in leaves)

    def refuse_failure(self, step: int) -> None:
        """Raise for a step of a stream that left no finite numbers; nothing of it was learned."""
        raise InvalidInputError(
            f"the cost and its derivative must be finite, got NaN or infinity at step {step:,} of the "
            "stream; none of these rows was learned."
        )

    def _find_failure(self, X: Any, Y: Any) -> int:
        """Repeat a block step by step up to where it fails, and stay at the last finite state."""
        run = self.engine.autodiff.compiled_run(self.method, many=True)
        for step in range(X.shape[1]):
            state, info = run(self.arena, self.state, X[:, step : step + 1], Y[:, step : step + 1])
            if not self._finite(state, info):
                break
            self.state = state
        return self.steps + 1

    def restart_average(self) -> None:
        """Forget the average so far: the tail of a run counts."""
        with self.engine.jax.enable_x64(True):
            self.state = self.state._replace(averaged=self.engine.jnp.zeros(len(self.problems)))

    def set_multiplier(self, gamma: FloatArray) -> None:
        """Go on from a multiplier that a judgement found; small steps from there."""
        with self.engine.jax.enable_x64(True):
            jnp = self.engine.jnp
            budgets = np.array([problem.radius**problem.order for problem in self.problems])
            found = np.where(gamma > 0.0, gamma, 1.0)
            self.state = self.state._replace(
                log_multiplier=jnp.log(jnp.asarray(found)),
                multiplier_squares=jnp.asarray(TRUSTED_STEPS * (found * budgets) ** 2),
            )

    def stacked(self, trained: Any) -> Any:
        """Return parameters of all problems as the engine keeps them."""
        with self.engine.jax.enable_x64(True):
            return self.engine.jax.tree.map(self.engine.jnp.asarray, trained)

    def leaves(self, number: int) -> tuple[FloatArray, ...]:
        """Return the arrays of one problem's state, in a fixed order."""
        leaves = self.engine.jax.tree.leaves(self.state)
        return tuple(np.asarray(leaf[number]) for leaf in leaves)

    def restore(self, leaves: Sequence[FloatArray]) -> None:
        """Go on from the arrays of a state of a single problem."""
        with self.engine.jax.enable_x64(True):
            jnp, tree = self.engine.jnp, self.engine.jax.tree
            structure = tree.structure(self.state)
            arrays = [jnp.asarray(leaf)[None] for leaf in leaves]
            self.state = tree.unflatten(structure, arrays)

    def use_restarts(self, chosen: BoolArray) -> None:
        """Look at both sides of each sample of the chosen problems from now on."""
        with self.engine.jax.enable_x64(True):
            before = np.asarray(self.arena.restart)
            restart = self.engine.jnp.asarray(np.maximum(before, chosen.astype(float)))
            self.arena = self.arena._replace(restart=restart)
        self.method = replace(self.method, restart=True)

    # --- judging ----------------------------------------------------------------------------------

    def candidates(self) -> list[Any]:
        """Return the policies that the run has to offer: where it stands, and its average."""
        if self.method.average and float(self.state.averaged[0]) > 0:
            return [self.state.average, self.state.trained]
        return [self.state.trained]

    def policy_of(self, number: int) -> Any:
        """Return one problem's parameters: the average if the run averages, else where it stands."""
        best = self.candidates()[0]
        return self.engine.jax.tree.map(lambda leaf: np.asarray(leaf[number]), best)

    def judge_single(self, trained: Any) -> Judgement:
        """Judge a policy on all rows of a single problem."""
        stacked = self.engine.jax.tree.map(lambda leaf: np.asarray(leaf)[None], trained)
        return self.judge(stacked, last=True, most=len(self.problems[0].weights))

    def judge(self, trained: Any, *, last: bool = False, most: int | None = None) -> Judgement:
        """Estimate the worst-case expected cost of a policy for each problem.

        ``last`` looks at more rows and closer; ``most`` says how many rows at most.
        """
        rows = most or (LAST_ROWS if last else CHECK_ROWS)
        samples = [judged_rows(problem, rows) for problem in self.problems]
        X, Y, weights = (padded([sample[part] for sample in samples]) for part in range(3))
        radii = np.array([problem.radius**problem.order for problem in self.problems])
        method = replace(self.method, inner_steps=JUDGE_STEPS, restart=False)
        with self.engine.jax.enable_x64(True):
            compiled = self.engine.judging.compiled_judge(method, many=True)

            def look(gamma: FloatArray) -> Any:
                chunks = [
                    compiled(self.arena, trained, gamma, X[:, k : k + CHUNK], Y[:, k : k + CHUNK])
                    for k in range(0, X.shape[1], CHUNK)
                ]
                return self.engine.jax.tree.map(
                    lambda *parts: np.concatenate([np.asarray(part) for part in parts], axis=1), *chunks
                )

            gamma = np.exp(np.asarray(self.state.log_multiplier))
            halvings = LAST_HALVINGS if last else CHECK_HALVINGS
            gamma, verdict = best_multiplier(look, gamma, radii, weights, halvings)
        values = gamma * radii + (weights * np.asarray(verdict.value)).sum(axis=1)
        return Judgement(values, gamma, verdict, weights, X, Y)

    def moved_rows(self, judged: Judgement, number: int) -> MovedRows:
        """Return the rows of one problem with where the adversary took them."""
        real = judged.weights[number] > 0.0
        verdict = judged.verdict
        return MovedRows(
            contexts=judged.contexts[number, real],
            outcomes=judged.outcomes[number, real],
            weights=judged.weights[number, real],
            moved_contexts=np.asarray(verdict.context)[number, real],
            moved_outcomes=np.asarray(verdict.outcome)[number, real],
            steepness=np.asarray(verdict.steepness)[number, real],
        )


def _reach(leaf: Any, problem: GeneralProblem) -> float:
    """Return how far an array of parameters may be expected to travel."""
    unit = float(np.linalg.norm(problem.units.unit))
    if leaf.ndim == 2:
        return 0.5 * unit / float(np.sqrt(leaf.shape[0]))
    return 0.5 * unit
