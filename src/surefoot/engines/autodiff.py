"""The autodiff engine: any differentiable cost and policy, problems side by side in one JAX program.

Nothing here knows a cost or a policy by name, and a single problem is a batch of one.
"""

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from surefoot.ambiguity import Adversary
from surefoot.certificates import (
    Certificate,
    certify_general,
    dual_value,
    growth_power,
    move_distances,
)
from surefoot.engines.affine_proof import affine_certificate
from surefoot.engines.engine import Answer, Bounds, Engine, Options, Parameters
from surefoot.engines.joint import joint_certificate
from surefoot.engines.multiplier_search import (
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
    weighted_mean,
    whole_multiplier,
)
from surefoot.engines.optimizers import SGD, Adam
from surefoot.exceptions import InvalidInputError, UnboundedProblemError
from surefoot.nominals import Empirical
from surefoot.policies import Linear, LinearParameters, PolicyParameters
from surefoot.problem import GeneralForm, Problem, general_form, why_not_affine, why_not_joint
from surefoot.random import rng_for
from surefoot.tracing import keep_compiled, load_jax
from surefoot.typing import BoolArray, FloatArray

# Most steps and ascent steps where the user sets none.
AUTODIFF_STEPS, ASCENT_STEPS = 20_000, 10
# Steps between two looks from the host: one compiled block serves runs of every length.
BLOCK = 250
# Looks at the worst case during a run; one costs as much as about so many steps, so short runs have
# fewer.
LOOKS, FEWEST_LOOKS, LOOK_STEPS = 8, 2, 1_000
# Adam's own learning rate is for runs of so many steps; others lie between these two.
USUAL_STEPS, RATES = 20_000, (1e-3, 3e-2)
# A multiplier that was found by judging steps on as if so many steps had led to it.
TRUSTED_STEPS = 10.0
# Growth is measured between two far moves; a power this much above the order is above it.
POWER_SLACK = 0.25
# From this share of rows with several maximisers on, samples are looked at from both sides.
RESTART_SHARE = 0.01
# The longest move that is tried as a start, in radii and in the columns' spread: the longer counts.
FAR_RADII, FAR_SPREADS = 64.0, 32.0
# A cost without a floor falls for ever if it does at parameters so many and then so many times those
# found, by more than this many times its size.
BOTTOMLESS, BOTTOMLESS_DROP = (1e3, 1e6), 10.0
# Rows are split in two only where more than this share of the budget would be left unspent.
UNSPENT = 0.005
# A lower bound behind the run is proved to this share of the tolerance.
PROOF_SHARE = 0.1
# Rehearsals take this share of the steps of a fit.
ROUGH_SHARE = 0.5
# Radii to choose from, in units of the columns' spread.
RADII = (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)


def load_engine() -> Any:
    """Return the engine's JAX modules, or say which command installs what they need."""
    jax = load_jax("A policy or cost beyond Linear and Newsvendor")
    keep_compiled(jax)
    names = {"steps": "autodiff_steps", "judging": "judging", "rules": "optimizer_rules"}
    modules = {
        name: importlib.import_module(f"surefoot.engines.{file}") for name, file in names.items()
    }
    return SimpleNamespace(jax=jax, jnp=jax.numpy, **modules)


def default_adam(max_steps: int) -> Adam:
    """Return Adam with a first step size that suits the length of the run: fewer steps, longer ones."""
    rate = Adam().learning_rate * np.sqrt(USUAL_STEPS / max_steps)
    return Adam(learning_rate=float(np.clip(rate, *RATES)))


class Failure(NamedTuple):
    """A block that left no finite numbers: the step at which that happened, from 1."""

    step: int


class _Best(NamedTuple):
    """The best policy of each problem so far, by its judged worst case."""

    values: FloatArray
    trained: Any


class Autodiff(Engine):
    """DA-SGD on problems that share cost, policy, order and sizes, by automatic differentiation."""

    def __init__(self, problems: Sequence[Problem], seeds: Sequence[int], options: Options) -> None:
        self.problems = list(problems)
        forms = [general_form(p, seed) for p, seed in zip(problems, seeds, strict=True)]
        self.prepare(forms, seeds, options)

    @classmethod
    def of_forms(
        cls, forms: Sequence[GeneralForm], seeds: Sequence[int], options: Options
    ) -> "Autodiff":
        """Return an engine for forms in units of their own."""
        engine = cls.__new__(cls)
        engine.problems = []
        engine.prepare(forms, seeds, options)
        return engine

    def prepare(self, forms: Sequence[GeneralForm], seeds: Sequence[int], options: Options) -> None:
        """Set up compiled code, geometry and generators."""
        self.engine, self.forms, self.options = load_engine(), list(forms), options
        self.max_steps = AUTODIFF_STEPS if options.max_steps is None else options.max_steps
        if options.rough:
            self.max_steps = max(BLOCK, int(ROUGH_SHARE * self.max_steps))
        self.seeds, first = list(seeds), self.forms[0]
        self.rngs = [rng_for(seed, "general", "draws") for seed in seeds]
        self.method = self.engine.steps.StepMethod(
            cost=first.cost,
            policy=replace(first.policy, features=None),  # contexts are features already
            order=first.order,
            outcomes_move=first.outcomes_move,
            inner_steps=options.inner_steps or ASCENT_STEPS,
            rule=self._rule(options.optimizer, first),
            batch=options.minibatch,
            boxed=any(_stopped(form) for form in self.forms),
            average=options.optimizer is None and isinstance(first.policy, Linear),
        )
        self.best: _Best | None = None
        self.last: Judgement | None = None
        self.changes = np.full(len(self.forms), np.inf)
        self.failed: int | None = None
        with self.engine.jax.enable_x64(True):
            self.arena = self._stack([self._arena(form) for form in self.forms])

    def _rule(self, optimizer: Any, form: GeneralForm) -> Any:
        rules = self.engine.rules
        if optimizer is None:
            if isinstance(form.policy, Linear):
                return rules.DistanceOverGradients()
            optimizer = default_adam(self.max_steps)
        if isinstance(optimizer, Adam):
            return rules.adam(optimizer.learning_rate, decay=optimizer.decay)
        if isinstance(optimizer, SGD):
            return rules.plain(optimizer.learning_rate, decay=optimizer.decay)
        return rules.Optax(optimizer)

    def _arena(self, form: GeneralForm) -> Any:
        kappa = form.outcome_cost if form.outcomes_move else 1.0
        return self.engine.steps.Arena(
            radius=np.float64(form.radius),
            longest=np.float64(_longest_start(form)),
            outcome_unit=np.float64(np.sqrt(kappa) if form.order == 2 else kappa),
            scale=form.scale,
            inside=form.movable * float(form.radius > 0.0),
            lower=form.lower,
            upper=form.upper,
            outcome_bounds=np.array(form.outcome_bounds),
            units=form.units.tree(),
            auxiliary_centre=form.auxiliary[0],
            auxiliary_unit=form.auxiliary[1],
            total_steps=np.float64(self.max_steps),
            restart=np.float64(0.0),
        )

    def _stack(self, trees: Sequence[Any]) -> Any:
        jnp = self.engine.jnp
        return self.engine.jax.tree.map(
            lambda *leaves: jnp.stack([jnp.asarray(leaf, dtype=float) for leaf in leaves]), *trees
        )

    # --- stepping ---------------------------------------------------------------------------------

    def init(self) -> Any:
        """Return the state before the first step, at each policy's own start."""
        engine, jnp = self.engine, self.engine.jnp
        with engine.jax.enable_x64(True):
            trained, firsts = [], []
            for form, seed in zip(self.forms, self.seeds, strict=True):
                rng = rng_for(seed, "general", "start")
                tree = {
                    "policy": form.policy.initial(rng, form.n_features, form.n_decisions),
                    "auxiliary": np.zeros(len(form.auxiliary[0])),
                }
                trained.append(tree)
                firsts.append(engine.jax.tree.map(lambda leaf, f=form: _first_distance(leaf, f), tree))
            stacked, count = self._stack(trained), len(self.forms)
            gammas = np.array([self._first_multiplier(i, trained[i]) for i in range(count)])
            zeros = jnp.zeros(count)
            return engine.steps.AutodiffState(
                trained=stacked,
                rule=engine.jax.vmap(self.method.rule.init)(stacked, self._stack(firsts)),
                log_multiplier=jnp.log(jnp.asarray(gammas)),
                multiplier_squares=zeros,
                curvature=zeros,
                average=stacked,
                averaged=zeros,
                steps=zeros,
            )

    def _first_multiplier(self, number: int, trained: Any) -> float:
        """Guess gamma from the slopes of the cost in the samples, at the first policy."""
        form = self.forms[number]
        if form.radius == 0.0:
            return 1.0
        rows = slice(0, CHECK_ROWS)
        slopes = self.engine.judging.slopes_of(
            self.method,
            self.engine.jax.tree.map(lambda leaf: leaf[number], self.arena),
            trained, form.contexts[rows], form.outcomes[rows],
        )  # fmt: skip
        slope = float(np.sqrt(np.mean(np.square(slopes).sum(axis=1))))
        if not np.isfinite(slope):
            raise InvalidInputError(
                "the cost must have a finite derivative at the first policy, got NaN or infinity: "
                "check the cost function and the units of the outcomes."
            )
        if slope == 0.0:  # a constant policy: as if the policy spread the decisions as outcomes are
            decisions = form.decisions(trained["policy"], form.contexts[rows])
            outcomes = form.outcomes[rows]
            shifted = decisions + form.units.unit
            cost = [form.cost.evaluate(z, outcomes) for z in (decisions, shifted)]
            slope = float(np.abs(cost[1] - cost[0]).mean()) / np.sqrt(len(form.units.spread)) or 1.0
        return slope if form.order == 1 else slope / (2.0 * form.radius)

    def start(self) -> None:
        """Nothing is known of a policy before it was looked at."""

    def done(self, bounds: Sequence[Bounds]) -> bool:
        """Without a lower bound no run is known to be good enough."""
        del bounds
        return False

    def why_stop(self, gaps: Sequence[float], steps: int) -> str | None:
        """Return where a number stopped being finite, if one did."""
        del gaps, steps
        if self.failed is None:
            return None
        return (
            f"at step {self.failed:,} the cost or its derivative was NaN or infinite. The best finite "
            "policy is returned; lower the learning rate or check the cost function."
        )

    def blocks(self) -> Iterator[int]:
        """Yield the steps before each of a few looks, evenly spread."""
        pieces = max(1, -(-self.max_steps // BLOCK))
        count = min(max(self.max_steps // LOOK_STEPS, FEWEST_LOOKS), LOOKS)
        count = FEWEST_LOOKS if self.options.rough else count
        ends = sorted({round(pieces * (k + 1) / count) for k in range(count)} - {0})
        taken = 0
        for end in ends:
            steps = min(end * BLOCK, self.max_steps)
            yield steps - taken
            taken = steps

    def draw(self, steps: int) -> Any:
        """Draw samples of each problem, in pieces that one compiled block takes."""
        pieces = [min(BLOCK, steps - first) for first in range(0, steps, BLOCK)]
        return [self._draw(size * self.options.minibatch) for size in pieces]

    def _draw(self, size: int) -> tuple[FloatArray, FloatArray]:
        drawn = [form.draw(rng, size) for form, rng in zip(self.forms, self.rngs, strict=True)]
        return np.stack([x for x, _ in drawn]), np.stack([y for _, y in drawn])

    def update(self, state: Any, samples: Any) -> tuple[Any, Any]:
        """Take one step for each sample; what was seen is a ``Failure`` or None."""
        for contexts, outcomes in samples:
            state, failure = self.learn(state, contexts, outcomes)
            if failure is not None:
                return state, failure
        return state, None

    def learn(
        self, state: Any, contexts: FloatArray, outcomes: FloatArray
    ) -> tuple[Any, Failure | None]:
        """Step through given rows, shape (problems, steps * minibatch, ...)."""
        batch = self.options.minibatch
        if batch > 1:
            contexts, outcomes = (
                array.reshape(array.shape[0], -1, batch, array.shape[2])
                for array in (contexts, outcomes)
            )
        with self.engine.jax.enable_x64(True):
            jnp = self.engine.jnp
            run = self.engine.steps.compiled_run(self.method, many=True)
            X, Y = jnp.asarray(contexts), jnp.asarray(outcomes)
            after, info = run(self.arena, state, X, Y)
            if self._finite(after, info):
                return after, None
            for step in range(X.shape[1]):  # repeat the block up to where it fails
                after, info = run(self.arena, state, X[:, step : step + 1], Y[:, step : step + 1])
                if not self._finite(after, info):
                    break
                state = after
            return state, Failure(int(state.steps[0]) + 1)

    def _finite(self, state: Any, info: Any) -> bool:
        leaves = self.engine.jax.tree.leaves((state.trained, state.log_multiplier, info.cost))
        return all(bool(np.isfinite(np.asarray(leaf)).all()) for leaf in leaves)

    # --- judging ----------------------------------------------------------------------------------

    def judge(self, state: Any, seen: Any) -> tuple[Any, list[Bounds]]:
        """Look at where the run stands, remember the best, and set the multiplier to what was found."""
        if isinstance(seen, Failure):
            self.failed = seen.step
        if self.options.rough:
            return self._tail(state), [Bounds(np.inf, -np.inf, np.inf, proved=False)] * len(self.forms)
        if isinstance(seen, Failure):
            if seen.step == 1:
                raise InvalidInputError(
                    "the cost and its derivative must be finite, got NaN or infinity at the first "
                    "step: check the cost function and the units of the outcomes."
                )
            if self.best is None:
                self._look(self.init())
            with contextlib.suppress(UnboundedProblemError):  # where it stopped may be anywhere
                self._look(state)
            return state, self._bounds()
        state, judged = self._look(state)
        self.changes, self.last = _changes(judged, self.last), judged
        if not np.isfinite(judged.value).all():
            self.failed = int(state.steps[0]) + 1
            return state, self._bounds()
        return self._tail(state), self._bounds()

    def _tail(self, state: Any) -> Any:
        """Forget the average in the first half of a run: its tail counts."""
        pieces = max(1, -(-self.max_steps // BLOCK))
        if int(state.steps[0]) > pieces // 2 * BLOCK:
            return state
        with self.engine.jax.enable_x64(True):
            return state._replace(averaged=self.engine.jnp.zeros(len(self.forms)))

    def _bounds(self) -> list[Bounds]:
        assert self.best is not None  # something was judged
        lower = self.forms[0].cost.floor(self.forms[0].outcomes.shape[1])
        return [
            Bounds(float(value), lower, float(change), proved=False)
            for value, change in zip(self.best.values, self.changes, strict=True)
        ]

    def _look(self, state: Any) -> tuple[Any, Judgement]:
        first: Judgement | None = None
        for trained in self.candidates(state):
            judged = self.judge_policies(state, trained)
            first = first or judged
            rival = _Best(_finite_or_worse(judged.value), trained)
            self.best = rival if self.best is None else self._better(self.best, rival)
        assert first is not None  # a run always has a candidate
        state = self._with_multiplier(state, first.multiplier)
        affected = self.non_concave(first) > RESTART_SHARE
        if affected.any():
            self._use_restarts(affected)
        return state, first

    def candidates(self, state: Any) -> list[Any]:
        """Return the policies that a run has to offer: where it stands, and its average."""
        if self.method.average and float(state.averaged[0]) > 0:
            return [state.average, state.trained]
        return [state.trained]

    def _better(self, best: _Best, rival: _Best) -> _Best:
        """Return the better policy of each problem."""
        better = rival.values < best.values

        def pick(new: Any, old: Any) -> Any:
            shape = (-1, *[1] * (new.ndim - 1))
            return np.where(better.reshape(shape), np.asarray(new), np.asarray(old))

        trained = self.engine.jax.tree.map(pick, rival.trained, best.trained)
        return _Best(np.where(better, rival.values, best.values), trained)

    def _with_multiplier(self, state: Any, gamma: FloatArray) -> Any:
        """Go on from a multiplier that a judgement found; small steps from there."""
        with self.engine.jax.enable_x64(True):
            jnp = self.engine.jnp
            budgets = np.array([form.radius**form.order for form in self.forms])
            found = np.where(gamma > 0.0, gamma, 1.0)
            return state._replace(
                log_multiplier=jnp.log(jnp.asarray(found)),
                multiplier_squares=jnp.asarray(TRUSTED_STEPS * (found * budgets) ** 2),
            )

    def _use_restarts(self, chosen: BoolArray) -> None:
        """Look at both sides of each sample of the chosen problems from now on."""
        with self.engine.jax.enable_x64(True):
            before = np.asarray(self.arena.restart)
            restart = self.engine.jnp.asarray(np.maximum(before, chosen.astype(float)))
            self.arena = self.arena._replace(restart=restart)
        self.method = replace(self.method, restart=True)

    def judge_policies(
        self, state: Any, trained: Any, *, last: bool = False, whole: bool = False
    ) -> Judgement:
        """Estimate the worst-case expected cost of a policy for each problem.

        ``last`` looks at more rows and closer, ``whole`` at all of them, in blocks.
        """
        gamma = np.exp(np.asarray(state.log_multiplier))
        if not whole:
            rows, halvings = (LAST_ROWS, LAST_HALVINGS) if last else (CHECK_ROWS, CHECK_HALVINGS)
            return self._judged(trained, gamma, rows, halvings)
        some = self._judged(trained, gamma, LAST_ROWS, LAST_HALVINGS)
        if max(len(form.weights) for form in self.forms) <= LAST_ROWS:
            return some
        return self._judged(trained, some.multiplier, None, None)

    def _judged(
        self, trained: Any, gamma: FloatArray, rows: int | None, halvings: int | None
    ) -> Judgement:
        """Judge so many rows (None: all) at a multiplier that suits them (None: one near ``gamma``)."""
        samples = [judged_rows(form, rows) for form in self.forms]
        X, Y, weights = (padded([sample[part] for sample in samples]) for part in range(3))
        budgets = np.array([form.radius**form.order for form in self.forms])
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

            if halvings is None:
                gamma, verdict, beyond = whole_multiplier(look, gamma, budgets, weights)
            else:
                gamma, verdict, beyond = best_multiplier(look, gamma, budgets, weights, halvings)
        values = gamma * budgets + weighted_mean(weights, verdict.value)
        return Judgement(values, gamma, verdict, beyond, weights, X, Y)

    def non_concave(self, judged: Judgement) -> FloatArray:
        """Return the share of rows whose inner problem is not concave, for each problem."""
        bend = 2.0 * judged.multiplier[:, None] if self.method.order == 2 else 0.0
        # Rounding leaves a straight cost a trace of curvature.
        curved = np.asarray(judged.verdict.curvature) > bend * (1.0 + 1e-9) + 1e-9
        affected = curved | np.asarray(judged.verdict.several)
        moving = np.array([form.radius > 0.0 for form in self.forms])
        return np.where(moving, (judged.weights * affected).sum(axis=1), 0.0)

    def moved(self, judged: Judgement, number: int, *, beyond: bool = False) -> Adversary:
        """Return the rows of one problem with where the adversary took them.

        ``beyond`` asks for the moves at the smaller multiplier, which spend more than the budget.
        """
        form, real = self.forms[number], judged.weights[number] > 0.0
        verdict, gamma = judged.verdict, float(judged.multiplier[number])
        if beyond:
            verdict = judged.beyond
        weights = judged.weights[number, real]
        contexts, outcomes = (
            np.asarray(part)[number, real] for part in (verdict.context, verdict.outcome)
        )
        distances = move_distances(
            form, contexts - judged.contexts[number, real], outcomes - judged.outcomes[number, real]
        )
        return Adversary(
            value=float("nan"),
            expected_cost=float("nan"),
            multiplier=np.array([gamma]),
            transport_cost=np.array([weights @ distances]),
            rows=np.flatnonzero(form.weights > 0.0)[: len(weights)],
            products=np.zeros(len(weights), dtype=np.int64),
            contexts=contexts,
            outcomes=outcomes,
            weights=weights,
            distances=distances,
        )

    def atoms(self, judged: Judgement, number: int) -> Adversary:
        """Return a distribution in the ball that spends its budget: rows may be split in two.

        Moves at the multiplier keep to the budget, and may leave much of it unspent where costs are
        straight; those just beyond spend more. A mixture of both spends it all.
        """
        form = self.forms[number]
        near, far = (self.moved(judged, number, beyond=b) for b in (False, True))
        budget = form.radius**form.order
        if float(near.transport_cost[0]) > budget:  # near the best multiplier, and not above it
            real = judged.weights[number] > 0.0
            here = judged.contexts[number, real], judged.outcomes[number, real]
            stays = near._replace(contexts=here[0], outcomes=here[1], distances=0.0 * near.distances)
            near, far = stays._replace(transport_cost=np.zeros(1)), near
        spent, more = float(near.transport_cost[0]), float(far.transport_cost[0])
        if not np.isfinite(more) or more <= spent or spent >= (1.0 - UNSPENT) * budget:
            return near
        # Rows that go to nearly the same place at both multipliers stay whole.
        between = move_distances(form, far.contexts - near.contexts, far.outcomes - near.outcomes)
        apart = between > 0.1**form.order * budget
        more = spent + float(far.weights[apart] @ (far.distances - near.distances)[apart])
        if more <= spent:
            return near
        share = min(1.0, (budget - spent) / (more - spent))
        weights = np.concatenate(
            [np.where(apart, 1.0 - share, 1.0) * near.weights, share * far.weights[apart]]
        )
        kept = weights > 0.0

        def both(name: str) -> Any:
            return np.concatenate([getattr(near, name), getattr(far, name)[apart]])[kept]

        names = ("rows", "products", "contexts", "outcomes", "distances")
        parts = {name: both(name) for name in names}
        spending = np.array([weights[kept] @ parts["distances"]])
        return near._replace(**parts, weights=weights[kept], transport_cost=spending)

    # --- answers ----------------------------------------------------------------------------------

    def finish(self, state: Any) -> list[Answer]:
        """Judge the best policies closely, and say what is known of each."""
        if self.options.rough:
            return [self._unjudged(state, number) for number in range(len(self.forms))]
        if self.best is None:
            self._look(state)
        assert self.best is not None  # just looked
        if max(len(form.weights) for form in self.forms) > CHECK_ROWS:
            # On few rows, a policy that happens to suit them may have won.
            value = _finite_or_worse(self.judge_policies(state, self.best.trained, last=True).value)
            self.best = _Best(value, self.best.trained)
            for trained in self.candidates(state):
                value = _finite_or_worse(self.judge_policies(state, trained, last=True).value)
                self.best = self._better(self.best, _Best(value, trained))
        self._refuse_bottomless(state)
        judged = self.judge_policies(state, self.best.trained, whole=True)
        shares = self.non_concave(judged)
        steps = np.asarray(state.steps, dtype=int)
        return [self._answer(judged, k, float(share), int(steps[k])) for k, share in enumerate(shares)]

    def _refuse_bottomless(self, state: Any) -> None:
        """Raise if the worst case falls without end as the policy that was found is scaled up.

        Scaled parameters are a policy of the same family, so this is no guess about other policies.
        """
        assert self.best is not None
        first = self.forms[0]
        if np.isfinite(first.cost.floor(first.outcomes.shape[1])):
            return
        values = [self._judged_scaled(state, factor) for factor in (1.0, *BOTTOMLESS)]
        size = np.maximum(np.abs(values[0]), 1e-300)
        falls = np.isneginf(values[0]) | np.isneginf(values[-1])
        with np.errstate(invalid="ignore"):
            drops = -np.diff(values, axis=0)
            falls |= (drops[0] > BOTTOMLESS_DROP * size) & (drops[1] > BOTTOMLESS_DROP * drops[0])
        if falls.any():
            least = float(np.asarray(values)[:, falls].min())
            raise UnboundedProblemError(
                "The worst-case expected cost must have a lower bound over the policies, got "
                f"{least:.3g}, and less for larger decisions: check the sign of the cost, or give the "
                "policy limits (decisions=)."
            )

    def _judged_scaled(self, state: Any, factor: float) -> FloatArray:
        """Return the judged value of the best policies with parameters so many times as large."""
        assert self.best is not None
        trained = dict(self.best.trained)
        trained["policy"] = self.engine.jax.tree.map(lambda leaf: factor * leaf, trained["policy"])
        try:
            return np.asarray(self.judge_policies(state, trained).value)
        except UnboundedProblemError:  # from above: that is another question
            return np.full(len(self.forms), np.inf)

    def _unjudged(self, state: Any, number: int) -> Answer:
        """Return where a rehearsal stands, of which nobody asks how good it is."""
        parameters = general_parameters(
            self.forms[number], *self.split(self.candidates(state)[0], number)
        )
        message = "A rehearsal: nothing was judged."
        certificate = Certificate(np.inf, -np.inf, np.inf, "estimate", message)
        return Answer(parameters, np.zeros(1), certificate, int(state.steps[number]))

    def _answer(self, judged: Judgement, number: int, share: float, steps: int) -> Answer:
        assert self.best is not None
        form = self.forms[number]
        trained, auxiliary = self.split(self.best.trained, number)
        moved = self.moved(judged, number)
        steepness = np.asarray(judged.verdict.steepness)[number, judged.weights[number] > 0.0]
        _refuse_unbounded(form, trained, auxiliary, judged, number)
        remarks = []
        if self.decays:
            remarks.append(
                "The learning rate fell to zero on schedule: a longer run may still find better."
            )
        if share > 0.0:
            remarks.append(
                f"The inner problem is not concave for {100 * share:.2g} % of the rows at this "
                "multiplier: they were searched on both sides, and the certificate is an estimate."
            )
        parameters = general_parameters(form, trained, auxiliary)
        certificate = certify_general(
            form, trained, auxiliary, moved, steepness, self.atoms(judged, number)
        )
        proved = self._proved(number, parameters)
        certificate, remarks = (certificate, remarks) if proved is None else (proved, [])
        return Answer(
            parameters=parameters,
            multiplier=moved.multiplier,
            certificate=certificate,
            steps=steps,
            remark=" ".join(remarks),
        )

    def _proved(self, number: int, parameters: Parameters) -> Certificate | None:
        """Return a certificate of a linear policy whose worst case is known exactly, or None."""
        asked = self.problems[number] if self.problems else None
        if asked is None or not isinstance(parameters, LinearParameters):
            return None
        target = PROOF_SHARE * self.options.gap_tol
        if why_not_joint(asked) is None:
            least = self.forms[number].cost.floor(asked.nominal.n_products)
            return joint_certificate(asked, parameters, least, target)
        if why_not_affine(asked) is None and isinstance(asked.nominal, Empirical):
            return affine_certificate(asked, parameters, target)
        return None

    def split(self, trained: Any, number: int) -> tuple[Any, FloatArray]:
        """Return one problem's parameters, and the cost's own variables in the user's units."""
        form = self.forms[number]
        tree = self.engine.jax.tree.map(lambda leaf: np.asarray(leaf[number]), trained)
        return tree["policy"], form.auxiliary[0] + form.auxiliary[1] * tree["auxiliary"]

    @property
    def decays(self) -> bool:
        """Whether the learning rate falls to zero by the last step."""
        return bool(getattr(self.method.rule, "decay", False))

    def joined(self, parameters: Parameters) -> Any:
        """Return parameters in the user's units as the engine has them, for a batch of one."""
        form = self.forms[0]
        auxiliary = parameters.auxiliary if len(parameters.auxiliary) else form.auxiliary[0]
        unit = np.where(form.auxiliary[1] != 0.0, form.auxiliary[1], 1.0)
        tree = {
            "policy": trained_parameters(form, parameters),
            "auxiliary": (auxiliary - form.auxiliary[0]) / unit,
        }
        return self.engine.jax.tree.map(lambda leaf: np.asarray(leaf)[None], tree)

    @staticmethod
    def adversary(problem: Problem, parameters: Parameters) -> Adversary:
        """Return the worst distribution that gradient ascent finds around the rows of a problem."""
        form = general_form(problem, 0, getattr(parameters, "units", None))
        engine = Autodiff.of_forms([form], [0], Options())
        trained = engine.joined(parameters)
        judged = engine.judge_policies(engine.init(), trained, whole=True)
        policy, auxiliary = engine.split(trained, 0)
        found = engine.atoms(judged, 0)
        costs = form.costs(policy, auxiliary, found.contexts, found.outcomes)
        outcomes = found.outcomes[:, 0] if found.outcomes.shape[1] == 1 else found.outcomes
        expected = float(found.weights @ costs)
        return found._replace(
            # A distribution in the ball costs this much, whatever the ascents have missed.
            value=max(dual_value(form, policy, auxiliary, engine.moved(judged, 0)), expected),
            expected_cost=expected,
            contexts=found.contexts[:, : form.n_features],
            outcomes=outcomes,
        )

    @staticmethod
    def worst_values(
        problem: Problem, parameters: Parameters, radii: FloatArray
    ) -> tuple[FloatArray, str]:
        """Return the worst case that gradient ascent finds at each radius."""
        found = [Autodiff.adversary(problem.at_radius(float(radius)), parameters) for radius in radii]
        return np.array([one.value for one in found]), "estimate"

    @staticmethod
    def radius_grid(problem: Problem) -> FloatArray:
        """Return radii in units of the columns' spread: beyond one, that loses its meaning."""
        form = general_form(problem)
        features = slice(0, form.n_features)
        movable = form.movable[features]
        if not movable.any():
            return np.zeros(1)
        # Columns measured in their own units may be far from one.
        lengths = (form.units.spread / form.scale[features])[movable]
        return float(np.sqrt(np.mean(lengths**2))) * np.array(RADII)


def _longest_start(form: GeneralForm) -> float:
    """Return the longest move that is tried as a start, in units of transport.

    A small share of the mass may go far at any radius, so it is measured in the columns' spread, too.
    """
    features = slice(0, form.n_features)
    movable = form.movable[features]
    lengths = (form.units.spread / form.scale[features])[movable]
    spread = float(np.sqrt(np.mean(lengths**2))) if lengths.size else 1.0
    return max(FAR_RADII * form.radius, FAR_SPREADS * spread)


def _stopped(form: GeneralForm) -> bool:
    """Whether the support has a bound anywhere; a column that stands still may move later."""
    outcome = form.outcomes_move and bool(np.isfinite(form.outcome_bounds).any())
    return outcome or bool(np.isfinite(form.lower).any() or np.isfinite(form.upper).any())


def _first_distance(leaf: Any, form: GeneralForm) -> float:
    """Return how far an array of parameters may be expected to travel."""
    unit = float(np.linalg.norm(form.units.unit))
    if leaf.ndim == 2:
        return 0.5 * unit / float(np.sqrt(leaf.shape[0]))
    return 0.5 * unit


def _finite_or_worse(values: FloatArray) -> FloatArray:
    """Return judged values with infinity for NaN, so that a policy that ran away is never the best."""
    return np.where(np.isnan(values), np.inf, values)


def _changes(judged: Judgement, last: Judgement | None) -> FloatArray:
    """Return how much each problem's worst case changed since the last check.

    It is relative to the worst case or, where that is near zero (a profit that may be a loss), to
    the spread of the costs of single rows.
    """
    if last is None:
        return np.full(len(judged.value), np.inf)
    costs = np.asarray(judged.verdict.cost)
    mean = (judged.weights * costs).sum(axis=1, keepdims=True)
    spread = np.sqrt((judged.weights * (costs - mean) ** 2).sum(axis=1))
    size = np.maximum(np.abs(judged.value), spread)
    return np.abs(judged.value - last.value) / np.where(size > 0.0, size, 1.0)


def _refuse_unbounded(
    form: GeneralForm, trained: Any, auxiliary: FloatArray, judged: Judgement, number: int
) -> None:
    """Raise if the cost outgrows the distance: moving far then pays at any multiplier."""
    if form.radius == 0.0:
        return
    rows = judged.contexts[number], judged.outcomes[number]
    power = growth_power(form, trained, auxiliary, *rows)
    if power > form.order + POWER_SLACK:
        raise UnboundedProblemError(
            f"The worst case is unbounded: far away the cost grows with the power {power:.2g} of a "
            f"move, faster than the distance of order {form.order}. "
            + ("Use order=2, give" if form.order == 1 and power <= 2.0 + POWER_SLACK else "Give")
            + " the ball a support, or bound the decisions."
        )


def general_parameters(form: GeneralForm, trained: Any, auxiliary: FloatArray) -> Parameters:
    """Return parameters as the policy takes them, in the user's units."""
    policy = form.policy
    if isinstance(policy, Linear):
        linear = policy.in_user_units(trained, form.units.tree())
        return replace(linear, auxiliary=auxiliary)
    return PolicyParameters(trained, form.units, auxiliary)


def trained_parameters(form: GeneralForm, parameters: Parameters) -> Any:
    """Return parameters in the user's units as arrays by name, in the units of the form."""
    if isinstance(parameters, LinearParameters) and isinstance(form.policy, Linear):
        return form.policy.from_user_units(parameters, form.units.tree())
    assert isinstance(parameters, PolicyParameters)  # of a policy that is not linear
    return parameters.trained
