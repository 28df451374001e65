"""Which engine computes a problem: the only place that asks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surefoot.ambiguity import Adversary
from surefoot.engines.affine import Affine
from surefoot.engines.affine_adversary import affine_worst_case
from surefoot.engines.affine_stream import AffineStream
from surefoot.engines.autodiff import Autodiff
from surefoot.engines.autodiff_forms import load_engine
from surefoot.engines.autodiff_stream import AutodiffStream
from surefoot.engines.engine import Engine, Options, Parameters
from surefoot.engines.featured_stream import FeaturedStream, inner_arrays
from surefoot.engines.joint import joint_adversary, joint_worst_values
from surefoot.engines.stream import (
    Stream,
    StreamOptions,
    check_columns,
    column_records,
    fitted_records,
    support_of,
)
from surefoot.engines.stream_kernels import COLUMN, FORMER_COLUMN, known_rows
from surefoot.exceptions import InvalidTypeError
from surefoot.nominals import Empirical
from surefoot.policies import Linear, LinearParameters
from surefoot.problem import Problem, sampled_rows, why_not_affine, why_not_general, why_not_joint
from surefoot.typing import FloatArray
from surefoot.validation import check_array

# A feature map that was fitted already is kept with so many of the rows that it has seen.
FIRST_KEPT = 1


def engine_class(problem: Problem, *, optimizer: object = None) -> type[Affine] | type[Autodiff]:
    """Return the compiled engine for affine problems without an optimizer, else the other."""
    return Affine if optimizer is None and why_not_affine(problem) is None else Autodiff


def engine_for(problems: Sequence[Problem], seeds: Sequence[int], options: Options) -> Engine:
    """Return an engine for problems that share their parts."""
    return engine_class(problems[0], optimizer=options.optimizer)(problems, seeds, options)


def steps_together(problem: Problem, options: Options) -> bool:
    """Whether problems like this one step together in one program, rather than one by one."""
    return engine_class(problem, optimizer=options.optimizer) is Autodiff


def adversary_of(problem: Problem, parameters: Parameters) -> Adversary:
    """Return the worst distribution around the rows of a problem for a policy, by its engine."""
    engine = engine_class(problem)
    if not isinstance(problem.nominal, Empirical):
        problem = problem.around(sampled_rows(problem.nominal))
    if why_not_joint(problem) is None and isinstance(parameters, LinearParameters):
        return joint_adversary(problem, parameters)
    return engine.adversary(problem, parameters)


def worst_case_of(problem: Problem, parameters: Parameters) -> tuple[float, FloatArray]:
    """Return value and multipliers of ``adversary_of``, without the distribution if it can be."""
    rows = isinstance(problem.nominal, Empirical) and engine_class(problem) is Affine
    if rows and isinstance(parameters, LinearParameters) and why_not_joint(problem) is not None:
        return affine_worst_case(problem, parameters)
    worst = adversary_of(problem, parameters)
    return worst.value, worst.multiplier


def worst_values(problem: Problem, parameters: Parameters, radii: FloatArray) -> tuple[FloatArray, str]:
    """Return the worst case of a policy around the rows of a problem at several radii, and its kind."""
    if why_not_joint(problem) is None and isinstance(parameters, LinearParameters):
        return joint_worst_values(problem, parameters, radii)
    return engine_class(problem).worst_values(problem, parameters, radii)


def radius_grid(problem: Problem) -> FloatArray:
    """Return radii that may be useful for a problem on rows, from the largest down to zero."""
    return engine_class(problem).radius_grid(problem)


def why_no_engine(problem: Problem, options: Options) -> str | None:
    """Return why no engine can treat the problem, or None."""
    if engine_class(problem, optimizer=options.optimizer) is Affine:
        return Affine.why_not(problem, options)
    return why_not_general(problem)


def stream_class(options: StreamOptions, n_outcomes: int) -> type[AffineStream] | type[AutodiffStream]:
    """Return the stream of the engine that computes the question."""
    question = options.problem(np.zeros((1, 1)), np.zeros((1, n_outcomes)))
    return AffineStream if engine_class(question) is Affine else AutodiffStream


def why_no_stream(options: StreamOptions, n_outcomes: int) -> str | None:
    """Return why no engine can follow a stream, or None; JAX must be there if it is needed."""
    decisions = options.policy.decisions
    reason = None if decisions is None else decisions.why_not(options.cost.n_decisions(n_outcomes))
    if reason is None and stream_class(options, n_outcomes) is AutodiffStream:
        load_engine()
        return why_not_general(options.problem(np.zeros((1, 1)), np.zeros((1, n_outcomes))))
    return reason


def begin_stream(
    options: StreamOptions, columns: Any, rows: FloatArray, outcomes: FloatArray
) -> Stream:
    """Return a stream that has learned its first rows; ``columns`` are records of the contexts."""
    kind = stream_class(options, outcomes.shape[1])
    if options.policy.features is None:
        return kind.start(options, columns, rows, outcomes)
    first = known_rows(rows, columns)
    policy, behind = options.policy.fitted(first), options.without_features()
    features = policy.transform(first)
    size = features.shape[1]
    frozen, bounds = options.ball.frozen_columns(size), support_of(options.ball, size)
    records = column_records(features, frozen, bounds, cut=False)
    offsets = policy.offsets(first) if isinstance(policy, Linear) else None
    inner = kind.start(behind, records, features, outcomes, offsets)
    return FeaturedStream(options, columns, policy, first, inner)


def resume_stream(options: StreamOptions, problem: Problem, parameters: Parameters) -> Stream:
    """Return a stream that goes on from a policy that was fitted to a problem on rows."""
    nominal, policy, ball = problem.nominal, problem.policy, options.ball
    if not isinstance(nominal, Empirical):
        nominal = sampled_rows(nominal)
    names = nominal.names if policy.features is None else None
    features = policy.transform(nominal.contexts)
    size, count = features.shape[1], 1.0 / float(nominal.weights @ nominal.weights)
    frozen, bounds = ball.frozen_columns(size, names), support_of(ball, size)
    plain = policy.features is None
    records = fitted_records(features, nominal.weights, count, frozen, bounds, cut=plain)
    kind = stream_class(options, nominal.n_products)
    behind = options.without_features()
    bare = replace(problem, policy=replace(policy, features=None), ball=replace(ball, frozen=()))
    offsets = nominal.offsets
    if offsets is None and isinstance(policy, Linear):
        offsets = policy.offsets(nominal.contexts)
    rows = Empirical(features, nominal.outcomes, nominal.masses, offsets=offsets)
    given: Any = parameters  # of the policy that this engine computes
    inner = kind.after_fit(behind, records, bare.around(rows), given)
    if policy.features is None:
        return inner
    n_columns = nominal.n_columns
    contexts = fitted_records(
        nominal.contexts, nominal.weights, count, np.zeros(n_columns, dtype=bool),
        (np.full(n_columns, -np.inf), np.full(n_columns, np.inf)),
    )  # fmt: skip
    return FeaturedStream(options, contexts, policy, nominal.contexts[:FIRST_KEPT], inner)


def check_stream(options: StreamOptions, n_outcomes: int, n_columns: int, arrays: Any) -> None:
    """Refuse a state that is no state of such a stream; nothing is compiled for it."""
    if not isinstance(arrays, Mapping):
        raise InvalidTypeError(f"the state must hold arrays by name, got {type(arrays).__name__}.")
    arrays = _of_today(arrays)
    kind = stream_class(options, n_outcomes)
    if options.policy.features is None:
        kind.check(options, n_outcomes, n_columns, arrays)
        return
    check_columns("context_columns", arrays["context_columns"], n_columns)
    check_array("first", arrays["first"], (len(arrays["first"]), n_columns))
    features = options.policy.transform(arrays["first"][:1]).shape[1]
    kind.check(options.without_features(), n_outcomes, features, inner_arrays(arrays))


def restored_stream(options: StreamOptions, n_outcomes: int, arrays: Mapping[str, Any]) -> Stream:
    """Return the stream that a state describes."""
    arrays = _of_today(arrays)
    kind = stream_class(options, n_outcomes)
    if options.policy.features is None:
        return kind.restore(options, arrays)
    inner = kind.restore(options.without_features(), inner_arrays(arrays))
    policy = options.policy.fitted(arrays["first"])
    return FeaturedStream(options, arrays["context_columns"], policy, arrays["first"], inner)


def _of_today(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state as it is kept today: columns once held a range that follows from the rest."""
    kept = list(COLUMN.names or ())
    return {
        name: array[kept].astype(COLUMN) if array.dtype == FORMER_COLUMN else array
        for name, array in arrays.items()
    }
