"""The autodiff engine: any differentiable cost and policy, problems side by side in one JAX program.

Nothing here knows a cost or a policy by name, and a single problem is a batch of one.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from surefoot.ambiguity import Adversary
from surefoot.certificates import (
    Certificate,
    certify_general,
)
from surefoot.certificates.squares import why_not_squares
from surefoot.engines.affine_lane import TARGET_SHARE
from surefoot.engines.autodiff_atoms import (
    autodiff_adversary,
    moved_rows,
    proving_atoms,
    refuse_unbounded,
)
from surefoot.engines.autodiff_forms import BLOCK, FormBatch, general_parameters
from surefoot.engines.autodiff_proof import exact_certificate
from surefoot.engines.closed_squares import closed_squares
from surefoot.engines.engine import Answer, Bounds, Engine, Options, Parameters
from surefoot.engines.moved_planes import polished_batch
from surefoot.engines.multiplier_search import CHECK_ROWS, Judged, finite_or_worse, relative_changes
from surefoot.exceptions import InvalidInputError, UnboundedProblemError
from surefoot.problem import Problem, general_form
from surefoot.random import rng_for
from surefoot.typing import FloatArray

# Looks at the worst case during a run; one costs as much as about so many steps, so short runs have
# fewer.
LOOKS, FEWEST_LOOKS, LOOK_STEPS = 8, 2, 1_000
# A multiplier that was found by judging steps on as if so many steps had led to it.
TRUSTED_STEPS = 10.0
# From this share of rows with several maximisers on, samples are looked at from both sides.
RESTART_SHARE = 0.01
# A cost without a floor falls for ever if it does at parameters so many and then so many times those
# found, by more than this many times its size.
BOTTOMLESS, BOTTOMLESS_DROP = (1e3, 1e6), 10.0
# A lower bound behind the run is proved to this share of the tolerance.
PROOF_SHARE = 0.1
# Radii to choose from, in units of the columns' spread.
RADII = (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)


class _Best(NamedTuple):
    """The best policy of each problem so far, by its judged worst case."""

    values: FloatArray
    trained: Any


class Autodiff(FormBatch, Engine):
    """DA-SGD on problems that share cost, policy, order and sizes, by automatic differentiation."""

    def __init__(self, problems: Sequence[Problem], seeds: Sequence[int], options: Options) -> None:
        self.problems = list(problems)
        forms = [general_form(p, seed) for p, seed in zip(problems, seeds, strict=True)]
        super().__init__(forms, seeds, options)
        self.rngs = [rng_for(seed, "general", "draws") for seed in seeds]
        self.best: _Best | None = None
        self.last: Judged | None = None
        self.changes = np.full(len(self.forms), np.inf)
        self.failed: int | None = None
        self.plans: list[Adversary | None] = [None] * len(self.forms)
        self.endings = [""] * len(self.forms)  # how the best policy was found, where not by steps

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
        """Take one step for each sample; what was seen is the step (from 1) that failed, or None."""
        for contexts, outcomes in samples:
            state, failed = self.learn(state, contexts, outcomes)
            if failed is not None:
                return state, failed
        return state, None

    def learn(self, state: Any, contexts: FloatArray, outcomes: FloatArray) -> tuple[Any, int | None]:
        """Step through given rows, shape (problems, steps * minibatch, ...)."""
        batch = self.options.minibatch
        if batch > 1:
            contexts, outcomes = (
                array.reshape(array.shape[0], -1, batch, array.shape[2])
                for array in (contexts, outcomes)
            )
        with self.engine.jax.enable_x64(True):
            jnp = self.engine.jnp
            run = self.engine.steps.compiled_run(self.method)
            X, Y = jnp.asarray(contexts), jnp.asarray(outcomes)
            after, info = run(self.arena, state, X, Y)
            if self._finite(after, info):
                return after, None
            for step in range(X.shape[1]):  # repeat the block up to where it fails
                after, info = run(self.arena, state, X[:, step : step + 1], Y[:, step : step + 1])
                if not self._finite(after, info):
                    break
                state = after
            return state, int(state.steps[0]) + 1

    def _finite(self, state: Any, info: Any) -> bool:
        leaves = self.engine.jax.tree.leaves((state.trained, state.log_multiplier, info[0]))
        return all(bool(np.isfinite(np.asarray(leaf)).all()) for leaf in leaves)

    def judge(self, state: Any, seen: Any) -> tuple[Any, list[Bounds]]:
        """Look at where the run stands, remember the best, and set the multiplier to what was found."""
        if seen is not None:
            self.failed = seen
        if self.options.rough:
            return self._tail(state), [Bounds(np.inf, -np.inf, np.inf, proved=False)] * len(self.forms)
        if seen is not None:
            if seen == 1:
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
        self.changes, self.last = relative_changes(judged, self.last), judged
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

    def _look(self, state: Any) -> tuple[Any, Judged]:
        first: Judged | None = None
        for trained in self.candidates(state):
            judged = self.judge_policies(state, trained)
            first = first or judged
            rival = _Best(finite_or_worse(judged.value), trained)
            self.best = rival if self.best is None else self._better(self.best, rival)
        assert first is not None  # a run always has a candidate
        state = self._with_multiplier(state, first.multiplier)
        affected = self.non_concave(first) > RESTART_SHARE
        if affected.any():
            self.use_restarts(affected)
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
            positive = np.where(gamma > 0.0, gamma, 1.0)
            return state._replace(
                log_multiplier=jnp.log(jnp.asarray(positive)),
                multiplier_squares=jnp.asarray(TRUSTED_STEPS * (positive * budgets) ** 2),
            )

    def finish(self, state: Any) -> list[Answer]:
        """Judge the best policies closely, and say what is known of each."""
        if self.options.rough:
            return [self._unjudged(state, number) for number in range(len(self.forms))]
        if self.best is None:
            self._look(state)
        assert self.best is not None  # just looked
        if max(len(form.weights) for form in self.forms) > CHECK_ROWS:
            # On few rows, a policy that happens to suit them may have won.
            value = finite_or_worse(self.judge_policies(state, self.best.trained, last=True).value)
            self.best = _Best(value, self.best.trained)
            for trained in self.candidates(state):
                value = finite_or_worse(self.judge_policies(state, trained, last=True).value)
                self.best = self._better(self.best, _Best(value, trained))
        self._refuse_bottomless(state)
        answers = self._answers(state, range(len(self.forms)))
        target = TARGET_SHARE * self.options.gap_tol
        unproved = [k for k, answer in enumerate(answers) if not answer.certificate.gap <= target]
        # Not for a user who asked for the paper's own ascents, nor after a run that must be looked at.
        if unproved and self.options.inner_steps == 0 and self.failed is None:
            self._polish(state, unproved)
            unproved = [k for k in unproved if self.endings[k]]
            for k, answer in zip(unproved, self._answers(state, unproved), strict=True):
                answers[k] = answer
        return answers

    def _answers(self, state: Any, numbers: Sequence[int]) -> list[Answer]:
        """Judge the best policies on all rows, and say what is known of some of them."""
        if not numbers:
            return []
        assert self.best is not None
        judged = self.judge_policies(state, self.best.trained, whole=True)
        shares, steps = self.non_concave(judged), np.asarray(state.steps, dtype=int)
        return [self._answer(judged, k, float(shares[k]), int(steps[k])) for k in numbers]

    def _polish(self, state: Any, numbers: Sequence[int]) -> None:
        """Put the best policies where they are proved: by a closed form, or by rounds over few rows."""
        assert self.best is not None
        closed = [k for k in numbers if why_not_squares(self.forms[k]) is None]
        others = [k for k in numbers if k not in closed]
        gammas = np.exp(np.asarray(state.log_multiplier))
        trained, self.plans, rounds = polished_batch(self, others, gammas, self.best.trained)
        self.best = _Best(self.best.values, closed_squares(self, closed, trained))
        for k in numbers:
            if rounds[k] > 0:
                self.endings[k] = f"It ended with {rounds[k]} rounds of a program over all rows."
            elif k in closed:
                self.endings[k] = "It ended at the closed form of the best policy."

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

    def _answer(self, judged: Judged, number: int, share: float, steps: int) -> Answer:
        assert self.best is not None
        form = self.forms[number]
        trained, auxiliary = self.split(self.best.trained, number)
        moved = moved_rows(form, judged, number)
        steepness = np.asarray(judged.verdict.steepness)[number, judged.weights[number] > 0.0]
        refuse_unbounded(form, trained, auxiliary, judged, number)
        remarks = []
        if getattr(self.optimizer, "decay", False):
            remarks.append(
                "The learning rate fell to zero on schedule: a longer run may still find better."
            )
        parameters = general_parameters(form, trained, auxiliary)
        certificate = certify_general(
            form, trained, auxiliary, moved, steepness,
            proving_atoms(form, judged, number, self.plans[number]),
        )  # fmt: skip
        if share > 0.0 and certificate.kind == "estimate":
            remarks.append(
                f"The inner problem is not concave for {100 * share:.2g} % of the rows at this "
                "multiplier: they were searched on both sides, and the certificate is an estimate."
            )
        asked = self.problems[number] if self.problems else None
        proved = exact_certificate(asked, form, parameters, PROOF_SHARE * self.options.gap_tol)
        certificate, remarks = (certificate, remarks) if proved is None else (proved, [])
        if self.endings[number]:
            remarks.append(self.endings[number])
        return Answer(
            parameters=parameters,
            multiplier=moved.multiplier,
            certificate=certificate,
            steps=steps,
            remark=" ".join(remarks),
            polished=bool(self.endings[number]),
        )

    @staticmethod
    def adversary(problem: Problem, parameters: Parameters) -> Adversary:
        """Return the worst distribution that gradient ascent finds around the rows of a problem."""
        return autodiff_adversary(problem, parameters)

    @staticmethod
    def worst_values(
        problem: Problem, parameters: Parameters, radii: FloatArray
    ) -> tuple[FloatArray, str]:
        """Return the worst case that gradient ascent finds at each radius."""
        worst = [autodiff_adversary(problem.at_radius(float(radius)), parameters) for radius in radii]
        return np.array([one.value for one in worst]), "estimate"

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
