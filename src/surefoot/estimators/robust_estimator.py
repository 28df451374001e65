"""How both estimators learn: fit, partial_fit, streams."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from surefoot.ambiguity import WassersteinBall
from surefoot.certificates import Certificate
from surefoot.engines.choice import begin_stream, restored_stream, resume_stream, worst_case_of
from surefoot.engines.step_rules import AdaptiveStep, DecayingRadius, StepRule
from surefoot.engines.stream import (
    Stream,
    StreamOptions,
    column_records,
    running_ball,
    support_of,
    why_no_stream,
)
from surefoot.estimators.batches import (
    check_batches,
    refuse_beside_batches,
    refuse_parts_beside_batches,
)
from surefoot.estimators.data_warnings import labelled, plain_labels, suspects_sentence
from surefoot.estimators.experiment_log import recorded
from surefoot.estimators.fitted_policy import FittedPolicy
from surefoot.estimators.inputs import check_contexts, check_pairs, fingerprint, time_order
from surefoot.estimators.radius_rules import ruled_radius
from surefoot.estimators.radius_selection import choose_radius
from surefoot.estimators.recipe import Recipe
from surefoot.estimators.row_costs import refuse_levels
from surefoot.estimators.scikit_learn_habits import seed_from
from surefoot.exceptions import (
    DataWarning,
    InvalidInputError,
    InvalidTypeError,
    SurefootWarning,
    warn_user,
)
from surefoot.forecasts import Question, Suspect, confident_radius
from surefoot.nominals import Empirical, Nominal, RowBatches
from surefoot.nominals.empirical import CONSTANT_COLUMN
from surefoot.policies import LinearParameters
from surefoot.problem import Problem, check_support, fitted_problem
from surefoot.solvers import Solver
from surefoot.solvers.choice import solver_for
from surefoot.typing import FloatArray, IntArray

# A radius that all ambiguity sets can have, to see whether a solver fits.
TRIAL_RADIUS = 0.5


class RobustEstimator(FittedPolicy):
    """How a robust policy is learned: from rows at once, and on from a stream."""

    @abstractmethod
    def _recipe(self) -> Recipe:
        """Return the parts that the constructor's parameters describe."""

    @property
    def follows_level(self) -> bool:
        """Whether decisions follow a level that drifts if ``fit`` is told when rows were."""
        return self._recipe().follows_level

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs; a stream, which may hold compiled code, goes as arrays."""
        state = dict(super().__getstate__())
        stream = state.pop("_stream", None)
        if stream is not None:
            state["_stream_arrays"] = stream.arrays()
        return state

    # --- fitting ----------------------------------------------------------------------------------

    @recorded
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None) -> Self:
        """Learn a policy from past pairs.

        Parameters
        ----------
        X
            Contexts, shape (rows, columns): an array, or a pandas or polars frame of numbers. Or rows
            that do not fit into memory, with their outcomes: ``ParquetRows(folder, outcome="sales")``.
        y
            Outcomes, shape (rows,) or (rows, products); None beside rows that have their own.
        sample_weight
            Non-negative, one per row; a weight of 2 counts as the row twice. So whole weights are
            counts of observations; others say only how much rows matter beside each other.
        time
            When each row was: dates or numbers. What is stated about days to come, and a radius that is
            chosen by cross-validation, then rest on rolling origins: blocks of rows, each decided from
            the rows before it. None takes the dates of a pandas index, if there are any, and else the
            rows as draws in no order.
        """
        with self._kept_on_failure():
            batched = isinstance(X, RowBatches)
            if batched:
                refuse_beside_batches(y=y, sample_weight=sample_weight, time=time)
            recipe, nominal, y, seed = self._checked(X, y, sample_weight)
            when = None if batched else time_order(time, X, len(y))
            question = recipe.question(nominal, seed, when)
            self._name_suspects(question.suspects)
            radius = self._chosen_radius(recipe, question, seed)
            problem = question.problem.at_radius(radius)
            self._rolling = question.rolling
            if when is not None and question.parameters is not None and question.rolling is None:
                warn_user(
                    "time is left out of the bound: too few rows or times to see how blocks of them "
                    "vary.",
                    DataWarning,
                )
            if question.parameters is not None:
                self._take_as_it_is(problem, question.parameters, y)
            else:
                self._solve(problem, recipe.solver, seed, y)
            self._warn_of_constant_columns(recipe, nominal)
        return self

    def _solve(self, problem: Problem, solver: Solver | None, seed: int, y: FloatArray) -> None:
        """Solve the problem and take what was found."""
        own = solver_for(problem, solver)
        problem = own.settled(problem)
        solution = own.solve(problem, seed)
        self._take(problem, y)
        self.parameters_ = solution.parameters
        self._certificate = solution.certificate
        self.converged_, self.status_ = solution.converged, solution.status
        self.n_steps_, self.history_ = solution.n_steps, solution.history
        self._multiplier = self._per_product(solution.multiplier)

    def _take_as_it_is(self, problem: Problem, parameters: LinearParameters, y: FloatArray) -> None:
        """Take a policy that nothing is left to solve for; its worst case is all that is known."""
        self._take(problem, y)
        worst, multiplier = worst_case_of(problem, parameters)
        self.parameters_ = parameters
        count = len(self.suspects_)
        left_out = f", numbers that look like errors ({count}) left out" if count else ""
        message = (
            f"The worst-case expected cost of the ensemble within radius {self.radius_:.3g} (standard "
            f"deviations of the outcome) of its honest decisions is {worst:.6g}{left_out}. Nothing is "
            "proved about other policies."
        )
        self._certificate = Certificate(worst, -math.inf, math.inf, "value", message)
        self._multiplier = self._per_product(multiplier)
        self.converged_, self.n_steps_, self.history_ = True, 0, ()
        self.status_ = (
            "An ensemble decides, weighted by what its members would have cost on rows that they had "
            "not seen. Nothing is left to solve."
        )

    def _name_suspects(self, suspects: tuple[Suspect, ...]) -> None:
        """Remember numbers that look like errors, and warn: they were not followed."""
        self.suspects_ = ()
        if suspects:
            plain = plain_labels(self.n_features_in_, self._names)
            self.suspects_ = labelled(suspects, plain, self._column_labels())
            warn_user(suspects_sentence(self.suspects_), DataWarning)

    def _checked(self, X: Any, y: Any, weight: Any) -> tuple[Recipe, Nominal, FloatArray, int]:
        """Return the fitted recipe, the nominal, the outcomes and the seed; forget an earlier fit."""
        given = self._recipe()
        seed = self.seed_ = seed_from(self.random_state)
        for name in ("radius_path_", "radius_rule_", "_stream", "_stream_arrays"):
            if hasattr(self, name):
                delattr(self, name)
        if isinstance(X, RowBatches):
            return self._checked_batches(given, X, seed)
        X, y = check_pairs(self, X, y, reset=True, min_rows=2)
        recipe = given.fitted(X)
        nominal = self._nominal(recipe, X, y, weight)
        self.fingerprint_ = fingerprint(X, y)
        self._given_recipe = given
        return recipe, nominal, y, seed

    def _checked_batches(
        self, given: Recipe, rows: RowBatches, seed: int
    ) -> tuple[Recipe, Nominal, FloatArray, int]:
        """Return what ``_checked`` does, for rows that do not fit into memory."""
        refuse_parts_beside_batches(given)
        sample = rows.survey.sample
        check_batches(self, rows)
        recipe = given.fitted(sample.contexts)
        self.__dict__.pop("fingerprint_", None)  # of rows at hand
        self._given_recipe = given
        outcomes = sample.outcomes
        return recipe, rows, outcomes[:, 0] if rows.n_products == 1 else outcomes, seed

    def _chosen_radius(self, recipe: Recipe, question: Question, seed: int) -> float:
        """Return the radius as given, or choose it and remember what was seen."""
        rule = recipe.ball.radius
        if isinstance(rule, str) and rule != "auto":
            return self._ruled_radius(question.problem, rule, seed)
        if not isinstance(rule, str):
            return float(rule)
        if question.parameters is not None:
            return confident_radius(question.problem, question.parameters, question.rolling)
        some = question.problem.at_radius(TRIAL_RADIUS)
        solver = solver_for(some, recipe.solver)
        self.radius_path_ = choose_radius(question, solver, seed)
        return self.radius_path_.radius

    def _ruled_radius(self, problem: Problem, rule: str, seed: int) -> float:
        """Return the radius that a rule sets, warn of what it does not do, and remember it."""
        ruled = ruled_radius(rule, problem, seed=seed)
        if ruled.warnings:
            message = f"radius={rule!r}: {'; '.join(ruled.warnings)}."
            warn_user(message, SurefootWarning)
        self.radius_rule_ = ruled
        return ruled.radius

    @contextmanager
    def _kept_on_failure(self) -> Iterator[None]:
        """Leave the estimator as it was, fitted or not, if what follows fails: nothing is lost."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _nominal(self, recipe: Recipe, X: FloatArray, y: FloatArray, weight: Any) -> Nominal:
        if recipe.nominal is None:
            return Empirical(X, y, weight, names=self._names)
        nominal, products = recipe.nominal, y.reshape(len(y), -1).shape[1]
        if nominal.n_columns != X.shape[1]:
            raise InvalidInputError(
                f"nominal must have the columns of X ({X.shape[1]}), got {nominal.n_columns}."
            )
        if nominal.n_products != products:
            raise InvalidInputError(
                f"nominal must have the products of y ({products}), got {nominal.n_products}."
            )
        if weight is not None:
            raise InvalidInputError(
                "sample_weight must be None beside a nominal, which has its own, got weights."
            )
        return nominal

    def _take(self, problem: Problem, y: FloatArray) -> None:
        """Remember the question, in the units that decisions and later data share with this fit."""
        self.problem_, self.nominal_ = fitted_problem(problem), problem.nominal
        self._ball = problem.ball
        self._learned_on = False
        self._n_outcomes = problem.nominal.n_products
        # Several outcomes may meet in one decision, such as a price; it then is a plain number, too.
        decisions = problem.cost.n_decisions(self._n_outcomes)
        self._single = y.ndim == 1 or (decisions == 1 and self._n_outcomes > 1)
        self.radius_ = problem.radius

    def _warn_of_constant_columns(self, recipe: Recipe, nominal: Nominal) -> None:
        """Warn of columns without a spread, but not of zeros: a category may just not have occurred."""
        ball = recipe.ball
        if not isinstance(nominal, Empirical) or getattr(ball, "scale", True) is not True:
            return
        still = np.flatnonzero(nominal.spread == 0.0)
        if not len(still):
            return
        X = nominal.contexts
        columns = still[(X[:, still] != 0.0).any(axis=0)]
        varied = np.ptp(X[:, columns], axis=0) > 0.0
        if not varied.all():
            warn_user(
                f"Constant columns in X ({self._listed(columns[~varied])}): they have no standard "
                "deviation to measure a move in, so the adversary leaves them alone.",
                DataWarning,
            )
        if varied.any():
            warn_user(
                f"Columns in X that vary by less than {CONSTANT_COLUMN:g} of their size count as "
                f"constant ({self._listed(columns[varied])}), and the adversary leaves them alone: if "
                "that is more than rounding, subtract a number of their size first.",
                DataWarning,
            )

    def _listed(self, columns: IntArray) -> str:
        """Return some columns by their names or positions, the first five of many."""
        names = self._names
        shown = [repr(str(names[j])) if names is not None else str(j) for j in columns[:5]]
        return ", ".join(shown) + (f" and {len(columns) - 5} more" if len(columns) > 5 else "")

    # --- learning on ------------------------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from new pairs in order, one update each, going on from where the policy stands.

        The same update as ``OnlinePolicy``: columns follow their running scale, and decisions come from
        an average of the newest policies. The first call of an unfitted estimator starts the scale (and
        chooses the radius, if it is "auto") from all of its rows, two at least, because a model is
        fitted after it; ``OnlinePolicy`` waits for 16. So both learn the same to the last bit if that
        call has 16 rows, and after a ``fit``. ``certificate_`` speaks of the newest rows only.
        """
        refuse_levels(self, "partial_fit")
        if isinstance(X, RowBatches):
            raise InvalidTypeError(
                "X must be contexts, got rows in batches: fit takes them, and partial_fit one batch of "
                "rows.batches() after the other."
            )
        with self._kept_on_failure():
            if not hasattr(self, "parameters_"):
                X, y = self._first_rows(X, y)
            else:
                X, y = check_pairs(self, X, y, reset=False)
                y = self._outcomes(y)
                check_support(self.problem_, self.problem_.policy.transform(X), y)
                self.stream().learn(X, y)
            self._learned(X, y)
        return self

    def _first_rows(self, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
        """Begin a stream with its first rows, which have no forecast."""
        recipe, nominal, y, seed = self._checked(X, y, None)
        problem = Problem(recipe.cost, recipe.policy, nominal, recipe.ball.at(0.0))
        rows = nominal.distinct() if isinstance(nominal, Empirical) else nominal
        radius = self._chosen_radius(recipe, Question(problem, problem.around(rows)), seed)
        problem = problem.at_radius(radius)
        solver_for(problem, recipe.solver)  # what a fit refuses a stream does, too
        self._take(problem, y)
        self._warn_of_constant_columns(recipe, nominal)
        self.n_steps_, self.history_ = 0, ()
        X = check_contexts(self, X, reset=False)
        y = y.reshape(len(y), -1)
        options, size = self.stream_options(), X.shape[1]
        plain = options.policy.features is None
        frozen = options.ball.frozen_columns(size, self._names) if plain else np.zeros(size, dtype=bool)
        bounds = (
            support_of(options.ball, size) if plain else (np.full(size, -np.inf), np.full(size, np.inf))
        )
        self._stream = begin_stream(options, column_records(X, frozen, bounds), X, y)
        return X, y

    def _learned(self, X: FloatArray, y: FloatArray) -> None:
        """Take over what the stream has learned; the certificate is computed when it is asked for."""
        self.parameters_ = self._stream.parameters()
        self.n_steps_ += len(X)
        self._learned_on = True
        self.nominal_ = Empirical(X, y, names=self._names)
        if isinstance(self._ball, WassersteinBall) and self._ball.scale is True:
            # What is said of the newest rows is said in the units in which they were learned.
            ball = running_ball(self._ball.at(self.radius_), self._stream.feature_columns)
            self.problem_ = replace(self.problem_, ball=ball)
        self._certificate = self._multiplier = None
        self.__dict__.pop("fingerprint_", None)  # it has seen more than the rows of its fit
        self.converged_ = None
        self.status_ = (
            f"Learning from a stream ({self.n_steps_:,} steps): the certificate is the worst case "
            f"over the newest {len(X)} rows; call fit on all data for a proof."
        )

    def stream(self) -> Stream:
        """Return where learning from a stream stands; it begins at the fitted policy."""
        check_is_fitted(self)
        refuse_levels(self, "stream")
        if not hasattr(self, "_stream"):
            self._stream = self.new_stream(self.stream_options())
        return self._stream

    def new_stream(self, options: StreamOptions) -> Stream:
        """Return a stream of its own that goes on from where the policy stands."""
        refuse_levels(self, "new_stream")
        if hasattr(self, "_stream"):
            return restored_stream(options, self._n_outcomes, self._stream.arrays())
        if hasattr(self, "_stream_arrays"):  # of a model from a file, which has no rows
            return restored_stream(options, self._n_outcomes, self._stream_arrays)
        return resume_stream(options, self.problem_.around(self.nominal_), self.parameters_)

    def stream_arrays(self) -> dict[str, Any] | None:
        """Return where learning stands, as a file holds it; None if the policy cannot learn on."""
        refuse_levels(self, "stream_arrays")
        if not hasattr(self, "_stream") and hasattr(self, "_stream_arrays"):
            return self._stream_arrays
        return None if why_no_stream(self._ball) else self.stream().arrays()

    def stream_options(
        self,
        radius: DecayingRadius | None = None,
        step: StepRule | None = None,
        window: float = 0.0,
    ) -> StreamOptions:
        """Return what a stream from this model is told."""
        refuse_levels(self, "stream_options")
        ball = cast(WassersteinBall, self._ball)  # anything else is refused by StreamOptions
        given = self._given_recipe.ball
        if isinstance(ball, WassersteinBall) and isinstance(given, WassersteinBall):
            # One adversary is proved on rows alone: a stream has it where it was asked for.
            ball = replace(ball, adversary=given.adversary)
        return StreamOptions(
            cost=self.problem_.cost, policy=self.problem_.policy, ball=ball, radius=radius,
            step=AdaptiveStep() if step is None else step, window=window,
            random_state=self.seed_,
        )  # fmt: skip
