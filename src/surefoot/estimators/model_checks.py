"""What a model file must hold: every part of the right kind, shape and size before any is used."""

from typing import Any

import numpy as np

from surefoot.ambiguity import AmbiguitySet
from surefoot.certificates import Certificate
from surefoot.costs import Newsvendor
from surefoot.engines.choice import check_stream
from surefoot.estimators.radius_selection import RadiusPath
from surefoot.exceptions import ModelFileError, SurefootError
from surefoot.nominals import Empirical
from surefoot.policies import Linear, LinearParameters, Policy, PolicyParameters
from surefoot.policies.base import leaves
from surefoot.problem import Problem
from surefoot.validation import check_array, check_number

# No model has more columns, or more outcomes: a row of them is made when a file is read.
MOST_COUNTED = 10**6
SAME_RATIO = 1e-9
_KINDS: dict[str, Any] = {
    "policy": Policy, "ball": AmbiguitySet, "asked_ball": AmbiguitySet, "certificate": Certificate,
    "parameters": LinearParameters | PolicyParameters, "radius_path": RadiusPath | None,
    "multiplier": np.ndarray, "converged": bool | None, "single": bool, "status": str,
    "stream": dict | None,
}  # fmt: skip


def check_kinds(fitted: dict[str, Any]) -> None:
    """Refuse parts of the wrong kind."""
    for name, kind in _KINDS.items():
        if not isinstance(fitted[name], kind):
            raise ModelFileError(f"The file must hold a {name}, got {type(fitted[name]).__name__}.")
    for name, least in (("columns", 1), ("outcomes", 1), ("n_steps", 0)):
        value = fitted[name]
        whole = isinstance(value, int) and not isinstance(value, bool)
        most = MOST_COUNTED if least else 2**63
        if not whole or not least <= value < most:
            allowed = f"from {least} to {most - 1:,}"
            raise ModelFileError(f"The file must hold a number of {name} {allowed}, got {value!r}.")
    certificate = fitted["certificate"]
    for name in ("upper", "lower", "gap"):
        check_number(f"{name} of the certificate", getattr(certificate, name), finite=False)


def check_names(names: Any, columns: int) -> None:
    """Refuse names that are not one text of its own for each column; None is no names."""
    if names is None:
        return
    plain = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not plain or len(names) != columns or len(set(names)) != columns:
        raise ModelFileError(f"The file must name {columns} columns, got {names!r}.")


def check_multiplier(multiplier: Any, decisions: int) -> None:
    """Refuse multipliers that are not one number >= 0 for each decision, or one for all."""
    check_array("multiplier", multiplier, (decisions if len(multiplier) == decisions else 1,))
    if (multiplier < 0.0).any():
        raise ModelFileError(f"The file must hold multipliers >= 0, got {multiplier}.")


def check_parameters(problem: Problem, parameters: Any) -> None:
    """Refuse parameters that do not fit a problem on one row: shapes, finite numbers, a decision."""
    policy, nominal = problem.policy, problem.nominal
    assert isinstance(nominal, Empirical)  # one row
    decisions = problem.cost.n_decisions(nominal.n_products)
    linear = isinstance(parameters, LinearParameters)
    if linear != isinstance(policy, Linear):
        raise ModelFileError(f"The file's parameters do not fit its policy {policy!r}.")
    claimed = np.shape(parameters.theta if linear else parameters.units.mean)
    size = policy.n_features(nominal.n_columns)
    if len(claimed) == 0 or (size is not None and claimed[0] != size):
        raise ModelFileError(f"The file must hold parameters of {size} features, got {claimed}.")
    features = policy.transform(nominal.contexts).shape[1]  # no more than there are parameters for
    check_array("auxiliary", parameters.auxiliary, (len(parameters.auxiliary),))
    if linear:
        check_array("theta", parameters.theta, (features, decisions))
        check_array("intercept", parameters.intercept, (decisions,))
    else:
        _check_trained(policy, parameters, features, decisions)
    problem.ball.column_scale(np.ones(features))
    problem.ball.frozen_columns(features, nominal.names if policy.features is None else None)
    with np.errstate(all="ignore"):
        made = policy.decide(parameters, nominal.contexts)
    if made.shape != (1, decisions) or not np.isfinite(made).all():
        raise ModelFileError(
            f"The file must hold a policy that decides {decisions} finite numbers, got {made.tolist()}."
        )


def _check_trained(policy: Policy, parameters: PolicyParameters, features: int, decisions: int) -> None:
    """Refuse arrays that a policy would not have learned."""
    units = parameters.units
    for name in ("mean", "spread"):
        check_array(name, getattr(units, name), (features,))
    for name in ("centre", "unit"):
        check_array(name, getattr(units, name), (decisions,))
    given = leaves(parameters.trained)
    like = leaves(policy.initial(np.random.default_rng(0), features, decisions))
    if set(given) != set(like):
        raise ModelFileError(f"The file must hold the arrays {sorted(like)}, got {sorted(given)}.")
    for name, array in given.items():
        check_array(name, array, np.shape(like[name]))


def check_levels(ratios: Any, models: list[Any], columns: Any) -> None:
    """Refuse policies that are not one for each of some rising cost ratios, on the same columns."""
    rising = ratios.ndim == 1 and (np.diff(ratios) > 0.0).all()
    if not (rising and len(ratios) == len(models) > 0):
        raise ModelFileError(f"The file must hold a policy for each cost ratio, got {len(models)}.")
    for ratio, model in zip(ratios.tolist(), models, strict=True):
        cost, kind = model.problem_.cost, (model.n_features_in_, model.n_outcomes, model.single)
        if not isinstance(cost, Newsvendor) or kind != (columns, 1, True):
            raise ModelFileError(f"The file must hold newsvendors of {columns} columns, got {model!r}.")
        learned = cost.pieces(1)[0].quantile
        if not abs(learned - ratio) <= SAME_RATIO:
            raise ModelFileError(f"The file must hold a policy for the ratio {ratio}, got {learned}.")


def check_learning(estimator: Any, columns: int, arrays: Any) -> None:
    """Refuse a stream's state that cannot go on from the model."""
    try:
        check_stream(estimator.stream_options(), estimator.n_outcomes, columns, arrays)
    except (SurefootError, KeyError, TypeError, IndexError) as error:
        raise ModelFileError(f"The file's stream does not fit its model: {error}.") from error
