"""Which engine serves which stream: to begin with first rows, and to restore."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.online.affine import AffineStream
from surefoot.online.featured import FeatureStream, inner_arrays
from surefoot.online.general import GeneralStream
from surefoot.online.learner import StreamLearner
from surefoot.online.settings import Settings
from surefoot.problem import why_not_affine, why_not_general
from surefoot.solvers.general_run import load_engine
from surefoot.typing import FloatArray

_KINDS: dict[str, Any] = {cls.__name__: cls for cls in (AffineStream, GeneralStream)}


def refuse_impossible(settings: Settings, n_outcomes: int) -> None:
    """Refuse, with the first outcome, what no engine could learn; JAX must be there if it is needed."""
    question = settings.problem(np.zeros((1, 1)), np.zeros((1, n_outcomes)))
    decisions = settings.policy.decisions
    reason = None if decisions is None else decisions.why_not(settings.cost.n_decisions(n_outcomes))
    if reason is None and why_not_affine(question) is not None:
        load_engine()
        reason = why_not_general(question)
    if reason is not None:
        raise InvalidInputError(f"the stream must have a best policy, got none: {reason}.")


def begin(
    settings: Settings, table: FloatArray, rows: FloatArray, outcomes: FloatArray
) -> StreamLearner:
    """Return a learner that has learned the first rows of a stream."""
    affine = why_not_affine(settings.problem(np.zeros((1, 1)), outcomes[:1])) is None
    start = AffineStream.start if affine else GeneralStream.start
    if settings.policy.features is None:
        return start(settings, table, rows, outcomes)
    return FeatureStream.start(start, settings, table, rows, outcomes)


def kind_of(learner: StreamLearner) -> str:
    """Return the engine's name, behind a feature map if there is one."""
    return type(learner.inner if isinstance(learner, FeatureStream) else learner).__name__


def restored(kind: str, settings: Settings, arrays: Mapping[str, FloatArray]) -> StreamLearner:
    """Return the learner that a state describes."""
    if kind not in _KINDS:
        raise InvalidInputError(f"the state must be of {' or '.join(_KINDS)}, got {kind!r}.")
    if settings.policy.features is None:
        learner: StreamLearner = _KINDS[kind].restore(settings, arrays)
        return learner
    inner = _KINDS[kind].restore(settings.without_features(), inner_arrays(arrays))
    return FeatureStream(settings, arrays["context_table"], arrays["first"], inner)
